"""Checkpoints in the database."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from backend.db import Checkpoint, keyset

LATEST_FIRST = (Checkpoint.agent_steps.desc(), Checkpoint.attempt.desc(), Checkpoint.id.desc())
"""Order of checkpoints. At the same agent steps that of the later attempt comes first, whatever its host's
clock put into the ids."""


@dataclass(frozen=True)
class CheckpointCounters:
    """How far a run was at a checkpoint, and when that was recorded."""

    run_id: str
    attempt: int
    agent_steps: int
    updates: int
    wall_time_s: float
    recorded_at: datetime


def counters(session: Session, run_ids: Sequence[str]) -> Iterator[CheckpointCounters]:
    """Yield the counters of every checkpoint of the runs that is not superseded, including removed ones."""
    columns = [getattr(Checkpoint, name) for name in CheckpointCounters.__dataclass_fields__]
    query = select(*columns).where(Checkpoint.run_id.in_(run_ids), Checkpoint.superseded.is_(False))
    return (CheckpointCounters(*row) for row in session.execute(query.order_by(Checkpoint.id)))


def add(session: Session, checkpoint: Checkpoint) -> None:
    """Store a new checkpoint."""
    session.add(checkpoint)
    session.flush()


def get(session: Session, checkpoint_id: str) -> Checkpoint | None:
    """The checkpoint, or None."""
    return session.get(Checkpoint, checkpoint_id)


def resumable(session: Session, run_id: str) -> Sequence[Checkpoint]:
    """The checkpoints that a run can resume from, latest first."""
    return session.scalars(
        select(Checkpoint)
        .where(Checkpoint.run_id == run_id, ~Checkpoint.removed, ~Checkpoint.superseded)
        .order_by(*LATEST_FIRST)
    ).all()


def latest(session: Session, run_id: str) -> Checkpoint | None:
    """The checkpoint that the run would resume from, or None."""
    return session.scalars(
        select(Checkpoint)
        .where(Checkpoint.run_id == run_id, Checkpoint.removed.is_(False), Checkpoint.superseded.is_(False))
        .order_by(*LATEST_FIRST)
        .limit(1)
    ).one_or_none()


def of_file(session: Session, run_id: str, file: str) -> Checkpoint | None:
    """The latest row of a checkpoint file of a run, removed and superseded ones included, or None."""
    rows = select(Checkpoint).where(Checkpoint.run_id == run_id, Checkpoint.file == file)
    return session.scalars(rows.order_by(Checkpoint.id.desc()).limit(1)).one_or_none()


def mark_removed(session: Session, run_id: str, files: Collection[str]) -> None:
    """Mark the rows of these checkpoint files of a run as removed."""
    rows = update(Checkpoint).where(Checkpoint.run_id == run_id, Checkpoint.file.in_(files))
    session.execute(rows.values(removed=True))


def stored_size(session: Session, run_id: str) -> tuple[int, int]:
    """Number and bytes of a run's checkpoint files that are stored."""
    size = select(func.count(), func.coalesce(func.sum(Checkpoint.size_bytes), 0))
    n_files, n_bytes = session.execute(
        size.where(Checkpoint.run_id == run_id, Checkpoint.removed.is_(False))
    ).one()
    return n_files, int(n_bytes)


def page(
    session: Session, run_id: str, *, gone: bool, limit: int, cursor: str | None
) -> tuple[list[Checkpoint], str | None]:
    """One page of a run's checkpoints, latest first; with `gone`, including removed and superseded ones."""
    statement = select(Checkpoint).where(Checkpoint.run_id == run_id)
    if not gone:
        statement = statement.where(Checkpoint.removed.is_(False), Checkpoint.superseded.is_(False))
    return keyset.page(
        session,
        statement,
        by=Checkpoint.agent_steps,
        row_id=Checkpoint.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )
