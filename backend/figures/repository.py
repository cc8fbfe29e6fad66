"""Events of runs that figures mark."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Attempt, Checkpoint, LiveSettings


def checkpoints(session: Session, run_ids: Sequence[str]) -> Sequence[Checkpoint]:
    """Every checkpoint of the runs that is not superseded, including removed ones, oldest first."""
    query = select(Checkpoint).where(Checkpoint.run_id.in_(run_ids), Checkpoint.superseded.is_(False))
    return session.scalars(query.order_by(Checkpoint.run_id, Checkpoint.agent_steps)).all()


def attempts(session: Session, run_ids: Sequence[str]) -> Sequence[Attempt]:
    """Every attempt of the runs, oldest first."""
    query = select(Attempt).where(Attempt.run_id.in_(run_ids))
    return session.scalars(query.order_by(Attempt.run_id, Attempt.number)).all()


def setting_changes(session: Session, run_ids: Sequence[str]) -> Sequence[LiveSettings]:
    """Every change of the runs' settings that took effect."""
    query = select(LiveSettings).where(
        LiveSettings.run_id.in_(run_ids), LiveSettings.agent_steps.is_not(None)
    )
    return session.scalars(query.order_by(LiveSettings.run_id, LiveSettings.version)).all()
