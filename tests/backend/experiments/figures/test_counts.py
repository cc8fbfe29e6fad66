import numpy as np
import pytest
from sqlalchemy import select

from backend.analysis.metrics import repository as metrics
from backend.db import ExperimentCell
from backend.db.engine import writing
from backend.drawing.catalogue import describe
from backend.drawing.panels import Frame
from backend.experiments.figures.kinds.counts import counts_figure, range_in_words
from backend.specs.events import PointsEvent
from tests.backend.drawing.lines import valid
from tests.backend.experiments.figures.finished import figure, numbers, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_counts_are_of_the_first_run_that_has_the_metrics(sqlite_service: RunningService) -> None:
    metric = "paac/time_learning"
    study = started(sqlite_service.client, {"kind": "counts", "metrics": [metric]})
    assert figure(sqlite_service.client, study)["n_in"] == 0
    with writing(sqlite_service.engine) as session:
        cells = session.scalars(select(ExperimentCell).order_by(ExperimentCell.number)).all()
        for cell, value in zip(cells[1:3], (2.0, 3.0), strict=True):
            points = PointsEvent(
                metric=metric, agent_steps=[1, 2, 3], frames=[1, 2, 3], wall_time_s=[1.0, 2.0, 3.0],
                episodes=[0, 0, 0], value=[value, value + 5, value + 1],
            )  # fmt: skip
            metrics.append(session, cell.run_id or "", 1, 1, [points])
    drawn = figure(sqlite_service.client, study)
    assert drawn["n_in"] == 1
    divisor = describe(metric).divisor
    assert numbers(drawn["figure"]["data"][0]["y"]) == [value / divisor for value in (2.0, 7.0, 3.0)]
    assert drawn["finding"] == "Time in learning between 2 and 7, 3 at the end."


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([2.0, 7.0, 3.0], "between 2 and 7, 3 at the end"),
        ([5.0, 5.0], "5"),
        ([5.0, 5.0, np.nan], "5, NaN at the end"),
        ([1.0, np.inf, 2.0, np.nan], "between 1 and 2, NaN at the end"),
        ([np.nan, np.inf], "∞"),
    ],
)
def test_range_is_of_the_values_that_are_finite(values: list[float], words: str) -> None:
    assert range_in_words(np.array(values)) == words


def test_counts_are_steps_and_the_rate_has_an_axis_of_its_own() -> None:
    x, y = np.array([0.0, 60.0]), np.array([1.0, 2.0])
    lines = [("ga3c/n_actors", "Agents", x, y), ("speed/updates_per_s", "Updates (TPS)", x, y * 50)]
    figure = valid(counts_figure(lines, x="s", second="Updates/s", frame=Frame("t", [])))
    agents, rate = figure.data
    assert (agents.line.shape, agents.yaxis, rate.line.shape, rate.yaxis) == ("hv", "y", None, "y2")
    assert figure.layout.yaxis2.side == "right"
