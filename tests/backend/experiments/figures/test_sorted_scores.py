from backend.analysis.figures.panels import Frame
from backend.experiments.figures.kinds.sorted_scores import sorted_figure
from tests.backend.analysis.figures.lines import valid

FRAME = Frame("t", ["A3C", "PAAC"])


def test_sorted_scores_fall_from_the_best() -> None:
    scores = {("A3C", "Pong"): [1.0, 3.0, 2.0], ("PAAC", "Pong"): [5.0]}
    figure = valid(sorted_figure(scores, panels=["Pong"], y="Score", frame=FRAME))
    assert [(list(trace.x), list(trace.y)) for trace in figure.data] == [
        ([1, 2, 3], [3.0, 2.0, 1.0]), ([1], [5.0])
    ]  # fmt: skip
