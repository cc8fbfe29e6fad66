"""A sweep whose installation loses its processes, one after the other."""

import pytest
from sqlalchemy import func, select

from backend.db import Experiment, ExperimentCell, Run
from backend.db.engine import opened, reading
from backend.platform.settings import Settings
from tests.support.databases import short_folder
from tests.support.installation import installation
from tests.support.waiting import until

pytestmark = pytest.mark.service

SEEDS = 4
KILLED = ("web", "worker", "redis")


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(
    "n_configurations",
    [pytest.param(10, marks=pytest.mark.long), pytest.param(50, marks=pytest.mark.benchmark)],
    ids=lambda n: f"{n * SEEDS} runs",
)
def test_every_configuration_has_exactly_its_seeds_after_kills(n_configurations: int) -> None:
    n_runs = n_configurations * SEEDS
    body = {
        "name": "killed",
        "run": {"algorithm": "paac", "environment": "CartPole-v1", "stop": {"agent_steps": 600}},
        "space": {
            "config.learning_rate": {
                "distribution": "log_uniform", "low": 1e-4, "high": 1e-1, "n": n_configurations
            }
        },
        "max_seeds": SEEDS,
        "racing": None,
        "concurrency": 8,
    }  # fmt: skip
    with short_folder() as folder:
        home = folder / "home"
        with (
            installation(home, lease_s=5, reconcile_interval_s=0.5, slots=2) as running,
            opened(Settings(home=home).database) as engine,
        ):
            sweep_id = running.log_in().post("/api/v1/sweeps", json=body).json()["id"]

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
                    return session.get_one(Experiment, sweep_id).state

            until(lambda: state() != "running", 3_600, every_s=0.2, detail=ended)
            with reading(engine) as session:
                members = session.execute(
                    select(ExperimentCell.arm, ExperimentCell.seed, Run.seed, Run.state)
                    .join(Run)
                    .order_by(ExperimentCell.arm, ExperimentCell.seed)
                ).all()
                assert session.scalars(select(func.count()).select_from(Run)).one() == n_runs
    wanted = [(number, seed) for number in range(n_configurations) for seed in range(SEEDS)]
    assert [tuple(row) for row in members] == [(*pair, pair[1], "finished") for pair in wanted]
