from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.analysis.metrics import repository
from backend.analysis.metrics.run_axes import clock_by_training_time, updates_by_agent_steps
from backend.db import Run, Transition
from backend.db.engine import writing
from backend.runs.checkpoints.repository import CheckpointCounters
from backend.runs.runs import service as runs
from backend.runs.runs.repository import TrainingStart
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.support.rows import add_attempt, checkpoint_row, make_run
from tests.support.service import RunningService

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def saved(agent_steps: int, *, updates: int = 0, wall_time_s: float, clock_s: float) -> CheckpointCounters:
    return CheckpointCounters("r", 1, agent_steps, updates, wall_time_s, at(clock_s))


def test_updates_are_exact_at_checkpoints_and_interpolated_between() -> None:
    run = Run(agent_steps=400, updates=40, forked_at_agent_steps=None)
    checkpoints = [
        saved(100, updates=0, wall_time_s=1, clock_s=1),
        saved(200, updates=10, wall_time_s=2, clock_s=2),
    ]
    conversion = updates_by_agent_steps(run, checkpoints)
    assert conversion.x_of(np.array([0, 50, 100, 150, 200, 300, 400])).tolist() == [0, 0, 0, 5, 10, 25, 40]
    assert [conversion.stored_of(x) for x in (5, 25, 40)] == [150, 300, 400]


def test_fork_counts_updates_from_its_copied_checkpoint() -> None:
    run = Run(agent_steps=200, updates=60, forked_at_agent_steps=100)
    copied = CheckpointCounters("r", 0, 100, 50, 9.0, at(0))
    assert updates_by_agent_steps(run, [copied]).x_of(np.array([100, 150])).tolist() == [50, 55]


def test_clock_time_contains_evaluations_and_interruptions() -> None:
    run = Run(started_at=at(-5), created_at=at(-9))
    checkpoints = [
        saved(400, wall_time_s=40, clock_s=50),  # after an evaluation of 10 s
        saved(800, wall_time_s=80, clock_s=1050),
    ]
    starts = [
        TrainingStart("r", at(0), 0),
        TrainingStart("r", at(1000), 400),
    ]  # the second one resumed from the first checkpoint
    conversion = clock_by_training_time(run, checkpoints, starts)
    # The last point before the interruption, then points of the second attempt; beyond, training goes on.
    assert conversion.x_of(np.array([0, 20, 40, 41, 80, 90])).round(3).tolist() == [
        0,
        20,
        40,
        1001,
        1040,
        1060,
    ]
    assert conversion.stored_of(20) == 20
    assert conversion.stored_of(1001) == pytest.approx(41)


def test_clock_time_of_a_fork_starts_with_its_own_training() -> None:
    copied = CheckpointCounters("r", 0, 100, 50, 9.0, at(-3600))
    conversion = clock_by_training_time(Run(), [copied], [TrainingStart("r", at(0), 100)])
    assert conversion.x_of(np.array([9.0, 12.0])).tolist() == [0, 3]


def test_clock_time_without_any_record_is_training_time() -> None:
    conversion = clock_by_training_time(Run(started_at=None, created_at=at(0)), [], [])
    assert conversion.x_of(np.array([0.0, 7.5])).tolist() == [0, 7.5]


@pytest.fixture
def run_id(engine: Engine) -> str:
    """A run of 2,000 agent steps in 20 s, with 100 updates to the checkpoint at 1,000, 150 after it, and a
    pause of 500 s there."""
    run = make_run(engine, RunState.RUNNING)
    steps = list(range(0, 2000, 10))
    points = PointsEvent(
        metric="m", agent_steps=steps, frames=steps, wall_time_s=[step / 100 for step in steps],
        episodes=steps, value=[float(step) for step in steps],
    )  # fmt: skip
    add_attempt(engine, run.id, 1)
    add_attempt(engine, run.id, 2, resumed_from_agent_steps=1000)
    with writing(engine) as session:
        for row in session.query(Transition).filter_by(run_id=run.id, after=RunState.RUNNING):
            row.time, row.attempt = BEGAN, 1
        session.add(
            Transition(run_id=run.id, time=at(510), before="starting", after="running", attempt=2, reason="")
        )
        session.add(checkpoint_row(run.id, 1000, updates=100, wall_time_s=10.0, recorded_at=at(10)))
        stored = session.get_one(Run, run.id)
        stored.agent_steps, stored.updates, stored.wall_time_s = 1990, 250, 19.9
        repository.append(session, run.id, 1, 2, [points])
    return run.id


@pytest.mark.service
@pytest.mark.parametrize("group_by", [None, "seed"])
def test_series_over_updates_and_clock_time(
    service: RunningService, run_id: str, group_by: str | None
) -> None:
    def read(**how: Any) -> dict[str, Any]:
        ask = {"run": run_id, "metric": "m", **how} | ({"group_by": group_by} if group_by else {})
        answer = service.client.get("/api/v1/series", params=ask)
        assert answer.status_code == 200, answer.text
        (curve,) = answer.json()["groups" if group_by else "series"]
        return dict(curve)

    updates, clock = read(x="updates"), read(x="clock_time_s")
    if group_by is None:
        assert [updates["x"][at] for at in (0, 50, 100, 199)] == [0, 50, 100, 250]
        assert [clock["x"][at] for at in (0, 100, 101)] == [0, 10, pytest.approx(510.1)]
    assert max(updates["x"]) <= 256
    assert max(clock["x"]) >= 519

    zoomed = read(x="updates", x_from=40, x_to=60, smoothing="window", scale=2)
    assert min(zoomed["x"]) >= 16, "no more than the shown range and its neighbours"
    assert max(zoomed["x"]) <= 100


@pytest.mark.service
@pytest.mark.parametrize("has_new_row", [True, False])
@pytest.mark.parametrize("x", ["updates", "clock_time_s"])
@pytest.mark.parametrize("group_by", [None, "seed"])
def test_rows_are_sent_again_once_their_computed_x_may_have_changed(
    service: RunningService, engine: Engine, run_id: str, group_by: str | None, x: str, has_new_row: bool
) -> None:
    def read(**how: Any) -> dict[str, Any]:
        ask = {"run": run_id, "metric": "m", "x": x, **how} | ({"group_by": group_by} if group_by else {})
        (curve,) = service.client.get("/api/v1/series", params=ask).json()["groups" if group_by else "series"]
        return dict(curve)

    with writing(engine) as session:
        known = session.get_one(Run, run_id).revision
    unchanged = read(since_revision=known)
    assert not unchanged["reset"]
    assert unchanged["x"] == []
    with writing(engine) as session:
        run = session.get_one(Run, run_id)
        revision = runs.touch(session, run)
        run.agent_steps, run.updates, run.wall_time_s = 4000, 10_000, 40.0
        session.add(checkpoint_row(run_id, 1500, updates=5000, wall_time_s=15.0, recorded_at=at(900)))
        if has_new_row:
            point = PointsEvent(
                metric="m", agent_steps=[4000], frames=[4000], wall_time_s=[40.0], episodes=[4000], value=[1]
            )
            repository.append(session, run_id, 2, revision, [point])
    new = read(since_revision=known)
    assert new["reset"]
    assert new == read()


@pytest.mark.service
@pytest.mark.parametrize(
    ("x", "title", "mark"),
    [("updates", "Updates", 100), ("clock_time_s", "Clock time since the start (s)", 10)],
)
def test_learning_curve_over_updates_and_clock_time(
    client: Client, run_id: str, x: str, title: str, mark: float
) -> None:
    figure = client.get("/api/v1/figures/learning_curve", params={"run": run_id, "x": x}).json()
    assert figure["layout"]["xaxis"]["title"]["text"] == title
    (checkpoints,) = (trace for trace in figure["data"] if trace["meta"].get("marks") == "checkpoints")
    assert checkpoints["x"] == [mark]


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client
