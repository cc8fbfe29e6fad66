"""The page of a large study, on an idle machine: `make benchmarks`."""

import time
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from backend.analysis.metrics import repository as metrics
from backend.db import Attempt, ExperimentCell, Run
from backend.db.engine import writing
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.support.rows import evaluation_row
from tests.support.service import RunningService

pytestmark = [pytest.mark.service, pytest.mark.benchmark]

P95_MS = 300
N_REQUESTS = 40
N_POINTS = 500
"""Of each run's curve."""
N_OTHER_ATTEMPTS = 20_000
RATES = {"config.learning_rate": {"distribution": "log_uniform", "low": 1e-4, "high": 1e-2}}
FIGURES: list[dict[str, Any]] = [
    {"id": "curves", "title": "Score against agent steps", "kind": "curves"},
    {"id": "best", "title": "Score of the best 5 against time", "kind": "curves", "x": "hours",
     "reduction": {"rule": "mean_of_best", "k": 5}},
    {"id": "dots", "title": "Score by rate", "kind": "scatter", "setting": "config.learning_rate"},
    {"id": "sorted", "title": "Sorted scores", "kind": "sorted"},
    {"id": "scores", "title": "Scores", "kind": "table"},
    {"id": "evaluated", "title": "Evaluations", "kind": "table", "reduction": {"source": "evaluations"}},
    {"id": "bars", "title": "Time", "kind": "stacked_bars", "setting": "config.n_e",
     "metrics": ["paac/time_learning", "paac/time_environment"]},
    {"id": "speed-ups", "title": "Speed-ups", "kind": "speedups",
     "reduction": {"rule": "time_to", "references": dict.fromkeys(
         ("CartPole-v1", "Acrobot-v1", "Catch-v0", "Memory-v0"), 40.0)}},
    {"id": "reached", "title": "Own peaks", "kind": "reached", "reduction": {"rule": "time_to_peak"}},
]  # fmt: skip
EMBEDDED = {"theme": "light", "width": "1000", "embedded": "true"}
STUDY = {
    "name": "large",
    "arms": [{"label": f"n_e {n}", "algorithm": "paac", "config": {"n_e": n}} for n in (2, 4, 8, 16, 32)],
    "environments": ["CartPole-v1", "Acrobot-v1", "Catch-v0", "Memory-v0"],
    "draws": {"n": 50, "space": RATES},
    "run": {"stop": {"agent_steps": 50_000}},
    "figures": FIGURES,
    "concurrency": 1,
}


def curve(metric: str, values: np.ndarray[Any, Any]) -> PointsEvent:
    """A point each 100 agent steps and 0.1 s."""
    steps = [100 * (at + 1) for at in range(len(values))]
    return PointsEvent(
        metric=metric, source="", agent_steps=steps, frames=steps, episodes=steps,
        wall_time_s=[step / 1000 for step in steps], value=[float(value) for value in values],
    )  # fmt: skip


def finish(service: RunningService) -> None:
    """Fill every cell with a finished run that has a curve, two other metrics and two evaluations, and let a
    run of the same host have `N_OTHER_ATTEMPTS`."""
    rng = np.random.default_rng(0)
    shares = [curve(f"paac/time_{part}", rng.uniform(0.2, 0.6, 20)) for part in ("learning", "environment")]
    with writing(service.engine) as session:
        example = session.scalars(select(Run)).one()
        for cell in session.scalars(select(ExperimentCell).order_by(ExperimentCell.number)).all():
            returns = np.linspace(0, 100, N_POINTS) + rng.normal(0, 10, N_POINTS)
            run = Run(
                id=f"01{cell.number:024d}", created_at=example.created_at, name="r", algorithm="paac",
                environment=cell.environment, spec=example.spec | {"seed": cell.seed}, seed=cell.seed,
                queue="cpu", tags=[], memory_estimate_bytes=1, state=RunState.FINISHED,
                score=float(returns[-100:].mean()), agent_steps=50_000, frames=50_000, wall_time_s=50.0,
            )  # fmt: skip
            session.add(run)
            session.flush()
            metrics.append(session, run.id, 1, 1, [curve("rollout/episode_return", returns), *shares])
            session.add_all(evaluation_row(run.id, steps, returns[-1]) for steps in (25_000, 50_000))
            began = example.created_at + timedelta(seconds=30 * cell.number)
            session.add(attempt(run.id, 1, began))
            cell.run_id, cell.started = run.id, True
        # Its attempts overlap those of the study, and most are later ones.
        for number in range(1, N_OTHER_ATTEMPTS + 1):
            session.add(attempt(example.id, number, example.created_at + timedelta(seconds=30 * number)))
        example.state = RunState.STOPPED


def attempt(run_id: str, number: int, claimed_at: datetime) -> Attempt:
    """An attempt of a minute."""
    ended_at = claimed_at + timedelta(minutes=1)
    return Attempt(run_id=run_id, number=number, host="a", claimed_at=claimed_at, ended_at=ended_at)


def test_page_of_a_study_of_1000_runs_with_curves_is_answered_within_its_time_limit(
    sqlite_service: RunningService,
) -> None:
    client = sqlite_service.client
    study = client.post("/api/v1/studies", json={"study": STUDY}).json()
    assert study["n_runs"] == 1_000
    finish(sqlite_service)
    address = f"/api/v1/studies/{study['id']}"
    paths = [address, f"{address}/cells", "/api/v1/papers", "/api/v1/studies"]
    late = []
    for path in (*paths, *(f"{address}/figures/{figure['id']}" for figure in FIGURES)):
        params: dict[str, str] = EMBEDDED if "/figures/" in path else {}
        taken_ms = []
        for _ in range(N_REQUESTS):
            started = time.perf_counter()
            answer = client.get(path, params=params)
            taken_ms.append(1e3 * (time.perf_counter() - started))
            assert answer.status_code == 200, answer.text
        p95 = float(np.percentile(taken_ms, 95))
        print(  # noqa: T201
            f"{path.removeprefix(address) or '/'}: p95 {p95:.0f} ms, first {taken_ms[0]:.0f} ms, "
            f"{len(answer.content):,} bytes"
        )
        late += [path] if p95 >= P95_MS else []
    assert not late
