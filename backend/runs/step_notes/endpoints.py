"""Routes of `/runs/{id}/step-notes`."""

from typing import Annotated

from fastapi import Path

from backend.http.access import Operator, Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import RunId
from backend.http.routing import ResourceRouter
from backend.runs.runs import service as runs
from backend.runs.step_notes import repository, service
from backend.runs.step_notes.schemas import StepNoteChange, StepNoteOut, StepNotePage, StepNoteRequest
from backend.specs.fields import ULID

router = ResourceRouter(prefix="/runs/{run_id}/step-notes", tags=["runs"], route_class=IdempotentRoute)

NoteId = Annotated[str, Path(pattern=ULID, description="Id of the note.")]


@router.get("")
def list_step_notes(run_id: RunId, principal: Viewer, session: ReadSession) -> StepNotePage:
    """Every note at a step of the run, in the order of training."""
    runs.get(session, run_id)
    rows = repository.of_run(session, run_id)
    return StepNotePage(items=[StepNoteOut.model_validate(row) for row in rows])


@router.post("", status_code=201)
def add_step_note(
    run_id: RunId, body: StepNoteRequest, principal: Operator, session: WriteSession
) -> StepNoteOut:
    """Note something at a step of a run; its learning curve marks it below the axis."""
    note = service.add(session, run_id, body.agent_steps, body.text, principal.id)
    return StepNoteOut.model_validate(note)


@router.patch("/{note_id}")
def change_step_note(
    run_id: RunId, note_id: NoteId, body: StepNoteChange, principal: Operator, session: WriteSession
) -> StepNoteOut:
    """Move a note to another step, or change its text."""
    return StepNoteOut.model_validate(service.change(session, run_id, note_id, body.agent_steps, body.text))


@router.delete("/{note_id}", status_code=204)
def delete_step_note(run_id: RunId, note_id: NoteId, principal: Operator, session: WriteSession) -> None:
    """Delete a note."""
    service.delete(session, run_id, note_id)
