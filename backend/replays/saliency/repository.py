"""Saliency maps in the database."""

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from backend.db import Job, StoredSaliency
from backend.db.job import SALIENCY


def get(session: Session, map_id: str) -> StoredSaliency | None:
    """The map, or None."""
    return session.get(StoredSaliency, map_id)


def find(session: Session, episode_id: str, decision: int, checkpoint_id: str) -> StoredSaliency | None:
    """The map of a decision of an episode for a checkpoint, or None."""
    return session.scalars(
        select(StoredSaliency).where(
            StoredSaliency.episode_id == episode_id,
            StoredSaliency.decision == decision,
            StoredSaliency.checkpoint_id == checkpoint_id,
        )
    ).one_or_none()


def add(session: Session, row: StoredSaliency) -> None:
    """Store a new map."""
    session.add(row)
    session.flush()


def remove_oldest(session: Session, episode_id: str, n_kept: int) -> None:
    """Delete an episode's maps, with their jobs, except for its latest ones."""
    of_episode = StoredSaliency.episode_id == episode_id
    n = session.execute(select(func.count()).select_from(StoredSaliency).where(of_episode)).scalar_one()
    if n <= n_kept:
        return
    oldest = select(StoredSaliency.id).where(of_episode).order_by(StoredSaliency.id).limit(n - n_kept)
    ids = session.scalars(oldest).all()
    session.execute(delete(Job).where(Job.kind == SALIENCY, Job.target_id.in_(ids)))
    session.execute(delete(StoredSaliency).where(StoredSaliency.id.in_(ids)))


def awaited_checkpoints(session: Session, run_id: str) -> set[str]:
    """File names of a run's checkpoints whose maps are not computed yet."""
    statement = (
        select(StoredSaliency.checkpoint)
        .join(Job, (Job.kind == SALIENCY) & (Job.target_id == StoredSaliency.id))
        .where(StoredSaliency.policy_run_id == run_id, Job.state.in_(("queued", "running")))
    )
    return set(session.scalars(statement))
