"""Runs in the database: the one place their rows change."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from backend.db import Attempt, LogLine, Run, Transition
from backend.db.changes import note_run, note_work
from backend.db.clock import database_now
from backend.db.ids import new_id
from backend.specs.run import RunSpec
from backend.specs.states import ENDED, LEASED, TRANSITIONS, RunState


class IllegalTransition(Exception):
    """A move that `TRANSITIONS` does not have."""

    def __init__(self, run_id: str, before: RunState, after: RunState) -> None:
        super().__init__(f"run {run_id} is {before.value}: it cannot become {after.value}")
        self.before = before
        self.after = after


def create(session: Session, spec: RunSpec, *, created_by: str | None = None) -> Run:
    """Store a new run, `queued`, and have its queue poked after the commit."""
    now = database_now(session)
    run = Run(
        id=new_id(),
        created_at=now,
        created_by=created_by,
        name=spec.name or f"{spec.algorithm} {spec.environment.removeprefix('ALE/')} seed {spec.seed}",
        algorithm=spec.algorithm,
        environment=spec.environment,
        spec=spec.model_dump(mode="json"),
        seed=spec.seed,
        queue=spec.queue,
        wanted_host=spec.host,
        priority=spec.priority,
        group=spec.group,
        tags=list(spec.tags),
        notes=spec.notes,
        memory_estimate_bytes=spec.memory_estimate_bytes,
        state=RunState.QUEUED,
        state_reason="created",
        attempt=0,
        revision=0,
    )
    session.add(run)
    session.flush()
    _record(session, run, None, "created", now)
    note_work(session, run.queue)
    return run


def get(session: Session, run_id: str, *, for_update: bool = False) -> Run | None:
    """The run, or none. `for_update` locks its row until the transaction ends: read before you write."""
    return session.get(Run, run_id, with_for_update=for_update or None, populate_existing=for_update)


def transition(session: Session, run: Run, after: RunState, reason: str) -> None:
    """Move a run to another state: the only function that does.

    Writes the new state and its reason, a `Transition` row and a line of the run's log, and bumps the
    revision. A state without a lease drops host and lease; an ended one drops the wish to stop.

    Args:
        session: a writing session.
        run: loaded with `get(..., for_update=True)`, or locked by a claim, in this transaction.
        after: the new state.
        reason: one line that tells a person why.

    Raises:
        IllegalTransition: `TRANSITIONS` has no such move; nothing is changed.
    """
    before = RunState(run.state)
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(run.id, before, after)
    now = database_now(session)
    run.state = after
    run.state_reason = reason
    if after == RunState.STARTING and run.started_at is None:
        run.started_at = now
    if after not in LEASED:
        run.host = None
        run.lease_expires_at = None
        run.agent_steps_per_s = None
    if after in ENDED:
        run.ended_at = now
        run.stop_requested = None
    else:
        run.ended_at = None
    if after == RunState.QUEUED:
        note_work(session, run.queue)
    _record(session, run, before, reason, now)


def touch(session: Session, run: Run) -> int:
    """Count a change of a locked run's row and have it told after the commit. Returns the new revision."""
    run.revision += 1
    note_run(session, run.id, run.revision, run.state)
    return run.revision


def bump_revision(session: Session, run_id: str) -> int:
    """Count a change that concerns the run but not its row. Returns the new revision."""
    statement = update(Run).where(Run.id == run_id).values(revision=Run.revision + 1)
    revision, state = session.execute(statement.returning(Run.revision, Run.state)).one()
    note_run(session, run_id, revision, state)
    return int(revision)


def add_log_lines(session: Session, run_id: str, attempt: int, lines: Iterable[dict[str, Any]]) -> None:
    """Append to the run's log; each line has `time`, `level`, `message`, and may have `agent_steps`."""
    rows = [{"agent_steps": None, **line, "run_id": run_id, "attempt": attempt} for line in lines]
    if rows:
        session.execute(insert(LogLine), rows)


def delete(session: Session, run: Run) -> None:
    """Delete a run's row and everything that hangs on it."""
    session.delete(run)
    session.flush()


def attempts(session: Session, run_id: str) -> Sequence[Attempt]:
    """All attempts, the first first."""
    return session.scalars(select(Attempt).where(Attempt.run_id == run_id).order_by(Attempt.number)).all()


def transitions(session: Session, run_id: str) -> Sequence[Transition]:
    """All changes of state, the first first."""
    return session.scalars(
        select(Transition).where(Transition.run_id == run_id).order_by(Transition.id)
    ).all()


def _record(session: Session, run: Run, before: RunState | None, reason: str, now: datetime) -> None:
    session.add(
        Transition(
            run_id=run.id, time=now, before=before, after=run.state, attempt=run.attempt, reason=reason
        )
    )
    line = {"time": now, "level": "info", "message": f"{run.state}: {reason}", "agent_steps": run.agent_steps}
    add_log_lines(session, run.id, run.attempt, [line])
    touch(session, run)
