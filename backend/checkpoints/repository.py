"""Checkpoints in the database."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Checkpoint, keyset


def get(session: Session, checkpoint_id: str) -> Checkpoint | None:
    """The checkpoint, or none."""
    return session.get(Checkpoint, checkpoint_id)


def newest(session: Session, run_id: str) -> Checkpoint | None:
    """The checkpoint the run would go on from."""
    return session.scalars(
        select(Checkpoint)
        .where(Checkpoint.run_id == run_id, Checkpoint.removed.is_(False), Checkpoint.superseded.is_(False))
        .order_by(Checkpoint.agent_steps.desc(), Checkpoint.id.desc())
        .limit(1)
    ).one_or_none()


def page(
    session: Session, run_id: str, *, gone: bool, limit: int, cursor: str | None
) -> tuple[list[Checkpoint], str | None]:
    """One page of a run's checkpoints, the newest first; with `gone`, also removed and superseded ones."""
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
