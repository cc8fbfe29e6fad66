"""Evaluations in the database."""

from collections.abc import Sequence

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from backend.db import Evaluation, Job, keyset
from backend.db.job import EVALUATION

_FINISHED = (
    select(Evaluation)
    .where(Evaluation.run_id.in_(bindparam("run_ids", expanding=True)))
    .where(Evaluation.superseded.is_(False), Evaluation.mean_return.is_not(None))
    .order_by(Evaluation.run_id, Evaluation.agent_steps)
)


def add(session: Session, evaluation: Evaluation) -> None:
    """Store a new evaluation."""
    session.add(evaluation)
    session.flush()


def awaited_checkpoints(session: Session, run_id: str) -> set[str]:
    """File names of the checkpoints of a run whose requested evaluations have not ended."""
    statement = (
        select(Evaluation.checkpoint)
        .join(Job, (Job.kind == EVALUATION) & (Job.target_id == Evaluation.id))
        .where(Evaluation.run_id == run_id, Job.state.in_(("queued", "running")))
    )
    return set(session.scalars(statement))


def page(
    session: Session, run_id: str, *, superseded: bool, limit: int, cursor: str | None
) -> tuple[list[Evaluation], str | None]:
    """One page of a run's evaluations, by agent steps, latest first."""
    statement = select(Evaluation).where(Evaluation.run_id == run_id)
    if not superseded:
        statement = statement.where(Evaluation.superseded.is_(False))
    return keyset.page(
        session,
        statement,
        by=Evaluation.agent_steps,
        row_id=Evaluation.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )


def finished(session: Session, run_ids: Sequence[str]) -> Sequence[Evaluation]:
    """Every finished evaluation of these runs that is not superseded, by run and agent steps."""
    return session.scalars(_FINISHED, {"run_ids": run_ids}).all()
