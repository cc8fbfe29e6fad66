"""Exported agents in the database."""

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from backend.db import Job, StoredAgent
from backend.db.job import AGENT


def get(session: Session, agent_id: str) -> StoredAgent | None:
    """The exported agent, or None."""
    return session.get(StoredAgent, agent_id)


def find(session: Session, checkpoint_id: str, file_format: str) -> StoredAgent | None:
    """The exported agent of a checkpoint in a format, or None."""
    return session.scalars(
        select(StoredAgent).where(
            StoredAgent.checkpoint_id == checkpoint_id, StoredAgent.format == file_format
        )
    ).one_or_none()


def add(session: Session, agent: StoredAgent) -> None:
    """Store a new one."""
    session.add(agent)
    session.flush()


def of_run(session: Session, run_id: str) -> Sequence[StoredAgent]:
    """The exported agents of a run, oldest first."""
    return session.scalars(
        select(StoredAgent).where(StoredAgent.run_id == run_id).order_by(StoredAgent.id)
    ).all()


def remove(session: Session, agent_id: str) -> None:
    """Delete an exported agent and its job."""
    session.execute(delete(Job).where(Job.kind == AGENT, Job.target_id == agent_id))
    session.execute(delete(StoredAgent).where(StoredAgent.id == agent_id))
