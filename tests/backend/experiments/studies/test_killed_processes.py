"""A study whose installation loses its processes, one after the other."""

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


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(
    "n_draws",
    [pytest.param(5, marks=pytest.mark.long), pytest.param(30, marks=pytest.mark.benchmark)],
    ids=lambda n: f"{4 * n} runs",
)
def test_every_cell_has_exactly_its_run_after_kills(n_draws: int) -> None:
    n_runs = 4 * n_draws
    study = {
        "name": "killed",
        "arms": [
            {"label": "PAAC", "algorithm": "paac"},
            {"label": "n-step Q", "algorithm": "paac_q"},
        ],
        "environments": list(ENVIRONMENTS),
        "draws": {
            "n": n_draws,
            "space": {"config.learning_rate": {"distribution": "log_uniform", "low": 1e-4, "high": 1e-1}},
        },
        "run": {"stop": {"agent_steps": 600}},
        "concurrency": 8,
    }
    with short_folder() as folder:
        home = folder / "home"
        with (
            installation(home, lease_s=5, reconcile_interval_s=0.5, slots=2) as running,
            opened(Settings(home=home).database) as engine,
        ):
            answer = running.log_in().post("/api/v1/studies", json={"study": study})
            study_id = answer.json()["id"]

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
                    return session.get_one(Experiment, study_id).state

            until(lambda: state() != "running", 3_600, every_s=0.2, detail=ended)
            with reading(engine) as session:
                filled = session.execute(
                    select(
                        ExperimentCell.arm,
                        ExperimentCell.environment,
                        ExperimentCell.draw,
                        Run.seed,
                        Run.state,
                    )
                    .join(Run)
                    .order_by(ExperimentCell.number)
                ).all()
                assert session.scalars(select(func.count()).select_from(Run)).one() == n_runs
    wanted = [
        (arm, environment, draw, draw, "finished")
        for draw in range(n_draws)
        for environment in ENVIRONMENTS
        for arm in range(2)
    ]
    assert [tuple(row) for row in filled] == wanted
