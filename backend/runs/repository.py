"""Runs in the database: the one place their rows change."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    and_,
    cast,
    false,
    func,
    insert,
    literal,
    not_,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session
from sqlalchemy.sql import operators

from backend.db import Attempt, Checkpoint, DeletedRun, LogLine, Run, Transition, keyset
from backend.db.changes import host_queue, note_run, note_work
from backend.db.clock import database_now
from backend.db.ids import new_id
from backend.runs.filters import FIELDS, All, Either, Node, Not, Term, Word
from backend.specs.names import default_name
from backend.specs.run import RunSpec
from backend.specs.states import ENDED, LEASED, TRANSITIONS, RunState

SORTS: dict[str, InstrumentedAttribute[Any]] = {
    "created_at": Run.created_at,
    "started_at": Run.started_at,
    "ended_at": Run.ended_at,
    "name": Run.name,
    "algorithm": Run.algorithm,
    "environment": Run.environment,
    "state": Run.state,
    "host": Run.host,
    "seed": Run.seed,
    "priority": Run.priority,
    "group": Run.group,
    "score": Run.score,
    "best_return": Run.best_return,
    "agent_steps": Run.agent_steps,
    "frames": Run.frames,
    "episodes": Run.episodes,
    "wall_time_s": Run.wall_time_s,
    "agent_steps_per_s": Run.agent_steps_per_s,
}
"""What runs may be sorted by."""


class IllegalTransition(Exception):
    """A move that `TRANSITIONS` does not have."""

    def __init__(self, run_id: str, before: RunState, after: RunState) -> None:
        super().__init__(f"run {run_id} is {before.value}: it cannot become {after.value}")
        self.before = before
        self.after = after


def create(
    session: Session,
    spec: RunSpec,
    *,
    created_by: str | None = None,
    run_id: str | None = None,
    start: Checkpoint | None = None,
    reason: str = "created",
) -> Run:
    """Store a new run, `queued`, and have its queue poked after the commit.

    Args:
        session: a writing session.
        spec: what to run.
        created_by: id of the user who asked.
        run_id: its id, where it is settled already.
        start: another run's checkpoint that it begins from.
        reason: one line that tells a person why it is there.
    """
    now = database_now(session)
    run = Run(
        id=run_id or new_id(),
        created_at=now,
        created_by=created_by,
        name=spec.name or default_name(spec),
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
        state_reason=reason,
        attempt=0,
        revision=0,
    )
    if start is not None:
        run.parent_id, run.forked_at_agent_steps = start.run_id, start.agent_steps
        run.agent_steps, run.frames, run.updates = start.agent_steps, start.frames, start.updates
        run.episodes, run.wall_time_s = start.episodes, start.wall_time_s
    session.add(run)
    session.flush()
    _record(session, run, None, reason, now)
    _poke_for(session, run)
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
        _poke_for(session, run)
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
    rows = [
        {"agent_steps": None, **line, "message": line["message"].replace("\0", "␀")}
        | {"run_id": run_id, "attempt": attempt}
        for line in lines
    ]
    if rows:
        session.execute(insert(LogLine), rows)


def change(session: Session, run: Run, changes: dict[str, Any]) -> None:
    """Change fields of a locked run, in its columns and in its spec, and count it."""
    spec = dict(run.spec)
    for name, value in changes.items():
        if name in Run.__mapper__.columns:
            setattr(run, name, value)
        if name in spec:
            spec[name] = value
    run.spec = spec
    touch(session, run)


def delete(session: Session, run: Run) -> None:
    """Delete a run's row and everything that hangs on it, and remember that it was there."""
    session.add(DeletedRun(id=run.id))
    note_run(session, run.id, run.revision + 1, "deleted")
    session.delete(run)
    session.flush()


def deleted(session: Session, ids: Sequence[str]) -> set[str]:
    """Those of these runs that were deleted."""
    return set(session.scalars(select(DeletedRun.id).where(DeletedRun.id.in_(ids))))


def attempts(session: Session, run_id: str) -> Sequence[Attempt]:
    """All attempts, the first first."""
    return session.scalars(select(Attempt).where(Attempt.run_id == run_id).order_by(Attempt.number)).all()


def transitions(session: Session, run_id: str) -> Sequence[Transition]:
    """All changes of state, the first first."""
    return session.scalars(
        select(Transition).where(Transition.run_id == run_id).order_by(Transition.id)
    ).all()


def page(
    session: Session, asked: Node, *, sort: str, descending: bool, limit: int, cursor: str | None
) -> tuple[list[Run], str | None, int]:
    """One page of the runs that `asked` describes, the next page's cursor, and how many there are in all.

    Raises:
        BadCursor: `cursor` is not from a list sorted so.
    """
    fits = condition(asked)
    rows, next_cursor = keyset.page(
        session,
        select(Run).where(fits),
        by=SORTS[sort],
        row_id=Run.id,
        descending=descending,
        limit=limit,
        cursor=cursor,
    )
    total = session.scalars(select(func.count()).select_from(Run).where(fits)).one()
    return rows, next_cursor, total


def ids(session: Session, asked: Node, *, limit: int) -> list[str]:
    """Ids of the runs that `asked` describes."""
    return list(session.scalars(select(Run.id).where(condition(asked)).order_by(Run.id).limit(limit)))


def children(session: Session, run_id: str) -> Sequence[Run]:
    """The runs that began from a checkpoint of this one, the oldest first."""
    return session.scalars(select(Run).where(Run.parent_id == run_id).order_by(Run.id)).all()


def count_by_state(session: Session) -> dict[str, int]:
    """How many runs are in each state."""
    counts = session.execute(select(Run.state, func.count()).group_by(Run.state))
    return {**dict.fromkeys(RunState, 0), **dict(counts.all())}


def log_page(
    session: Session, run_id: str, search: str | None, *, limit: int, cursor: str | None
) -> tuple[list[LogLine], str | None]:
    """One page of a run's log from its beginning, and the next page's cursor."""
    return keyset.page(
        session,
        _log(run_id, search),
        by=LogLine.id,
        row_id=LogLine.id,
        descending=False,
        limit=limit,
        cursor=cursor,
    )


def log_after(session: Session, run_id: str, search: str | None, line_id: int, limit: int) -> list[LogLine]:
    """The lines that follow one, the oldest first."""
    newer = _log(run_id, search).where(LogLine.id > line_id)
    return list(session.scalars(newer.order_by(LogLine.id).limit(limit)))


def log_before(
    session: Session, run_id: str, search: str | None, line_id: int | None, limit: int
) -> list[LogLine]:
    """The last lines before one (of all, without one), the oldest first."""
    older = _log(run_id, search)
    if line_id is not None:
        older = older.where(LogLine.id < line_id)
    return list(session.scalars(older.order_by(LogLine.id.desc()).limit(limit)))[::-1]


def condition(node: Node) -> ColumnElement[bool]:
    """What a row of `runs` must be for `node` to describe it."""
    match node:
        case All(parts):
            return and_(true(), *map(condition, parts))
        case Either(parts):
            return or_(*map(condition, parts))
        case Not(part):
            # A comparison with nothing is unknown, and so would its opposite be.
            return not_(func.coalesce(condition(part), false()))
        case Word(text):
            places = [Run.name, Run.notes, Run.algorithm, Run.environment, Run.group, cast(Run.tags, Text)]
            return or_(*(place.icontains(text, autoescape=True) for place in places))
        case Term("tag", operator, value):
            # Exact, unlike LIKE on SQLite: the list's text without the quoted tag is not the same text.
            tags: ColumnElement[str] = cast(Run.tags, Text)
            tag: ColumnElement[str] = literal(json.dumps(value))
            if operator == ":":
                tags, tag = func.lower(tags), func.lower(tag)
            without = func.replace(tags, tag, "")
            return without == tags if operator == "!=" else without != tags
        case Term(field, ":", value) if FIELDS[field] == "text":
            held: ColumnElement[bool] = _column(field).icontains(value, autoescape=True)
            return held
        case Term(field, ":", value) if FIELDS[field] == "id":
            same: ColumnElement[bool] = func.lower(_column(field)) == func.lower(value)
            return same
        case Term(field, operator, value):
            compared: ColumnElement[bool] = _OPERATORS[operator](_column(field), value)
            return compared


def _log(run_id: str, search: str | None) -> Select[LogLine]:
    lines = select(LogLine).where(LogLine.run_id == run_id)
    return lines.where(LogLine.message.icontains(search, autoescape=True)) if search else lines


def _column(field: str) -> Any:
    return Run.__mapper__.columns[field]


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ":": operators.eq,
    "=": operators.eq,
    "!=": operators.is_distinct_from,
    ">": operators.gt,
    ">=": operators.ge,
    "<": operators.lt,
    "<=": operators.le,
}


def _poke_for(session: Session, run: Run) -> None:
    note_work(session, host_queue(run.wanted_host) if run.wanted_host else run.queue)


def _record(session: Session, run: Run, before: RunState | None, reason: str, now: datetime) -> None:
    session.add(
        Transition(
            run_id=run.id, time=now, before=before, after=run.state, attempt=run.attempt, reason=reason
        )
    )
    line = {"time": now, "level": "info", "message": f"{run.state}: {reason}", "agent_steps": run.agent_steps}
    add_log_lines(session, run.id, run.attempt, [line])
    touch(session, run)
