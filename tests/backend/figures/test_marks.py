import plotly.graph_objects as go
import pytest

from backend.figures.figure import Figure
from backend.figures.marks import Mark, MarkKind, add_marks
from backend.figures.theme import faint, muted
from tests.backend.figures.lines import A, B, valid

COLOURS = {A: "#0072b2", B: "#d55e00"}
KINDS: list[MarkKind] = ["checkpoints", "restarts", "setting changes"]


def drawn(kind: MarkKind, *marks: Mark) -> go.Figure:
    figure = Figure({})
    add_marks(figure, kind, marks, COLOURS, "light")
    return valid(figure)


def test_checkpoint_marks_are_ticks_at_the_bottom_in_order_of_training() -> None:
    _, ticks = drawn("checkpoints", Mark(A, 40.0, "second"), Mark(A, 20.0, "first")).data
    assert (ticks.x, ticks.text) == ((20.0, 40.0), ("first", "second"))
    assert set(ticks.y) == {0.01}
    assert ticks.mode == "markers"
    assert ticks.marker.color == faint(COLOURS[A], 0.5)


@pytest.mark.parametrize("kind", ["restarts", "setting changes"])
def test_marks_are_separate_vertical_lines(kind: MarkKind) -> None:
    _, lines = drawn(kind, Mark(A, 20.0, "one"), Mark(A, 30.0, "two")).data
    assert lines.x == (20.0, 20.0, None, 30.0, 30.0, None)
    assert lines.y == (0.0, 1.0, None, 0.0, 1.0, None)
    assert lines.text == ("one",) * 3 + ("two",) * 3
    assert lines.mode == "lines"


def test_kinds_of_marks_differ_in_dash_or_symbol() -> None:
    styles = {(t.line.dash, t.marker.symbol) for kind in KINDS for t in drawn(kind, Mark(A, 1.0, "")).data}
    assert len(styles) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_marks_of_one_kind_share_one_legend_entry(kind: MarkKind) -> None:
    figure = drawn(kind, Mark(A, 1.0, "a"), Mark(B, 2.0, "b"), Mark(A, 3.0, "c"))
    entry, *marks = figure.data
    assert [entry.name, entry.x, entry.y] == [kind, (None,), (None,)]
    assert (entry.line.color or entry.marker.color).startswith(faint(muted("light"), 0.5)[:-4])
    assert [mark.meta["run"] for mark in marks] == [A, B]
    assert {mark.showlegend for mark in marks} == {False}
    assert {trace.legendgroup for trace in figure.data} == {kind}  # one click hides all of them


def test_marks_have_their_own_fixed_y_axis() -> None:
    figure = drawn("restarts", Mark(A, 1.0, ""))
    assert [trace.yaxis for trace in figure.data] == [None, "y2"]  # the legend entry keeps the first axis
    assert (figure.layout.yaxis2.overlaying, figure.layout.yaxis2.range) == ("y", (0, 1))
    assert figure.layout.yaxis2.visible is False


def test_marks_of_runs_not_drawn_are_omitted() -> None:
    figure = drawn("checkpoints", Mark("another", 1.0, ""))
    assert not figure.data
    assert "yaxis2" not in figure.layout
