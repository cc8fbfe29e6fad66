"""Notes at steps of runs: learning curves mark them in the lane of events."""

from sqlalchemy.orm import Session

from backend.db import Run, StepNote
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.platform.errors import Conflict, Invalid, NotFound
from backend.runs.runs import service as runs
from backend.runs.step_notes import repository

MAX_OF_RUN = 200
"""Notes of one run: more would hide each other in the lane."""


def add(session: Session, run_id: str, agent_steps: int, text: str, created_by: str | None) -> StepNote:
    """Add a note to a run.

    Raises:
        NotFound: there is no such run.
        Invalid: the run has not reached the step.
        Conflict: the run has as many notes as a run may have.
    """
    run = runs.get(session, run_id, for_update=True)
    _check_step(run, agent_steps)
    if repository.count(session, run_id) >= MAX_OF_RUN:
        raise Conflict(f"the run has {MAX_OF_RUN} notes already; delete one")
    note = StepNote(
        id=new_id(),
        run_id=run_id,
        agent_steps=agent_steps,
        text=text,
        created_at=database_now(session),
        created_by=created_by,
    )
    repository.add(session, note)
    runs.touch(session, run, ["step_notes"])
    return note


def change(
    session: Session, run_id: str, note_id: str, agent_steps: int | None, text: str | None
) -> StepNote:
    """Move a note to another step, or change its text; None changes nothing.

    Raises:
        NotFound: there is no such run or note.
        Invalid: the run has not reached the step.
    """
    run = runs.get(session, run_id, for_update=True)
    note = _get(session, run_id, note_id)
    if agent_steps is not None:
        _check_step(run, agent_steps)
        note.agent_steps = agent_steps
    note.text = note.text if text is None else text
    runs.touch(session, run, ["step_notes"])
    return note


def delete(session: Session, run_id: str, note_id: str) -> None:
    """Delete a note.

    Raises:
        NotFound: there is no such run or note.
    """
    run = runs.get(session, run_id, for_update=True)
    repository.delete(session, _get(session, run_id, note_id))
    runs.touch(session, run, ["step_notes"])


def _get(session: Session, run_id: str, note_id: str) -> StepNote:
    note = repository.get(session, run_id, note_id)
    if note is None:
        raise NotFound(f"run {run_id} has no note {note_id}")
    return note


def _check_step(run: Run, agent_steps: int) -> None:
    if agent_steps > run.agent_steps:
        unit = "iterations" if run.step_unit == "iterations" else "agent steps"
        raise Invalid.field("agent_steps", f"the run has {run.agent_steps:,} {unit} so far")
