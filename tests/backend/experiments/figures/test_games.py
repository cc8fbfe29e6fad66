import pytest
from sqlalchemy import select

from backend.analysis.metrics import repository as metrics
from backend.db import ExperimentCell
from backend.db.engine import writing
from backend.drawing.bars import Bar
from backend.drawing.panels import Frame
from backend.experiments.figures.kinds.games import games_figure
from backend.specs.events import PointsEvent
from tests.backend.drawing.lines import valid
from tests.backend.experiments.figures.finished import figure, finish, numbers, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service

FRAME = Frame("t", ["A3C", "PAAC"])


def test_values_of_a_metric_have_the_unit_of_its_charts(sqlite_service: RunningService) -> None:
    rule = {"rule": "top", "k": 1, "metric": "system/rss_bytes"}
    study = started(sqlite_service.client, {"kind": "games", "reduction": rule}, draws={"n": 1})
    with writing(sqlite_service.engine) as session:
        for run_id in session.scalars(
            select(ExperimentCell.run_id).where(ExperimentCell.experiment_id == study)
        ):
            points = PointsEvent(
                metric="system/rss_bytes", source="", agent_steps=[1], frames=[1], wall_time_s=[1.0],
                episodes=[0], value=[400.0 * 2**20],
            )  # fmt: skip
            metrics.append(session, run_id or "", 1, 1, [points])
    finish(sqlite_service, study)
    drawn = figure(sqlite_service.client, study)["figure"]
    assert drawn["layout"]["xaxis"]["title"]["text"] == "Memory (MiB)"
    assert {value for bars in drawn["data"] for value in numbers(bars["x"])} == {400.0}


def test_games_are_ordered_by_their_highest_bar_with_the_reference_as_a_line() -> None:
    bars = [
        Bar("A3C", "Pong", 90.0, "A3C"),
        Bar("PAAC", "Pong", 150.0, "PAAC"),
        Bar("A3C", "Qbert", 120.0, "A3C"),
    ]
    figure = valid(games_figure(bars, x="%", reference=100.0, frame=FRAME))
    assert list(figure.layout.yaxis.categoryarray) == ["Qbert", "Pong"]  # from the bottom
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (100.0, 100.0)
