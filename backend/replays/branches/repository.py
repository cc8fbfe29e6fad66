"""Branches in the database."""

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session, undefer

from backend.db import Branch, Job, Run, keyset
from backend.db.job import BRANCH


def add(session: Session, branch: Branch) -> None:
    """Store a new branch."""
    session.add(branch)
    session.flush()


def get(session: Session, branch_id: str, *, with_rewards: bool = False) -> Branch | None:
    """The branch, or None."""
    statement = select(Branch).where(Branch.id == branch_id)
    options = [undefer(Branch.rewards)] if with_rewards else []
    return session.scalars(statement.options(*options)).one_or_none()


def page(
    session: Session, *, episode_id: str | None, limit: int, cursor: str | None
) -> tuple[list[Branch], str | None]:
    """One page of the branches, of one episode if it is given, latest first, and the next page's cursor."""
    statement = select(Branch)
    if episode_id is not None:
        statement = statement.where(Branch.episode_id == episode_id)
    return keyset.page(
        session,
        statement,
        by=Branch.created_at,
        row_id=Branch.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )


def count_of_episode(session: Session, episode_id: str) -> int:
    """Number of the branches of an episode."""
    statement = select(func.count()).select_from(Branch).where(Branch.episode_id == episode_id)
    return session.execute(statement).scalar_one()


def awaited_checkpoints(session: Session, run_id: str) -> set[str]:
    """File names of a run's checkpoints with which branches that are not played yet go on."""
    statement = (
        select(Branch.checkpoint)
        .join(Job, (Job.kind == BRANCH) & (Job.target_id == Branch.id))
        .where(Branch.policy_run_id == run_id, Job.state.in_(("queued", "running")))
    )
    return set(session.scalars(statement))


def run_names(session: Session, run_ids: set[str]) -> dict[str, str]:
    """The names of those of these runs that exist, by id."""
    rows = session.execute(select(Run.id, Run.name).where(Run.id.in_(run_ids)))
    return {row[0]: row[1] for row in rows}


def remove(session: Session, branch_id: str) -> None:
    """Delete a branch and its job; a worker that plays it discards the result."""
    session.execute(delete(Job).where(Job.kind == BRANCH, Job.target_id == branch_id))
    session.execute(delete(Branch).where(Branch.id == branch_id))
