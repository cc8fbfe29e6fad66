from typing import Any

import plotly.graph_objects as go

from backend.drawing.catalogue import EPISODE_RETURN
from backend.drawing.learning_curve import Evaluated, Level, learning_curve_figure
from backend.drawing.marks import Mark
from tests.backend.drawing.lines import A, B, drawn, line, valid

LEVELS = [
    Level("PAAC nips", 21.0, "noop_starts"),
    Level("random", -20.7, "noop_starts"),
    Level("human", 9.3, "noop_starts"),
]


def draw(**more: Any) -> go.Figure:
    defaults: dict[str, Any] = {"x": "agent_steps", "smooth": "0.9"}
    return valid(learning_curve_figure([line(metric=EPISODE_RETURN)], **(defaults | more)))


def run_colour(figure: go.Figure) -> str:
    """The colour of the run's line."""
    colour: str = next(trace for trace in figure.data if trace.meta["kind"] == "line").line.color
    return colour


def test_evaluations_are_grouped_by_protocol_in_order_of_training() -> None:
    done = [Evaluated(A, "a run", "noop_starts", at, at / 10, 30) for at in (30.0, 10.0)]
    done.append(Evaluated(A, "a run", "plain", 20.0, 5.0, 10))
    figure = draw(evaluations=done)
    noops, plain = [trace for trace in figure.data if "protocol" in trace.meta]
    (marks,) = [trace for trace in figure.data if trace.meta.get("marks") == "evaluations"]
    assert marks.x == (10.0, 20.0, 30.0)
    assert noops.name == "evaluation (no-op starts)"
    assert (noops.x, noops.y) == ((10.0, 30.0), (1.0, 3.0))
    assert noops.text[0] == "mean of 30 episodes"
    assert plain.name == "evaluation (standard resets)"
    assert noops.line.color == run_colour(draw())


def test_events_of_several_runs_are_in_the_lane_alone_and_without_checkpoints() -> None:
    done = [Evaluated(run, f"run {run}", "plain", 10.0, -1.5, 30) for run in (A, B)]
    lines = [line(A, metric=EPISODE_RETURN), line(B, metric=EPISODE_RETURN)]
    saved = [Mark(A, 40.0, "checkpoint")]
    figure = valid(
        learning_curve_figure(lines, x="agent_steps", smooth="0.9", evaluations=done, checkpoints=saved)
    )
    kinds = [trace.meta["kind"] for trace in figure.data]
    assert kinds == ["line", "line", "legend", "marks", "marks"]
    assert figure.data[-1].text == (
        f"run {B}: evaluation (standard resets), mean return −1.5 of 30 episodes",
    )
    assert {trace.yaxis for trace in figure.data[3:]} == {"y2"}


def test_levels_are_thin_labelled_lines() -> None:
    layout = draw(levels=LEVELS, best=-10.0).layout
    assert sorted(shape.y0 for shape in layout.shapes) == [-20.7, 9.3, 21.0]
    assert {shape.line.width for shape in layout.shapes} == {1}
    assert "human 9.3 (published, no-op starts)" in [note.text for note in layout.annotations]


def test_close_levels_share_a_label() -> None:
    crowd = [*LEVELS, Level("PAAC nature", 20.9, "noop_starts"), Level("DQN", 18.9, "noop_starts")]
    notes = draw(levels=crowd, best=-10.0).layout.annotations
    assert [(note.y, note.text) for note in notes] == [
        (-20.7, "random −20.7 (published, no-op starts)"),
        (9.3, "human 9.3 (published, no-op starts)"),
        (18.9, "PAAC nips 21 · PAAC nature 20.9<br>DQN 18.9 (published, no-op starts)"),
    ]


def test_each_level_has_its_own_name_in_an_export() -> None:
    crowd = [*LEVELS, Level("DQN", 20.9, "noop_starts")]
    shapes = draw(levels=crowd, best=-10.0).layout.shapes
    assert [shape.name for shape in shapes if shape.y0 > 20] == [
        "DQN 20.9 (published, no-op starts)", "PAAC nips 21 (published, no-op starts)"
    ]  # fmt: skip


def test_panel_of_one_of_several_compared_runs_is_that_of_a_single_run() -> None:
    done = [Evaluated(A, "a run", "plain", 10.0, -1.5, 30)]
    lines = [line(A, metric=EPISODE_RETURN)]
    figure = valid(
        learning_curve_figure(
            lines, runs=[A], x="agent_steps", smooth="0.9", evaluations=done, styles={A: 0, B: 1}
        )
    )
    assert "evaluations" in [trace.meta["kind"] for trace in figure.data]


def test_y_range_includes_only_the_next_level() -> None:
    def in_view(best: float | None) -> list[float]:
        return list(draw(levels=LEVELS, best=best).layout.yaxis.autorangeoptions.include)

    assert in_view(None) == [-20.7]
    assert in_view(-15.0) == [-20.7, 9.3]
    assert in_view(10.0) == [-20.7, 9.3, 21.0]
    assert in_view(50.0) == [-20.7, 9.3, 21.0]


def test_marks_have_the_colour_of_their_run() -> None:
    figure = draw(
        checkpoints=[Mark(A, 40.0, "checkpoint")],
        restarts=[Mark(A, 20.0, "attempt 2")],
        setting_changes=[Mark(A, 25.0, "beta = 0.02")],
        notes=[Mark(A, 30.0, "note at 30 agent steps: collapse")],
    )
    marked = {trace.meta["marks"]: trace for trace in figure.data if "marks" in trace.meta}
    assert list(marked) == ["checkpoints", "restarts", "setting changes", "notes"]
    colour = run_colour(figure)
    assert {trace.marker.color for trace in marked.values()} == {colour}


def test_figure_without_extras_has_only_the_curve() -> None:
    figure = draw()
    assert len(drawn(figure)) == 2
    assert not figure.layout.shapes
    assert "yaxis2" not in figure.layout
    assert figure.layout.yaxis.title.text == "Return (true score)"
