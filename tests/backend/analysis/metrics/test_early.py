import pytest
from sqlalchemy import Engine

from backend.analysis.metrics import repository
from backend.analysis.metrics.early import EPISODE_LENGTH, mark_early
from backend.db import Run
from backend.db.engine import writing
from backend.specs.events import PointsEvent
from tests.support.rows import make_fork, make_run


def add(engine: Engine, run_id: str, lengths: list[float], agent_steps: int) -> int:
    """Append the lengths of ended episodes; return up to where the score is early."""
    n = len(lengths)
    point = PointsEvent(
        metric=EPISODE_LENGTH,
        agent_steps=[agent_steps] * n,
        frames=[agent_steps] * n,
        wall_time_s=[1.0] * n,
        episodes=[0] * n,
        value=lengths,
    )
    with writing(engine) as session:
        run = session.get_one(Run, run_id)
        if lengths:
            repository.append(session, run_id, 1, 1, [point])
        run.agent_steps = agent_steps
        mark_early(session, run)
        return run.early_agent_steps


@pytest.mark.parametrize("fork_at", [0, 50_000])
def test_score_is_early_while_most_steps_are_those_of_running_episodes(engine: Engine, fork_at: int) -> None:
    """32 environments whose episodes have 1 or 200 steps, half of them each."""
    run = make_run(engine)
    run_id = make_fork(engine, run.id, fork_at).id if fork_at else run.id
    assert add(engine, run_id, [1.0] * 32, fork_at + 320) == fork_at + 320
    assert add(engine, run_id, [], fork_at + 5_120) == fork_at + 5_120
    early = add(engine, run_id, [200.0] * 32, fork_at + 6_450)
    assert early == fork_at + 5_120, "each environment has done a long episode"


def test_script_that_logs_one_environment_of_many_has_a_score(engine: Engine) -> None:
    run_id = make_run(engine).id
    with writing(engine) as session:
        session.get_one(Run, run_id).origin = "external"
    assert add(engine, run_id, [200.0] * 20, 32 * 4_000) == 32 * 4_000
    assert add(engine, run_id, [200.0] * 80, 32 * 20_000) == 32 * 4_000


def test_without_lengths_of_episodes_no_score_is_early(engine: Engine) -> None:
    assert add(engine, make_run(engine).id, [], 5_000) == 0
