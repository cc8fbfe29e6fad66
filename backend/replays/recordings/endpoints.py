"""Recordings of games that people or scripts have played."""

from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Annotated, Literal

from fastapi import Header, Path, Query, Request, Response

from backend.db import Job, Recording
from backend.db.job import GAME
from backend.fleet.jobs import repository as jobs
from backend.http.access import Operator, Viewer
from backend.http.dependencies import AppStateDep, Artifacts, ReadSession, RequestContextDep, WriteSession
from backend.http.figures import FORMATS, FormOptions, MaxPoints, RequestedForm, figure_response
from backend.http.pages import Cursor, Limit, Ulid
from backend.http.rendering import VIDEO_ANSWERS, found_or_requested
from backend.http.routing import ResourceRouter, WritingRoute
from backend.http.streaming import BINARY, DownloadSlot, send_file
from backend.http.transfer import json_response
from backend.platform.artifacts import game_file
from backend.replays.recordings import figures as drawn
from backend.replays.recordings import repository, service
from backend.replays.recordings.schemas import (
    ActorOut,
    HumanReferenceOut,
    HumanReferences,
    RecordingOut,
    RecordingPage,
    RecordingTrace,
)
from backend.specs.environments import ENVIRONMENTS
from backend.specs.fields import ULID, Text
from backend.specs.play import seen_by_people

router = ResourceRouter(prefix="/recordings", tags=["play"], route_class=WritingRoute)
figures = ResourceRouter(prefix="/figures", tags=["figures"])

RecordingId = Annotated[str, Path(pattern=ULID, description="Id of the recording.")]


@router.get("", response_model=RecordingPage)
def list_recordings(
    principal: Viewer,
    session: ReadSession,
    environment: Annotated[
        Text | None, Query(max_length=200, description="Only of this environment.")
    ] = None,
    mine: Annotated[bool, Query(description="Only your own.")] = False,
    protocol: Annotated[
        Literal["human_play", "practice", "scripted", "joint"] | None,
        Query(description="Only games of people, of practice, of scripts, or of a person and agents."),
    ] = None,
    episode: Annotated[
        str | None, Query(pattern=ULID, description="Only games that go on from this episode of a run.")
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
        episode_id=episode,
        limit=limit,
        cursor=cursor,
    )
    names = repository.names(session, rows)
    items = [RecordingOut.of(row, names[row.user_id]) for row in rows]
    return json_response(RecordingPage(items=items, next_cursor=next_cursor))


@router.get("/human-references")
def list_human_references(principal: Viewer, session: ReadSession) -> HumanReferences:
    """The *human* references of this installation, for environments without a published human score: the
    highest mean of a person who has finished at least 5 games there."""
    means = service.human_references(session)
    return HumanReferences(
        items=[
            HumanReferenceOut.model_validate(
                asdict(means[name]) | {"seen_by_people": seen_by_people(ENVIRONMENTS[name])}
            )
            for name in sorted(means)
        ]
    )


@router.get("/{recording_id:ulid}")
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
    parts = service.read_parts(session, recording)
    actors = service.actors(recording)
    users = repository.user_names(session, {actor.user_id for actor in actors if actor.user_id})
    runs = repository.run_names(session, {actor.run_id for actor in actors if actor.run_id})
    names = users | runs
    named = [
        ActorOut(name=names.get(actor.user_id or actor.run_id or ""), **actor.model_dump())
        for actor in actors
    ]
    return RecordingTrace.of(recording, parts, named, service.turns(parts))


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


@router.get("/{recording_id}/video", response_model=None, response_class=Response, responses=VIDEO_ANSWERS)
async def read_recording_video(
    recording_id: RecordingId,
    principal: Viewer,
    slot: DownloadSlot,
    session: ReadSession,
    state: AppStateDep,
    context: RequestContextDep,
    artifacts: Artifacts,
    again: Annotated[
        bool, Query(description="Render again if rendering has failed, or the video is damaged.")
    ] = False,
    range: Annotated[str | None, Header(description="A part of the file, as in `bytes=0-1023`.")] = None,
) -> Response:
    """A recording's video, rendered on the first request: its game is simulated again, frame by frame. A game
    that is being played: 409; a damaged recording: 410; too many that are not rendered yet: 429."""

    def find() -> tuple[Recording, Response | Job | None]:
        recording = service.get(session, recording_id)
        if service.has_video(artifacts, recording, again=again):
            with suppress(FileNotFoundError):
                file = game_file(recording_id)
                return recording, send_file(
                    artifacts, recording_id, "videos", file, media_type="video/mp4", range_header=range
                )
        job = jobs.find(session, GAME, recording_id)
        session.close()  # so that no connection is held during the wait for a turn
        return recording, job

    return await found_or_requested(state, context, find, partial(service.request_video, again=again))


@router.delete("/{recording_id:ulid}", status_code=204)
def delete_recording(recording_id: RecordingId, principal: Operator, session: WriteSession) -> None:
    """Delete a recording: your own, or as an admin any."""
    service.delete(session, principal, recording_id)


@figures.get("/recording", response_model=None, responses=FORMATS)
def recording_rewards(
    request: Request,
    recording: Annotated[Ulid, Query(description="Recording id.")],
    principal: Viewer,
    session: ReadSession,
    options: FormOptions,
    form: RequestedForm,
    points: MaxPoints = 1000,
) -> Response:
    """Reward over a game that people have played, whose agent steps count from 1."""
    figure = drawn.draw_recording(session, recording, points, options)
    return figure_response(request, figure, form, "recording")
