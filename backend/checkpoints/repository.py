"""Checkpoints in the database."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Checkpoint, keyset
from backend.db.clock import database_now
from backend.db.ids import new_id

NEWEST_FIRST = (Checkpoint.agent_steps.desc(), Checkpoint.attempt.desc(), Checkpoint.id.desc())
"""Of two at one step, the later attempt's is newer, whatever its host's clock put into the ids."""


def get(session: Session, checkpoint_id: str) -> Checkpoint | None:
    """The checkpoint, or none."""
    return session.get(Checkpoint, checkpoint_id)


def newest(session: Session, run_id: str) -> Checkpoint | None:
    """The checkpoint the run would go on from."""
    return session.scalars(
        select(Checkpoint)
        .where(Checkpoint.run_id == run_id, Checkpoint.removed.is_(False), Checkpoint.superseded.is_(False))
        .order_by(*NEWEST_FIRST)
        .limit(1)
    ).one_or_none()


def add_copy(session: Session, original: Checkpoint, run_id: str, file: str) -> None:
    """A copy of another run's checkpoint, as the first of a run of its own (attempt 0)."""
    session.add(
        Checkpoint(
            id=new_id(),
            run_id=run_id,
            attempt=0,
            recorded_at=database_now(session),
            agent_steps=original.agent_steps,
            frames=original.frames,
            updates=original.updates,
            episodes=original.episodes,
            wall_time_s=original.wall_time_s,
            file=file,
            sha256=original.sha256,
            size_bytes=original.size_bytes,
            score=original.score,
            best_return=original.best_return,
        )
    )
    session.flush()


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
