"""What happened to runs, as marks on their curves."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Attempt, Checkpoint, Evaluation, LiveSettings


def checkpoints(session: Session, run_ids: Sequence[str]) -> Sequence[Checkpoint]:
    """Every checkpoint on the runs' curves, those whose file is gone included, the first first."""
    query = select(Checkpoint).where(Checkpoint.run_id.in_(run_ids), Checkpoint.superseded.is_(False))
    return session.scalars(query.order_by(Checkpoint.run_id, Checkpoint.agent_steps)).all()


def evaluations(session: Session, run_ids: Sequence[str]) -> Sequence[Evaluation]:
    """Every finished evaluation on the runs' curves."""
    query = select(Evaluation).where(
        Evaluation.run_id.in_(run_ids),
        Evaluation.superseded.is_(False),
        Evaluation.mean_return.is_not(None),
    )
    return session.scalars(query.order_by(Evaluation.run_id, Evaluation.agent_steps)).all()


def attempts(session: Session, run_ids: Sequence[str]) -> Sequence[Attempt]:
    """Every attempt at the runs, the first first."""
    query = select(Attempt).where(Attempt.run_id.in_(run_ids))
    return session.scalars(query.order_by(Attempt.run_id, Attempt.number)).all()


def setting_changes(session: Session, run_ids: Sequence[str]) -> Sequence[LiveSettings]:
    """Every change to the runs' settings that came into force."""
    query = select(LiveSettings).where(
        LiveSettings.run_id.in_(run_ids), LiveSettings.agent_steps.is_not(None)
    )
    return session.scalars(query.order_by(LiveSettings.run_id, LiveSettings.version)).all()
