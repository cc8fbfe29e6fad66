"""Notes at steps of runs in the database."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db import StepNote


def add(session: Session, note: StepNote) -> None:
    """Store a new note."""
    session.add(note)
    session.flush()


def get(session: Session, run_id: str, note_id: str) -> StepNote | None:
    """A note of the run, or None."""
    note = session.get(StepNote, note_id)
    return note if note is not None and note.run_id == run_id else None


def of_run(session: Session, run_id: str) -> Sequence[StepNote]:
    """Every note of a run, in the order of training."""
    notes = select(StepNote).where(StepNote.run_id == run_id)
    return session.scalars(notes.order_by(StepNote.agent_steps, StepNote.id)).all()


def count(session: Session, run_id: str) -> int:
    """Number of a run's notes."""
    counted = select(func.count()).select_from(StepNote).where(StepNote.run_id == run_id)
    return session.scalars(counted).one()


def delete(session: Session, note: StepNote) -> None:
    """Delete a note."""
    session.delete(note)
