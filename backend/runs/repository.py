"""Runs in the database."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.db import Attempt, DeletedRun, LogLine, Run, Transition, keyset
from backend.db.run import WITH_DELETED
from backend.runs.conditions import condition, expression
from backend.runs.fields import MetricField, resolve
from backend.runs.filters import Node
from backend.specs.states import RunState

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

_ATTEMPTS = select(Attempt).where(Attempt.run_id == bindparam("run_id")).order_by(Attempt.number)
_TRANSITIONS = select(Transition).where(Transition.run_id == bindparam("run_id")).order_by(Transition.id)
_CHILDREN = select(Run).where(Run.parent_id == bindparam("run_id")).order_by(Run.id)


def add(session: Session, run: Run) -> None:
    """Store a new run."""
    session.add(run)
    session.flush()


def get(session: Session, run_id: str, *, for_update: bool = False) -> Run | None:
    """The run, or None. `for_update` locks its row until the end of the transaction: read before you
    write."""
    return session.get(Run, run_id, with_for_update=for_update or None, populate_existing=for_update)


def get_restorable(session: Session, run_id: str) -> Run | None:
    """A run that was deleted as restorable, locked; None if there is none of this id."""
    query = select(Run).where(Run.id == run_id, Run.deleted_at.is_not(None)).with_for_update()
    return session.scalars(query, execution_options=WITH_DELETED).one_or_none()


def deleted_before(session: Session, before: datetime, limit: int) -> Sequence[Run]:
    """Runs that were deleted as restorable before a time, locked; those that another transaction has locked
    are left out."""
    query = select(Run).where(Run.deleted_at < before).order_by(Run.id).limit(limit)
    return session.scalars(query.with_for_update(skip_locked=True), execution_options=WITH_DELETED).all()


def deleted_page(session: Session, limit: int, cursor: str | None) -> tuple[list[Run], str | None, int]:
    """One page of the runs that can be restored, those deleted last first; the cursor of the next page, and
    their number.

    Raises:
        BadCursor: `cursor` does not belong to this list.
    """
    is_deleted = Run.deleted_at.is_not(None)
    rows, next_cursor = keyset.page(
        session,
        select(Run).where(is_deleted).execution_options(**WITH_DELETED),
        by=Run.deleted_at,
        row_id=Run.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )
    count = select(func.count()).select_from(Run).where(is_deleted)
    return rows, next_cursor, session.scalars(count, execution_options=WITH_DELETED).one()


def queue(session: Session) -> list[tuple[str, int]]:
    """Id and priority of every queued run, in the order in which workers claim them."""
    query = select(Run.id, Run.priority).where(Run.state == RunState.QUEUED)
    rows = session.execute(query.order_by(Run.priority.desc(), Run.id))
    return [(run_id, priority) for run_id, priority in rows]


def has_any(session: Session) -> bool:
    """Whether there is a run, one that can be restored included."""
    return session.scalars(select(Run.id).limit(1), execution_options=WITH_DELETED).first() is not None


def deleted_among(session: Session, ids: Sequence[str]) -> set[str]:
    """The ids among these of deleted runs."""
    return set(session.scalars(select(DeletedRun.id).where(DeletedRun.id.in_(ids))))


def delete(session: Session, run: Run) -> None:
    """Delete a run's row and all dependent rows."""
    session.delete(run)
    session.flush()


def bump_revision(session: Session, run_id: str) -> tuple[int, str]:
    """Add one to the revision of a run whose row is not loaded. Returns its new revision and its state."""
    statement = update(Run).where(Run.id == run_id).values(revision=Run.revision + 1)
    revision, state = session.execute(statement.returning(Run.revision, Run.state)).one()
    return int(revision), state


def add_log_lines(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to the logs of runs."""
    session.execute(insert(LogLine), rows)


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
        cursor: the cursor from the previous page.

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
    counts = session.execute(select(Run.state, func.count()).where(Run.demo.is_(False)).group_by(Run.state))
    return {**dict.fromkeys(RunState, 0), **dict(counts.all())}
