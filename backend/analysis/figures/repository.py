"""Events of runs that figures mark."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, bindparam, select
from sqlalchemy.orm import Session, defer

from backend.db import Attempt, Checkpoint, LiveSettings, StepNote

_RUN_IDS: BindParameter[Any] = bindparam("run_ids", expanding=True)
_CHECKPOINTS = (
    select(Checkpoint)
    .where(Checkpoint.run_id.in_(_RUN_IDS), Checkpoint.superseded.is_(False))
    .order_by(Checkpoint.run_id, Checkpoint.agent_steps)
)
_ATTEMPTS = (
    select(Attempt)
    .where(Attempt.run_id.in_(_RUN_IDS))
    .order_by(Attempt.run_id, Attempt.number)
    .options(defer(Attempt.provenance))  # the list of all packages: it takes longer to read than the rest
)
_SETTING_CHANGES = (
    select(LiveSettings)
    .where(LiveSettings.run_id.in_(_RUN_IDS), LiveSettings.agent_steps.is_not(None))
    .order_by(LiveSettings.run_id, LiveSettings.version)
)
_STEP_NOTES = (
    select(StepNote)
    .where(StepNote.run_id.in_(_RUN_IDS))
    .order_by(StepNote.run_id, StepNote.agent_steps, StepNote.id)
)


def checkpoints(session: Session, run_ids: Sequence[str]) -> Sequence[Checkpoint]:
    """Every checkpoint of the runs that is not superseded, including removed ones, oldest first."""
    return session.scalars(_CHECKPOINTS, {"run_ids": run_ids}).all()


def attempts(session: Session, run_ids: Sequence[str]) -> Sequence[Attempt]:
    """Every attempt of the runs, oldest first, without its provenance."""
    return session.scalars(_ATTEMPTS, {"run_ids": run_ids}).all()


def setting_changes(session: Session, run_ids: Sequence[str]) -> Sequence[LiveSettings]:
    """Every change of the runs' settings that took effect."""
    return session.scalars(_SETTING_CHANGES, {"run_ids": run_ids}).all()


def step_notes(session: Session, run_ids: Sequence[str]) -> Sequence[StepNote]:
    """Every note at a step of the runs, in the order of training."""
    return session.scalars(_STEP_NOTES, {"run_ids": run_ids}).all()
