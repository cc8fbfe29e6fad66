"""Reading the log of a run and the changes of its state: only `repository` writes them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.orm import Session

from backend.db import Attempt, LogLine, Transition, folding, keyset
from backend.specs.states import RunState


@dataclass(frozen=True)
class TrainingStart:
    """When the training of an attempt started, and from where."""

    run_id: str
    time: datetime
    resumed_from_agent_steps: int


def training_starts(session: Session, run_ids: Sequence[str]) -> Iterator[TrainingStart]:
    """Every start of training of the runs, oldest first; an external run that was lost has no other one."""
    attempt = and_(Attempt.run_id == Transition.run_id, Attempt.number == Transition.attempt)
    starts = or_(Transition.before.is_(None), Transition.before == RunState.STARTING)
    query = (
        select(Transition.run_id, Transition.time, func.coalesce(Attempt.resumed_from_agent_steps, 0))
        .join(Attempt, attempt, isouter=True)
        .where(Transition.run_id.in_(run_ids), Transition.after == RunState.RUNNING, starts)
    )
    return (TrainingStart(*row) for row in session.execute(query.order_by(Transition.id)))


def page(
    session: Session, run_id: str, search: str | None, *, limit: int, cursor: str | None
) -> tuple[list[LogLine], str | None]:
    """One page of a run's log from its start, and the cursor of the next page."""
    return keyset.page(
        session,
        _log(run_id, search),
        by=LogLine.id,
        row_id=LogLine.id,
        descending=False,
        limit=limit,
        cursor=cursor,
    )


def after(session: Session, run_id: str, search: str | None, line_id: int, limit: int) -> list[LogLine]:
    """The lines after a line, oldest first."""
    newer = _log(run_id, search).where(LogLine.id > line_id)
    return list(session.scalars(newer.order_by(LogLine.id).limit(limit)))


def before(
    session: Session, run_id: str, search: str | None, line_id: int | None, limit: int
) -> list[LogLine]:
    """The last lines before a line (of the log, without one), oldest first."""
    older = _log(run_id, search)
    if line_id is not None:
        older = older.where(LogLine.id < line_id)
    return list(session.scalars(older.order_by(LogLine.id.desc()).limit(limit)))[::-1]


def _log(run_id: str, search: str | None) -> Select[LogLine]:
    lines = select(LogLine).where(LogLine.run_id == run_id)
    return lines.where(folding.contains(LogLine.message, search)) if search else lines
