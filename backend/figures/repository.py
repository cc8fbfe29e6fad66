"""What happened to runs, as marks on their curves."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Attempt, Checkpoint, Evaluation


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


def resumptions(session: Session, run_ids: Sequence[str]) -> Sequence[Attempt]:
    """The attempts that went on from a checkpoint."""
    query = select(Attempt).where(Attempt.run_id.in_(run_ids), Attempt.resumed_from_agent_steps > 0)
    return session.scalars(query.order_by(Attempt.run_id, Attempt.number)).all()
