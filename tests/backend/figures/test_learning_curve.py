from backend.figures.learning_curve import METRIC, Evaluated, Level, learning_curve
from backend.figures.marks import Mark
from backend.figures.theme import faint
from tests.backend.figures.test_curve import A, B, line

LEVELS = [
    Level("PAAC nips", 21.0, "noop_starts"),
    Level("random", -20.7, "noop_starts"),
    Level("human", 9.3, "noop_starts"),
]


def draw(**more):
    return learning_curve([line(metric=METRIC)], **({"x": "agent_steps", "smooth": 0.9} | more))


def colours_of(figure) -> str:
    """The run's colour, as its line has it."""
    return figure.data[2].line.color


def test_evaluations_name_their_protocol_and_keep_the_order_of_training() -> None:
    done = [Evaluated(A, "a run", "noop_starts", at, at / 10, 30) for at in (30.0, 10.0)]
    done.append(Evaluated(A, "a run", "plain", 20.0, 5.0, 10))
    noops, plain = [trace for trace in draw(evaluations=done).data if "protocol" in trace.meta]
    assert noops.name == "evaluation (no-op starts)"
    assert (noops.x, noops.y) == ((10.0, 30.0), (1.0, 3.0))
    assert noops.text[0] == "mean of 30 episodes"
    assert plain.name == "evaluation (plain starts)"
    assert noops.line.color == draw().data[2].line.color


def test_evaluations_of_several_runs_share_one_entry_in_the_legend() -> None:
    done = [Evaluated(run, f"run {run}", "plain", 10.0, 1.0, 30) for run in (A, B)]
    figure = learning_curve(
        [line(A, metric=METRIC), line(B, metric=METRIC)], x="agent_steps", smooth=0.9, evaluations=done
    )
    entry, *drawn = [trace for trace in figure.data if trace.legendgroup == "evaluation (plain starts)"]
    assert (entry.name, entry.x) == ("evaluation (plain starts)", (None,))
    assert [(trace.meta["run"], trace.showlegend) for trace in drawn] == [(A, False), (B, False)]
    assert drawn[1].name == f"run {B}, evaluation (plain starts)"


def test_levels_are_thin_lines_with_a_name() -> None:
    layout = draw(levels=LEVELS, best=-10.0).layout
    assert sorted(shape.y0 for shape in layout.shapes) == [-20.7, 9.3, 21.0]
    assert {shape.line.width for shape in layout.shapes} == {1}
    assert "human 9.3 (no-op starts)" in [note.text for note in layout.annotations]


def test_levels_that_lie_close_together_share_a_label() -> None:
    crowd = [*LEVELS, Level("PAAC nature", 20.9, "noop_starts"), Level("DQN", 18.9, "noop_starts")]
    notes = draw(levels=crowd, best=-10.0).layout.annotations
    assert [(note.y, note.text) for note in notes] == [
        (-20.7, "random −20.7 (no-op starts)"),
        (9.3, "human 9.3 (no-op starts)"),
        (18.9, "PAAC nips 21 · PAAC nature 20.9<br>DQN 18.9 (no-op starts)"),
    ]


def test_the_next_level_is_kept_in_view_and_no_further() -> None:
    def in_view(best: float | None) -> list[float]:
        return list(draw(levels=LEVELS, best=best).layout.yaxis.autorangeoptions.include)

    assert in_view(None) == [-20.7]
    assert in_view(-15.0) == [-20.7, 9.3]
    assert in_view(10.0) == [-20.7, 9.3, 21.0]
    assert in_view(50.0) == [-20.7, 9.3, 21.0]


def test_marks_in_the_colour_of_their_run() -> None:
    figure = draw(
        checkpoints=[Mark(A, 40.0, "checkpoint")],
        restarts=[Mark(A, 20.0, "attempt 2")],
        setting_changes=[Mark(A, 25.0, "beta = 0.02")],
    )
    marked = {trace.meta["marks"]: trace for trace in figure.data if "marks" in trace.meta}
    assert list(marked) == ["checkpoints", "restarts", "setting changes"]
    colour = colours_of(figure)
    for trace in marked.values():
        assert (trace.line.color or trace.marker.color).startswith(faint(colour, 0.5)[:-4])


def test_nothing_but_the_curve_where_there_is_nothing_else() -> None:
    figure = draw()
    assert len(figure.data) == 3
    assert not figure.layout.shapes
    assert "yaxis2" not in figure.layout
    assert figure.layout.yaxis.title.text == "Return (true score)"
