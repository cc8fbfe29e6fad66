import pytest

from backend.drawing.panels import Frame
from backend.experiments.figures.kinds.sorted_scores import sorted_figure
from tests.backend.drawing.lines import valid
from tests.backend.experiments.figures.finished import figure, finish, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service
FRAME = Frame("t", ["A3C", "PAAC"])


def test_sorted_scores_fall_from_the_best() -> None:
    scores = {("A3C", "Pong"): [1.0, 3.0, 2.0], ("PAAC", "Pong"): [5.0]}
    figure = valid(sorted_figure(scores, panels=["Pong"], y="Score", frame=FRAME))
    assert [(list(trace.x), list(trace.y)) for trace in figure.data] == [
        ([1, 2, 3], [3.0, 2.0, 1.0]), ([1], [5.0])
    ]  # fmt: skip


def test_finding_of_sorted_scores_names_what_it_compares(sqlite_service: RunningService) -> None:
    study = started(sqlite_service.client, {"kind": "sorted"}, environments=["CartPole-v1"])
    finish(sqlite_service, study)  # 10, 20, 30 and 11, 21, 31
    answer = figure(sqlite_service.client, study)
    assert answer["finding"] == "CartPole, means of runs: highest A3C with 21, lowest PAAC with 20."
