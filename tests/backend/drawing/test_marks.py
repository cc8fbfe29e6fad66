import plotly.graph_objects as go
import pytest

from backend.drawing.figure import Figure
from backend.drawing.marks import Mark, MarkKind, add_marks
from backend.drawing.theme import muted
from tests.backend.drawing.lines import A, B, valid

COLOURS = {A: "#0072b2", B: "#d55e00"}
KINDS: list[MarkKind] = ["checkpoints", "evaluations", "restarts", "setting changes", "notes", "symptoms"]


def drawn(kind: MarkKind, *marks: Mark) -> go.Figure:
    figure = Figure({})
    add_marks(figure, kind, marks, COLOURS, "light")
    return valid(figure)


@pytest.mark.parametrize("kind", KINDS)
def test_marks_are_symbols_in_the_lane_in_order_of_training(kind: MarkKind) -> None:
    figure = drawn(kind, Mark(A, 40.0, "second"), Mark(A, 20.0, "first"))
    _, marks = figure.data
    assert (marks.x, marks.text) == ((20.0, 40.0), ("first", "second"))
    assert set(marks.y) == {0.5}
    assert (marks.mode, marks.yaxis) == ("markers", "y2")
    assert marks.marker.color == COLOURS[A]


def test_kinds_of_marks_differ_in_their_symbol() -> None:
    styles = {trace.marker.symbol for kind in KINDS for trace in drawn(kind, Mark(A, 1.0, "")).data}
    assert len(styles) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_marks_of_one_kind_share_one_legend_entry(kind: MarkKind) -> None:
    figure = drawn(kind, Mark(A, 1.0, "a"), Mark(B, 2.0, "b"), Mark(A, 3.0, "c"))
    entry, *marks = figure.data
    assert [entry.name, entry.x, entry.y] == [kind, (None,), (None,)]
    assert entry.marker.color == muted("light")
    assert [mark.meta["run"] for mark in marks] == [A, B]
    assert {mark.showlegend for mark in marks} == {False}
    assert {trace.legendgroup for trace in figure.data} == {kind}  # one click hides all of them


def test_lane_is_under_the_curves_and_the_x_axis_under_the_lane() -> None:
    figure = drawn("restarts", Mark(A, 1.0, ""))
    assert [trace.yaxis for trace in figure.data] == [None, "y2"]  # the legend entry keeps the first axis
    lane, curves = figure.layout.yaxis2, figure.layout.yaxis
    assert lane.domain[1] < curves.domain[0]
    assert (lane.domain[0], curves.domain[1]) == (0, 1)
    assert (lane.range, lane.visible, lane.overlaying) == ((0, 1), False, None)
    assert figure.layout.xaxis.anchor == "y2"


def test_marks_of_runs_not_drawn_are_omitted() -> None:
    figure = drawn("checkpoints", Mark("another", 1.0, ""))
    assert not figure.data
    assert "yaxis2" not in figure.layout
