"""Tables of scores that are kept between requests: equal to new ones after every kind of change."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, delete, select

from backend.access.auth import repository as auth
from backend.analysis.scores import service
from backend.db import Host, Run
from backend.db.engine import reading, writing
from backend.platform.principals import Role
from backend.replays.recordings.service import MIN_GAMES, human_references
from backend.runs.catalogue import service as catalogue
from backend.runs.evaluations import service as evaluations
from backend.runs.runs import actions
from backend.runs.runs import service as runs
from backend.specs.states import RunState
from tests.support.rows import PATHS, add_host, evaluation_row, make_checkpoint, make_fork, make_run
from tests.support.start_sets import add_recording

pytestmark = pytest.mark.service

PONG: dict[str, Any] = {"environment": "ALE/Pong-v5", "algorithm": "paac"}
BREAKOUT: dict[str, Any] = PONG | {"environment": "ALE/Breakout-v5"}
CUSTOM: dict[str, Any] = {
    "id": "Custom/Line-v0", "title": "Line", "observation": "vector", "actions": "discrete",
    "action_names": ["LEFT", "RIGHT"],
}  # fmt: skip


def scored(engine: Engine, score: float, seed: int, **changes: Any) -> str:
    """A finished run with this score. Return its id."""
    run = make_run(engine, RunState.FINISHED, seed=seed, **(PONG | changes))
    with writing(engine) as session:
        session.get_one(Run, run.id).agent_steps = 10_000
        session.add(evaluation_row(run.id, 10_000, score, protocol="noop_starts"))
    return run.id


def kept(engine: Engine, min_seeds: int = 1) -> service.ScoreTable:
    with reading(engine) as session:
        return service.read_table(session, min_seeds=min_seeds)


def built(engine: Engine) -> service.ScoreTable:
    with reading(engine) as session:
        return service.build_table(session, catalogue.environments(session), human_references(session))


def finish(engine: Engine, score: float) -> Callable[[], object]:
    """What lets a run that trains finish with this score."""
    run = make_run(engine, RunState.RUNNING, seed=50, **PONG)

    def change() -> None:
        with writing(engine) as session:
            session.add(evaluation_row(run.id, 10_000, score, protocol="noop_starts"))
            runs.transition(
                session, runs.get(session, run.id, for_update=True), RunState.FINISHED, "for the test"
            )

    return change


def evaluate(engine: Engine, run_id: str, score: float) -> Callable[[], object]:
    """What ends a requested evaluation as a worker's job does."""
    with reading(engine) as session:
        make_checkpoint(engine, session.get_one(Run, run_id), 20_000)
    with writing(engine) as session:
        evaluation, _ = evaluations.request(session, run_id, protocol="sticky_actions_5min")

    def change() -> None:
        with writing(engine) as session:
            evaluations.record_returns(session, evaluation.id, [score], [100], score)
            runs.bump_revision(session, run_id)

    return change


def test_kept_table_is_that_of_a_new_request_after_every_kind_of_change(engine: Engine) -> None:
    first, second, third = (scored(engine, 10.0 * seed, seed) for seed in range(3))
    parent = make_run(engine, RunState.STOPPED, seed=7, **BREAKOUT).id
    for seed, score in ((8, 5.0), (9, 6.0)):
        fork = make_fork(engine, parent, 10_000 * seed, seed=seed, **BREAKOUT)
        with writing(engine) as session:
            row = session.get_one(Run, fork.id)
            for state in PATHS[RunState.FINISHED]:
                runs.transition(session, row, state, "for the test")
            session.add(evaluation_row(fork.id, row.agent_steps, score, protocol="noop_starts"))

    def act(action: Callable[..., object], *arguments: Any, **named: Any) -> Callable[[], object]:
        def change() -> None:
            with writing(engine) as session:
                action(session, *arguments, **named)

        return change

    def play_games() -> None:
        with writing(engine) as session:
            person = auth.add_user(session, "ada", Role.OPERATOR).id
        for _ in range(MIN_GAMES):
            add_recording(engine, person, environment="Labyrinth-Small-v0", n=5)

    def forget_host() -> None:
        with writing(engine) as session:
            session.execute(delete(Host).where(Host.id == "a"))

    changes: dict[str, Callable[[], object]] = {
        "a run finishes": finish(engine, 90.0),
        "an evaluation under another protocol arrives": evaluate(engine, first, 3.0),
        "a run is archived": act(actions.archive, second, True),
        "it is unarchived": act(actions.archive, second, False),
        "its group changes": act(actions.change, second, {"group": "other"}),
        "it is deleted so that it can be restored": act(actions.delete, second, restorable=True),
        "it is restored": act(actions.restore, second),
        "a run is deleted": act(actions.delete, third),
        "the parent of two forks is deleted": act(actions.delete, parent),
        "a run is resumed": act(actions.resume, first, None, None),
        "a host brings a custom environment": lambda: add_host(
            engine, "a", environments=[CUSTOM["id"]], custom_environments=[CUSTOM]
        ),
        "the host leaves": forget_host,
        "a person has played": play_games,
    }
    with writing(engine) as session:
        session.get_one(Run, first).spec = session.get_one(Run, first).spec | {
            "stop": {"agent_steps": 20_000, "wall_time_s": None, "score": None}
        }
    before = kept(engine)
    for name, change in changes.items():
        change()
        after = kept(engine)
        assert after.scores == built(engine).scores, name
        assert after.runs == built(engine).runs, name
        assert after.scores != before.scores, name
        before = after


def test_table_is_built_once_until_something_changes_and_few_are_kept(engine: Engine) -> None:
    scored(engine, 10.0, 0)
    first = kept(engine)
    training = make_run(engine, RunState.RUNNING, **PONG)
    with writing(engine) as session:
        runs.bump_revision(session, training.id)
    assert kept(engine) is first, "a run that trains has no score yet"
    others = [kept(engine, min_seeds) for min_seeds in range(2, service.KEPT_TABLES + 1)]
    assert kept(engine) is first
    assert kept(engine, service.KEPT_TABLES + 1) is not others[-1]
    assert kept(engine) is first
    assert kept(engine, 2) is not others[0], "the table of the oldest request was dropped"


def test_best_configuration_is_one_whose_runs_have_all_finished(engine: Engine) -> None:
    for seed in range(2):
        scored(engine, 5.0, seed)
    scored(engine, 9.0, 0, config={"beta": 0.1})
    make_run(engine, RunState.FAILED, seed=1, **PONG, config={"beta": 0.1})

    def score() -> float | None:
        (row,) = [row for row in kept(engine).scores.rows if row.environment == "ALE/Pong-v5"]
        return next(cell.value for cell in row.cells if cell is not None and cell.runs)

    assert score() == 5.0
    with writing(engine) as session:
        for run in session.scalars(select(Run).where(Run.state == RunState.FAILED)):
            run.archived = True
            runs.touch(session, run)
    assert score() == 9.0
