import plotly.graph_objects as go
import pytest

from backend.figures.marks import Kind, Mark, add_marks
from backend.figures.theme import faint, muted
from tests.backend.figures.test_curve import A, B

COLOURS = {A: "#0072b2", B: "#d55e00"}
KINDS: list[Kind] = ["checkpoints", "restarts", "setting changes"]


def drawn(kind: Kind, *marks: Mark) -> go.Figure:
    figure = go.Figure()
    add_marks(figure, kind, marks, COLOURS, "light")
    return figure


def test_ticks_stand_at_the_foot_in_the_order_of_training() -> None:
    _, ticks = drawn("checkpoints", Mark(A, 40.0, "second"), Mark(A, 20.0, "first")).data
    assert (ticks.x, ticks.text) == ((20.0, 40.0), ("first", "second"))
    assert set(ticks.y) == {0.01}
    assert ticks.mode == "markers"
    assert ticks.marker.color == faint(COLOURS[A], 0.5)


@pytest.mark.parametrize("kind", ["restarts", "setting changes"])
def test_lines_go_from_foot_to_top_and_are_not_joined(kind: Kind) -> None:
    _, lines = drawn(kind, Mark(A, 20.0, "one"), Mark(A, 30.0, "two")).data
    assert lines.x == (20.0, 20.0, None, 30.0, 30.0, None)
    assert lines.y == (0.0, 1.0, None, 0.0, 1.0, None)
    assert lines.text == ("one",) * 3 + ("two",) * 3
    assert lines.mode == "lines"


def test_kinds_are_told_apart_without_colour() -> None:
    looks = {(t.line.dash, t.marker.symbol) for kind in KINDS for t in drawn(kind, Mark(A, 1.0, "")).data}
    assert len(looks) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_one_entry_in_the_legend_whatever_the_runs(kind: Kind) -> None:
    figure = drawn(kind, Mark(A, 1.0, "a"), Mark(B, 2.0, "b"), Mark(A, 3.0, "c"))
    entry, *marks = figure.data
    assert [entry.name, entry.x, entry.y] == [kind, (None,), (None,)]
    assert (entry.line.color or entry.marker.color).startswith(faint(muted("light"), 0.5)[:-4])
    assert [mark.meta["run"] for mark in marks] == [A, B]
    assert {mark.showlegend for mark in marks} == {False}
    assert {trace.legendgroup for trace in figure.data} == {kind}  # one click hides all of them


def test_marks_do_not_move_with_the_values() -> None:
    figure = drawn("restarts", Mark(A, 1.0, ""))
    assert {trace.yaxis for trace in figure.data} == {"y2"}
    assert (figure.layout.yaxis2.overlaying, figure.layout.yaxis2.range) == ("y", (0, 1))
    assert figure.layout.yaxis2.visible is False


def test_marks_of_runs_that_are_not_drawn_are_left_out() -> None:
    figure = drawn("checkpoints", Mark("another", 1.0, ""))
    assert not figure.data
    assert "yaxis2" not in figure.layout
