"""A sweep and a study whose installation loses its processes, one after the other."""

from typing import Any

import pytest
from sqlalchemy import func, select

from backend.db import Experiment, ExperimentCell, Run
from backend.db.engine import opened, reading
from backend.platform.settings import Settings
from tests.support.databases import short_folder
from tests.support.installation import installation
from tests.support.waiting import until

pytestmark = pytest.mark.service

ENVIRONMENTS = ("CartPole-v1", "Acrobot-v1")
KILLED = ("web", "worker", "redis")
RATES = {"distribution": "log_uniform", "low": 1e-4, "high": 1e-1}
STOP = {"agent_steps": 600}


def sweep_body(n: int) -> dict[str, Any]:
    return {
        "name": "killed",
        "run": {"algorithm": "paac", "environment": ENVIRONMENTS[0], "stop": STOP},
        "space": {"config.learning_rate": RATES | {"n": n}},
        "max_seeds": 4,
        "racing": None,
        "concurrency": 8,
    }


def study_body(n: int) -> dict[str, Any]:
    study = {
        "name": "killed",
        "arms": [{"label": algorithm, "algorithm": algorithm} for algorithm in ("paac", "paac_q")],
        "environments": list(ENVIRONMENTS),
        "draws": {"n": n, "space": {"config.learning_rate": RATES}},
        "run": {"stop": STOP},
        "concurrency": 8,
    }
    return {"study": study}


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(
    ("path", "n"),
    [
        pytest.param("sweeps", 10, marks=pytest.mark.long),
        pytest.param("studies", 5, marks=pytest.mark.long),
        pytest.param("sweeps", 50, marks=pytest.mark.benchmark),
        pytest.param("studies", 30, marks=pytest.mark.benchmark),
    ],
)
def test_every_cell_has_exactly_its_run_after_kills(path: str, n: int) -> None:
    n_runs = 4 * n
    with short_folder() as folder:
        home = folder / "home"
        with (
            installation(home, lease_s=5, reconcile_interval_s=0.5, slots=2) as running,
            opened(Settings(home=home).database) as engine,
        ):
            body = sweep_body(n) if path == "sweeps" else study_body(n)
            row_id = running.log_in().post(f"/api/v1/{path}", json=body).json()["id"]

            def ended() -> int:
                with reading(engine) as session:
                    finished = select(func.count()).select_from(Run).where(Run.state == "finished")
                    return session.scalars(finished).one()

            def kill(name: str, share: int) -> None:
                until(lambda: ended() >= share, 3_600, every_s=0.2, detail=ended)
                until(lambda: running.children().get(name)).kill()

            for at, name in enumerate(KILLED, 1):
                kill(name, n_runs * at // (len(KILLED) + 1))

            def state() -> str:
                with reading(engine) as session:
                    return session.get_one(Experiment, row_id).state

            until(lambda: state() != "running", 3_600, every_s=0.2, detail=ended)
            with reading(engine) as session:
                cell = ExperimentCell
                filled = session.execute(
                    select(cell.draw, cell.environment, cell.arm, Run.seed, Run.state)
                    .join(Run)
                    .order_by(cell.number)
                ).all()
                assert session.scalars(select(func.count()).select_from(Run)).one() == n_runs
    n_draws, environments, n_arms = (4, ENVIRONMENTS[:1], n) if path == "sweeps" else (n, ENVIRONMENTS, 2)
    assert [tuple(row) for row in filled] == [
        (draw, environment, arm, draw, "finished")
        for draw in range(n_draws)
        for environment in environments
        for arm in range(n_arms)
    ]
