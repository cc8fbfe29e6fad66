"""Recordings of games that people or scripts have played."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response

from backend.http.access import Operator, Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.http.pages import Cursor, Limit
from backend.http.streaming import BINARY
from backend.http.transfer import json_response
from backend.recordings import repository, service
from backend.recordings.schemas import RecordingOut, RecordingPage, RecordingTrace
from backend.specs.fields import ULID

router = APIRouter(prefix="/recordings", tags=["play"])

RecordingId = Annotated[str, Path(pattern=ULID, description="Id of the recording.")]


@router.get("", response_model=RecordingPage)
def list_recordings(
    principal: Viewer,
    session: ReadSession,
    environment: Annotated[str | None, Query(max_length=200, description="Only of this environment.")] = None,
    mine: Annotated[bool, Query(description="Only your own.")] = False,
    protocol: Annotated[
        Literal["human_play", "scripted"] | None, Query(description="Only games of people, or of scripts.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Recorded games, latest first."""
    rows, next_cursor = repository.page(
        session,
        environment=environment,
        user_id=principal.id if mine else None,
        protocol=protocol,
        limit=limit,
        cursor=cursor,
    )
    names = repository.names(session, rows)
    items = [RecordingOut.of(row, names[row.user_id]) for row in rows]
    return json_response(RecordingPage(items=items, next_cursor=next_cursor))


@router.get("/{recording_id}")
def read_recording(recording_id: RecordingId, principal: Viewer, session: ReadSession) -> RecordingOut:
    """One recording."""
    recording = service.get(session, recording_id)
    return RecordingOut.of(recording, repository.names(session, [recording])[recording.user_id])


@router.get("/{recording_id}/trace")
def read_recording_trace(
    recording_id: RecordingId, principal: Viewer, session: ReadSession
) -> RecordingTrace:
    """The decisions of a recording, and what was pressed. A damaged recording: 410."""
    recording = service.get(session, recording_id)
    return RecordingTrace.of(recording, service.read_parts(session, recording))


@router.get(
    "/{recording_id}/file",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": BINARY}, "description": "NumPy's .npz."}},
)
def export_recording(recording_id: RecordingId, principal: Viewer, session: ReadSession) -> Response:
    """A recording as an .npz file with the arrays of an agent's replay: seed and actions, from which the game
    is simulated again, rewards, lives, and in `inputs` the times of the keys. A damaged recording: 410."""
    recording = service.get(session, recording_id)
    content = service.replay_file(recording, service.read_parts(session, recording))
    headers = {"Content-Disposition": f'attachment; filename="recording-{recording.id}.npz"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


@router.delete("/{recording_id}", status_code=204)
def delete_recording(recording_id: RecordingId, principal: Operator, session: WriteSession) -> None:
    """Delete a recording: your own, or as an admin any."""
    service.delete(session, principal, recording_id)
