"""Route `/play/{id}/stream`: frames of a play session, and the messages of its player, over a WebSocket."""

import asyncio
import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from fastapi import WebSocket, WebSocketDisconnect
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocketState

from backend.access.auth.state import get_auth_state
from backend.db.engine import reading, writing
from backend.http.access import find_viewer
from backend.http.dependencies import AppState, get_state
from backend.http.errors import respond
from backend.http.routing import ResourceRouter
from backend.platform.errors import TooMany
from backend.platform.principals import Principal, Role
from backend.pubsub.bus import LIFETIME_S, PLAYER_INTERVAL_S, WATCH_CHANNEL, play_channel
from backend.pubsub.subscription import Frames, cancel_all
from backend.replays.play import repository, service
from backend.specs.play import PLAYER_MESSAGE, Act, HandOver, Pause, actions_of
from backend.specs.problems import message_of, quoted

router = ResourceRouter()

NORMAL, GOING_AWAY, POLICY_VIOLATION = 1000, 1001, 1008
MAX_MESSAGE_BYTES = 256
MAX_REASON_BYTES = 123
"""Of a close frame (RFC 6455)."""
_TYPES = "action, pause, speed, new_game and control"
WAIT_S = 0.25
RETRY_S = 0.05
"""Pause between tries to publish while the subscription connects, as for the first stream of a process."""
CONNECT_S = 1.0
"""How long a message waits for the subscription to connect."""

_players: Counter[str] = Counter()
"""Open streams of the player of each session: a browser may have it in several tabs."""


@dataclass
class _Client:
    """Who is connected to which session."""

    viewer: Principal
    session_id: str
    may_play: bool
    """Whether it is the session's player; others watch."""
    scripted: bool
    n_actions: int
    has_agent: bool
    ended: str | None
    """Why the session has ended; None if it is open."""


@router.websocket("/play/{session_id:ulid}/stream")
async def stream_play(websocket: WebSocket, session_id: str) -> None:
    """Frames of a play session to a viewer; messages of its player to its worker.

    The documentation of `POST /play` has the format. The socket closes within 5 s after its login
    or token has ended or was given a lower role.
    """
    state = get_state(websocket)
    client = await run_in_threadpool(_find, state, websocket, session_id)
    if client is None:
        await websocket.close(POLICY_VIOLATION)
        return
    try:
        with (
            state.limits.sockets.taken(client.viewer.id),
            state.subscription.frames(session_id) as frames,
            get_auth_state(websocket).streams.opened(client.viewer) as ended,
        ):
            await websocket.accept()
            if client.ended is not None:
                await websocket.close(
                    NORMAL, client.ended.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
                )
                return
            await _stream(state, websocket, client, frames, ended)
    except TooMany as error:
        await websocket.send_denial_response(respond(error, None))


def _find(state: AppState, websocket: WebSocket, session_id: str) -> _Client | None:
    viewer = find_viewer(websocket)
    if viewer is None:
        return None
    with reading(state.db_engine) as session:
        play = repository.get(session, session_id)
        if play is None:
            return None
        return _Client(
            viewer,
            session_id,
            may_play=play.user_id == viewer.id and viewer.role.covers(Role.OPERATOR),
            scripted=play.scripted,
            n_actions=len(actions_of(play.environment, play.environment_config)),
            has_agent=play.agent is not None,
            ended=play.end_reason if play.state == "ended" else None,
        )


async def _stream(
    state: AppState, websocket: WebSocket, client: _Client, frames: Frames, ended: asyncio.Event
) -> None:
    work = [_send(websocket, frames), _receive(state, websocket, client), _wait_for(ended)]
    work.append(_notify_worker(state, client.session_id) if client.may_play else _wait_for(state.stopping))
    tasks = [asyncio.create_task(coroutine) for coroutine in work]
    if client.may_play:
        _players[client.session_id] += 1
    await asyncio.wait(tasks, timeout=LIFETIME_S, return_when=asyncio.FIRST_COMPLETED)
    await cancel_all(tasks)
    if client.may_play:
        _players[client.session_id] -= 1
    if client.may_play and not _players[client.session_id]:  # nobody steers now
        del _players[client.session_id]
        pause = Pause(type="pause", paused=True).model_dump_json()
        await state.subscription.publish(play_channel(client.session_id), pause)
    if websocket.client_state is WebSocketState.CONNECTED and (
        websocket.application_state is WebSocketState.CONNECTED
    ):
        with suppress(RuntimeError):  # the client has just left
            await websocket.close(POLICY_VIOLATION if ended.is_set() else GOING_AWAY)


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()


async def _send(websocket: WebSocket, frames: Frames) -> None:
    with suppress(WebSocketDisconnect):
        while True:
            await websocket.send_bytes(await frames.next())


async def _notify_worker(state: AppState, session_id: str) -> None:
    """Publish that the player is there, until the server stops."""
    published_at = 0.0
    while not state.stopping.is_set():
        is_due = time.monotonic() - published_at >= PLAYER_INTERVAL_S
        if is_due and await state.subscription.publish(WATCH_CHANNEL, session_id):
            published_at = time.monotonic()
        await asyncio.sleep(WAIT_S if published_at else RETRY_S)


async def _receive(state: AppState, websocket: WebSocket, client: _Client) -> None:
    # `backend.http.connections` bounds how much a client may send.
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        refusal = await _forward(state, client, message.get("text") or message.get("bytes") or "")
        if refusal is not None:
            with suppress(WebSocketDisconnect):
                await websocket.send_text(json.dumps({"refused": refusal}))


async def _forward(state: AppState, client: _Client, message: str | bytes) -> str | None:
    """Pass a message of the player on to the worker; return why it is refused, if it is."""
    if not client.may_play:
        return "you watch this session: only the operator who has opened it plays"
    if len(message.encode() if isinstance(message, str) else message) > MAX_MESSAGE_BYTES:
        return f"a message has at most {MAX_MESSAGE_BYTES} bytes"
    try:
        parsed = PLAYER_MESSAGE.validate_json(message)
    except ValidationError as error:
        return _refusal(error)
    if isinstance(parsed, Act) and parsed.action is not None and parsed.action >= client.n_actions:
        return f"there is no action {parsed.action}: this environment has actions 0 to {client.n_actions - 1}"
    if isinstance(parsed, HandOver) and not client.has_agent:
        return "this session has no agent: open one with `agent`"
    if client.viewer.credential.kind == "token" and not client.scripted:
        await run_in_threadpool(_set_scripted, state, client.session_id)
        client.scripted = True
    deadline = time.monotonic() + CONNECT_S
    while not await state.subscription.publish(play_channel(client.session_id), parsed.model_dump_json()):
        if time.monotonic() > deadline:
            return "Redis does not respond: the worker cannot be reached at present"
        await asyncio.sleep(RETRY_S)
    return None


def _refusal(error: ValidationError) -> str:
    """Why a message is refused, in words."""
    problem = error.errors(include_url=False)[0]
    if problem["type"] == "union_tag_invalid":
        return f"there is no message of type {quoted(problem['ctx']['tag'])}; the types are {_TYPES}"
    if not problem["loc"]:
        return f"a message is a JSON object with one of the types {_TYPES}"
    return f"{'.'.join(map(str, problem['loc'][1:]))} {message_of(problem)}"


def _set_scripted(state: AppState, session_id: str) -> None:
    with writing(state.db_engine) as session:
        service.set_scripted(session, session_id)
