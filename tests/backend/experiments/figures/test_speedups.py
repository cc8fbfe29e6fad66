import numpy as np
import pytest
from sqlalchemy import select, update

from backend.analysis.metrics import repository as metrics
from backend.db import ExperimentCell, Run, Series
from backend.db.engine import writing
from backend.experiments.figures.kinds.speedups import mean_speedups
from backend.specs.events import PointsEvent
from backend.statistics.cells import Cell, Reduction
from tests.backend.experiments.figures.finished import cells_of, figure, finish, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_mean_speed_ups_are_over_the_environments_of_all_arms() -> None:
    speedups = {"1": (1, 1, 1), "2": (2, None, 6), "4": (None, None, None), "16": (8, 9, 10)}
    cells = tuple(
        Cell(arm, environment, value, None, None, 1, 1, (0,), "")
        for arm, values in speedups.items()
        for environment, value in zip("abc", values, strict=True)
    )
    common, means = mean_speedups(Reduction(cells, "ratio", "", ""))
    assert (common, means) == ({"a", "c"}, {"1": 1.0, "2": 4.0, "16": 9.0})


def test_speed_ups_are_relative_to_the_first_arm_of_each_algorithm(service: RunningService) -> None:
    arms = [{"label": f"{n} actors", "algorithm": "a3c", "config": {"n_actors": n}} for n in (1, 2)]
    rule = {"rule": "time_to", "references": {"CartPole-v1": 9.0}, "source": "training"}
    wanted = {"kind": "speedups", "reduction": rule}
    study = started(service.client, wanted, arms=arms, environments=["CartPole-v1"])
    finish(service, study)
    with writing(service.engine) as session:  # a hundred episodes count as a score
        for cell in session.scalars(select(ExperimentCell)):
            series = session.scalars(select(Series).where(Series.run_id == cell.run_id)).all()
            assert series
            n = 200
            times = np.linspace(0.0, 100.0 / (cell.arm + 1), n).tolist()
            steps = list(range(20_000, 20_000 + n))
            points = PointsEvent(
                metric="rollout/episode_return", source="", agent_steps=steps, frames=steps,
                wall_time_s=times, episodes=list(range(n)), value=[50.0] * n,
            )  # fmt: skip
            metrics.append(session, cell.run_id or "", 1, 2, [points])
    answer = figure(service.client, study)
    assert cells_of(answer["table"])["1 actors"] == [1.0, 1.0]
    assert cells_of(answer["table"])["2 actors"][0] == pytest.approx(2.0, rel=0.01)
    assert answer["finding"] == "2 actors: 2×."


def test_speed_ups_by_variant_are_relative_to_another_method(sqlite_service: RunningService) -> None:
    arms = [
        {"label": f"{method}, {n_e}", "algorithm": "paac", "config": {"n_e": n_e, "n_w": n_w}}
        for n_e in (4, 8)
        for n_w, method in ((2, "B"), (1, "A"))
    ]
    rule = {"rule": "top", "k": 1, "metric": "paac/time_learning", "ratio_to": "A, 4"}
    wanted = {"kind": "speedups", "reduction": rule}, {"kind": "table", "metrics": ["total/frames"]}
    study = started(sqlite_service.client, *wanted, arms=arms, environments=["CartPole-v1"], draws={"n": 1})
    finish(sqlite_service, study)
    with writing(sqlite_service.engine) as session:
        for cell, value in zip(session.scalars(select(ExperimentCell)), (0.6, 0.2, 0.3, 0.2), strict=True):
            session.execute(
                update(Series)
                .where(
                    Series.run_id == cell.run_id, Series.metric == "paac/time_learning", Series.source == ""
                )
                .values(mean_value=value)
            )
            session.get_one(Run, cell.run_id).frames = 40_000
    answer = figure(sqlite_service.client, study)
    assert {name: cells[0] for name, cells in cells_of(answer["table"]).items()} == {
        "A, 4": 1.0, "B, 4": pytest.approx(3.0), "A, 8": 1.0, "B, 8": pytest.approx(1.5)
    }  # fmt: skip
    assert "A of its variant" in answer["caption"]
    assert cells_of(figure(sqlite_service.client, study, "f1")["table"])["A, 4"] == [40_000.0]
