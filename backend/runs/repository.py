"""Runs in the database: the only place where their rows change."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.db import Attempt, Checkpoint, DeletedRun, LogLine, Run, Transition, keyset
from backend.db.base import new_run_id, storable
from backend.db.changes import host_queue, record_run_change, record_work
from backend.db.clock import database_now
from backend.db.run import WITH_DELETED
from backend.runs.conditions import condition, expression
from backend.runs.fields import MetricField, resolve
from backend.runs.filters import Node
from backend.specs.names import default_name
from backend.specs.run import RunSpec
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import ENDED, EXTERNAL_TRANSITIONS, LEASED, TRANSITIONS, RunState
from backend.storage import repository as storage

RESTORABLE_S = 3600.0
"""How long a run that was set aside can be restored."""

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
"""Columns that runs can be sorted by, apart from their settings and metrics."""

_COPIED = ("algorithm", "environment", "seed", "queue", "priority", "group", "notes")
_ATTEMPTS = select(Attempt).where(Attempt.run_id == bindparam("run_id")).order_by(Attempt.number)
_TRANSITIONS = select(Transition).where(Transition.run_id == bindparam("run_id")).order_by(Transition.id)
_CHILDREN = select(Run).where(Run.parent_id == bindparam("run_id")).order_by(Run.id)


class IllegalTransition(Exception):
    """A transition that the table of the run's origin does not have."""

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
    """Store a new run, `queued`, and wake the workers of its queue after the commit.

    Args:
        session: a writing session.
        spec: the specification.
        created_by: id of the user.
        run_id: its id; default: a new one.
        start: another run's checkpoint that it starts from.
        reason: one line for the log.
    """
    run = Run(
        id=run_id or new_run_id(),
        created_at=database_now(session),
        created_by=created_by,
        name=spec.name or default_name(spec),
        **{name: getattr(spec, name) for name in _COPIED},
        spec=spec.model_dump(mode="json"),
        wanted_host=spec.host,
        tags=list(spec.tags),
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
    add(session, run)
    _wake_workers(session, run)
    return run


def add(session: Session, run: Run) -> None:
    """Store a new run in its first state, with the reason for it."""
    session.add(run)
    session.flush()
    _record(session, run, None, run.state_reason, run.created_at, "info", run.created_at)


def get(session: Session, run_id: str, *, for_update: bool = False) -> Run | None:
    """The run, or None. `for_update` locks its row until the end of the transaction: read before you
    write."""
    return session.get(Run, run_id, with_for_update=for_update or None, populate_existing=for_update)


LogLevel = Literal["info", "warning", "error"]

_LEVELS: dict[RunState, LogLevel] = {RunState.LOST: "warning", RunState.FAILED: "error"}
"""Level of the log line of a transition to a state; `info` for the others."""


def transition(
    session: Session,
    run: Run,
    after: RunState,
    reason: str,
    level: LogLevel | None = None,
    logged_at: datetime | None = None,
) -> None:
    """Change the state of a run: the only function that does.

    Writes the new state and its reason, a `Transition` row and a line of the run's log, and bumps the
    revision. A state without a lease clears host and lease; an ended state clears the stop request.

    Args:
        session: a writing session.
        run: loaded with `get(..., for_update=True)`, or locked by a claim, in this transaction.
        after: the new state.
        reason: one line for users.
        level: of the log line; by default that of the new state.
        logged_at: time of the log line; by default now. An engine's lines have the time of its host.

    Raises:
        IllegalTransition: the table of its origin does not allow it; nothing is changed.
    """
    before = RunState(run.state)
    if after not in (EXTERNAL_TRANSITIONS if run.origin == EXTERNAL else TRANSITIONS).get(before, ()):
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
        _wake_workers(session, run)
    _record(session, run, before, reason, now, level or _LEVELS.get(after, "info"), logged_at or now)


def request_stop(session: Session, run: Run, *, kill: bool, by: str = "") -> None:
    """Request the end of a locked run that a worker holds; repeated requests are harmless.

    Args:
        session: a writing session.
        run: in a state with a lease.
        kill: immediately, without a last checkpoint.
        by: words after "stop requested" in the reason.
    """
    request = "kill" if kill or run.stop_requested == "kill" else "stop"
    if request != run.stop_requested:
        run.stop_requested = request
        if run.host is not None:
            record_work(session, host_queue(run.host))
        if run.state == RunState.STOPPING:
            touch(session, run)
    if run.state != RunState.STOPPING:
        transition(session, run, RunState.STOPPING, f"{'kill' if kill else 'stop'} requested{by}")


def touch(session: Session, run: Run, parts: Collection[str] | None = None) -> int:
    """Bump the revision of a locked run; the change is published after the commit. Returns the new revision.

    `parts` names what has changed, as for `backend.db.changes.record_run_change`; None: anything may have.
    """
    run.revision += 1
    record_run_change(session, run.id, run.revision, run.state, parts)
    return run.revision


def bump_revision(session: Session, run_id: str) -> int:
    """Bump the revision of a run whose row is not loaded. Returns the new revision."""
    statement = update(Run).where(Run.id == run_id).values(revision=Run.revision + 1)
    revision, state = session.execute(statement.returning(Run.revision, Run.state)).one()
    record_run_change(session, run_id, revision, state)
    return int(revision)


def add_log_lines(session: Session, run_id: str, attempt: int, lines: Iterable[dict[str, Any]]) -> None:
    """Append to the run's log; each line has `time`, `level`, `message`, and optionally `agent_steps`."""
    rows = [
        {"agent_steps": None, **line, "message": storable(line["message"])}
        | {"run_id": run_id, "attempt": attempt}
        for line in lines
    ]
    if rows:
        session.execute(insert(LogLine), rows)


def change(session: Session, run: Run, changes: dict[str, Any]) -> None:
    """Change fields of a locked run, in its columns and in its spec, and bump its revision."""
    spec = dict(run.spec)
    for name, value in changes.items():
        if name in Run.__mapper__.columns:
            setattr(run, name, value)
        if name in RunSpec.model_fields:
            spec[name] = value
    run.spec = spec
    touch(session, run)


def delete(session: Session, run: Run) -> None:
    """Delete a run's row and all dependent rows, and record that it existed. Clean-up deletes its files."""
    session.add(DeletedRun(id=run.id))
    storage.remove_all_files(session, run.id)
    record_run_change(session, run.id, run.revision + 1, "deleted")
    session.delete(run)
    session.flush()


def purge(session: Session, limit: int = 100) -> list[str]:
    """Delete runs that were set aside longer than `RESTORABLE_S` ago, and return their ids."""
    before = database_now(session) - timedelta(seconds=RESTORABLE_S)
    query = select(Run).where(Run.deleted_at < before).order_by(Run.id).limit(limit)
    found = session.scalars(query.with_for_update(skip_locked=True), execution_options=WITH_DELETED).all()
    for run in found:
        delete(session, run)
    return [run.id for run in found]


def deleted(session: Session, ids: Sequence[str]) -> set[str]:
    """The ids among these of deleted runs."""
    return set(session.scalars(select(DeletedRun.id).where(DeletedRun.id.in_(ids))))


def groups_of(session: Session, ids: Sequence[str]) -> dict[str, str | None]:
    """The groups of those of these runs that exist."""
    return dict(session.execute(select(Run.id, Run.group).where(Run.id.in_(ids))).all())


def attempts(session: Session, run_id: str) -> Sequence[Attempt]:
    """All attempts, oldest first."""
    return session.scalars(_ATTEMPTS, {"run_id": run_id}).all()


def transitions(session: Session, run_id: str) -> Sequence[Transition]:
    """All state transitions, oldest first."""
    return session.scalars(_TRANSITIONS, {"run_id": run_id}).all()


def page(
    session: Session, node: Node, *, sort: str, descending: bool, limit: int, cursor: str | None
) -> tuple[list[Run], str | None, int]:
    """One page of the matching runs, the cursor of the next page, and the total number of matches.

    Args:
        session: any session.
        node: which runs.
        sort: a key of `SORTS`, or the name of a setting or metric.
        descending: largest first.
        limit: maximum number of rows.
        cursor: from the previous page.

    Raises:
        BadCursor: `cursor` does not belong to a list sorted like this.
        UnknownField: there is no such field.
    """
    matches = condition(node)
    rows, next_cursor = keyset.page(
        session,
        select(Run).where(matches),
        by=SORTS[sort] if sort in SORTS else _computed(sort),
        row_id=Run.id,
        descending=descending,
        limit=limit,
        cursor=cursor,
    )
    return rows, next_cursor, count(session, node)


def ids(session: Session, node: Node, *, limit: int, after: str = "") -> list[str]:
    """Ids of the matching runs, in order, those after `after`."""
    query = select(Run.id).where(condition(node), Run.id > after)
    return list(session.scalars(query.order_by(Run.id).limit(limit)))


def count(session: Session, node: Node) -> int:
    """Number of matching runs."""
    return session.scalars(select(func.count()).select_from(Run).where(condition(node))).one()


def _computed(name: str) -> keyset.Computed:
    field = resolve(name)
    number = isinstance(field, MetricField) or field.kind in ("number", "any")
    return keyset.Computed(name, expression(field), float if number else str)


def children(session: Session, run_id: str) -> Sequence[Run]:
    """The forks of this run, oldest first."""
    return session.scalars(_CHILDREN, {"run_id": run_id}).all()


def count_by_state(session: Session) -> dict[str, int]:
    """Number of runs in each state."""
    counts = session.execute(select(Run.state, func.count()).group_by(Run.state))
    return {**dict.fromkeys(RunState, 0), **dict(counts.all())}


def _wake_workers(session: Session, run: Run) -> None:
    record_work(session, host_queue(run.wanted_host) if run.wanted_host else run.queue)


def _record(
    session: Session,
    run: Run,
    before: RunState | None,
    reason: str,
    now: datetime,
    level: LogLevel,
    logged_at: datetime,
) -> None:
    session.add(
        Transition(
            run_id=run.id, time=now, before=before, after=run.state, attempt=run.attempt, reason=reason
        )
    )
    line = {"level": level, "message": f"{run.state}: {reason}", "agent_steps": run.agent_steps}
    add_log_lines(session, run.id, run.attempt, [line | {"time": logged_at}])
    touch(session, run)
