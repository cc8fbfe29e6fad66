from itertools import pairwise

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db import LogLine, Run
from backend.db.changes import take_changes, take_work
from backend.db.engine import reading, writing
from backend.runs.runs import repository, service
from backend.specs.run import parse_run_spec
from backend.specs.states import ENDED, LEASED, TRANSITIONS, RunState
from tests.support.rows import CARTPOLE, make_run


def _changes(session: Session) -> list[tuple[str, str, str | None, list[str]]]:
    return [(change.kind, change.id, change.state, change.changed) for change in take_changes(session)]


def test_create_stores_spec_and_wakes_queue(engine: Engine) -> None:
    with writing(engine) as session:
        run = service.create(session, parse_run_spec(CARTPOLE | {"seed": 7, "tags": ["a"]}))
    assert take_work(session) == ["cpu"]
    assert _changes(session) == [("run", run.id, "queued", [])]
    with reading(engine) as session:
        stored = repository.get(session, run.id)
        assert stored is not None
        assert parse_run_spec(stored.spec).seed == stored.seed == 7
        assert stored.spec["config"]["n_e"] == 16
        assert [(t.before, t.after) for t in repository.transitions(session, run.id)] == [(None, "queued")]


def test_delete_reports_change(engine: Engine) -> None:
    run = make_run(engine)
    with writing(engine) as session:
        service.remove(session, session.get_one(Run, run.id))
    assert _changes(session) == [("run", run.id, "deleted", [])]


@pytest.mark.parametrize("before", RunState)
def test_transition_accepts_only_legal_moves(engine: Engine, before: RunState) -> None:
    for after in RunState:
        run = make_run(engine, before)
        with writing(engine) as session:
            locked = repository.get(session, run.id, for_update=True)
            assert locked is not None
            revision = locked.revision
            if after in TRANSITIONS[before]:
                service.transition(session, locked, after, "why")
                assert locked.state == after
                assert locked.revision == revision + 1
            else:
                with pytest.raises(service.IllegalTransition, match=f"{before.value}.*{after.value}"):
                    service.transition(session, locked, after, "why")
                assert (locked.state, locked.revision) == (before, revision)


def test_every_transition_is_recorded_and_logged(engine: Engine) -> None:
    for state in RunState:
        run = make_run(engine, state)
        with reading(engine) as session:
            moves = repository.transitions(session, run.id)
            query = select(LogLine.message).where(LogLine.run_id == run.id).order_by(LogLine.id)
            lines = session.scalars(query).all()
        assert [m.before for m in moves[1:]] == [m.after for m in moves[:-1]]
        assert all(RunState(b.after) in TRANSITIONS[RunState(a.after)] for a, b in pairwise(moves))
        assert lines == [f"{m.after}: {m.reason}" for m in moves]
        assert run.revision == len(moves)


def test_transition_to_ended_state_clears_host_and_stop_request(engine: Engine) -> None:
    run = make_run(engine, RunState.RUNNING)
    with writing(engine) as session:
        locked = repository.get(session, run.id, for_update=True)
        assert locked is not None
        locked.host, locked.stop_requested = "here", "stop"
        service.transition(session, locked, RunState.STOPPING, "asked")
        assert (locked.host, locked.stop_requested, locked.ended_at) == ("here", "stop", None)
        service.transition(session, locked, RunState.STOPPED, "done")
        assert [locked.host, locked.stop_requested] == [None, None]
        assert locked.ended_at is not None
    assert RunState.STOPPED in ENDED
    assert RunState.STOPPED not in LEASED


def test_changes_are_reported_only_after_commit(engine: Engine) -> None:
    run = make_run(engine)
    with writing(engine) as session:
        service.bump_revision(session, run.id)
    assert _changes(session) == [("run", run.id, "queued", [])]
    with reading(engine) as session:
        assert session.scalars(select(Run.revision)).one() == 2
        assert _changes(session) == []


def test_delete_removes_run_and_log_lines(engine: Engine) -> None:
    run = make_run(engine, RunState.FINISHED)
    with writing(engine) as session:
        locked = repository.get(session, run.id, for_update=True)
        assert locked is not None
        service.remove(session, locked)
    with reading(engine) as session:
        assert session.scalars(select(Run.id)).all() == []
        assert session.scalars(select(LogLine.id)).all() == []
