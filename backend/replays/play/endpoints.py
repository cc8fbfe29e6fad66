"""Sessions in which people play on a worker."""

from typing import Annotated, Literal

from fastapi import Path, Query, Response

from backend.http.access import Operator, Viewer
from backend.http.dependencies import AppStateDep, Artifacts, ReadSession, WriteSession
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter
from backend.http.transfer import json_response
from backend.replays.play import repository, service, sources
from backend.replays.play.schemas import PlayRequest, PlaySessionOut, PlaySessionPage
from backend.specs.fields import ULID

router = ResourceRouter(prefix="/play", tags=["play"], route_class=IdempotentRoute)

PlayId = Annotated[str, Path(pattern=ULID, description="Id of the play session.")]


@router.get("", response_model=PlaySessionPage)
def list_play_sessions(
    principal: Viewer,
    session: ReadSession,
    state: AppStateDep,
    play_state: Annotated[
        Literal["queued", "running", "ended"] | None,
        Query(alias="state", description="Only sessions in this state."),
    ] = None,
    mine: Annotated[bool, Query(description="Only your own.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Play sessions, latest first."""
    rows, next_cursor = repository.page(
        session, user_id=principal.id if mine else None, state=play_state, limit=limit, cursor=cursor
    )
    names = repository.names(session, rows)
    items = [
        PlaySessionOut.of(row, names[row.user_id], service.why_waiting(session, row, state.settings.lease_s))
        for row in rows
    ]
    return json_response(PlaySessionPage(items=items, next_cursor=next_cursor))


@router.post("", status_code=201)
def open_play_session(
    body: PlayRequest,
    principal: Operator,
    session: ReadSession,
    artifacts: Artifacts,
    writing: WriteSession,
    state: AppStateDep,
) -> PlaySessionOut:
    """Open a session on a worker that has the environment; it needs no slot for training.

    With `from`, each of its games goes on from the state of a recorded episode, which is simulated again with
    the settings of that episode. With `agent`, the controls can be handed to the agent of a checkpoint and
    taken over again, at any decision.

    Then connect to the WebSocket `/api/v1/play/{id}/stream`. Each of its binary messages is the length of a
    JSON object (u16, little-endian), the object, and a JPEG, which is missing in the last message. The object
    has `score`, `lives`, `frames`, `action`, `paused`, `over`, `speed`, `practice` (whether a part of the
    game was played at another speed than the console's), `game` (number of the game in the session), `acting`
    (`person` or `agent`), `loading` and `reading` (whether the agent has the controls and is loaded, or reads
    the game up to here, first), `unavailable` (why the agent cannot act in this game, or null), `seq` (of the
    latest action that a decision has read) and, in the last message, `ended` with the reason. Frames that a
    client does not read in time are skipped. Its player sends JSON:
    `{"type": "action", "action": 3, "seq": 17}` holds an action down until the next one (null: nothing is
    held; without an action for that, the game waits), `{"type": "pause", "paused": true}`,
    `{"type": "speed", "speed": 0.5}`, `{"type": "new_game"}`, `{"type": "control", "to": "agent"}` or
    `"person"`. A message that is refused is answered by a text message `{"refused": "why"}`; more than 120 a
    second end the connection. A game starts paused, and with the first action, or when the agent gets the
    controls. A session ends 30 s after its player has left, and after 10 minutes without a message.
    """
    source, agent = None, None
    if (start := body.start) is not None:
        if start.episode is not None:
            source = sources.of_episode(session, artifacts, start.episode, start.decision)
        elif start.recording is not None:
            source = sources.of_recording(session, start.recording, start.decision)
    if body.agent is not None:
        agent = sources.agent_of(session, body.agent.run, body.agent.checkpoint, source)
    play = service.request(
        writing,
        principal,
        environment=body.environment,
        every_frame=body.every_frame,
        scripted=body.scripted,
        lease_s=state.settings.lease_s,
        source=source,
        agent=agent,
    )
    return PlaySessionOut.of(play, principal.name, service.why_waiting(writing, play, state.settings.lease_s))


@router.get("/{session_id}")
def read_play_session(
    session_id: PlayId, principal: Viewer, session: ReadSession, state: AppStateDep
) -> PlaySessionOut:
    """One play session; while it is queued, with the reason."""
    play = service.get(session, session_id)
    name = repository.names(session, [play])[play.user_id]
    return PlaySessionOut.of(play, name, service.why_waiting(session, play, state.settings.lease_s))


@router.delete("/{session_id}", status_code=204)
def end_play_session(session_id: PlayId, principal: Operator, session: WriteSession) -> None:
    """End a session: your own, or as an admin any. Its games stay."""
    service.end_by(session, principal, session_id)
