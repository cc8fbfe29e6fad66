"""Route `/runs/{id}/live`: frames of the agent in training, over a WebSocket."""

import asyncio
import time
from contextlib import suppress

from fastapi import WebSocket, WebSocketDisconnect
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocketState

from backend.access.auth.state import get_auth_state
from backend.db.engine import reading
from backend.http.access import find_viewer
from backend.http.dependencies import AppState, get_state
from backend.http.errors import respond
from backend.http.routing import ResourceRouter
from backend.platform.errors import TooMany
from backend.platform.principals import Principal
from backend.pubsub.bus import LIFETIME_S, WATCH_CHANNEL, WATCH_INTERVAL_S
from backend.pubsub.subscription import Frames, cancel_all
from backend.runs.runs import repository as runs

router = ResourceRouter()

POLICY_VIOLATION = 1008
GOING_AWAY = 1001
WAIT_S = 0.5
"""Timeout of one wait: the maximum delay of a shutdown."""
RETRY_S = 0.05
"""Pause between tries of the first notification, while the subscription connects."""


@router.websocket("/runs/{run_id:ulid}/live")
async def watch_run(websocket: WebSocket, run_id: str) -> None:
    """Frames of training, for a viewer, while the socket is open.

    Each binary message is the agent steps of the parameters that acted (u64, little-endian), then a JPEG. A
    slow client skips frames and never gets late ones. Messages of the client are ignored. The socket closes
    within 5 s after its session or token has ended.
    """
    state = get_state(websocket)
    viewer = await run_in_threadpool(_viewer_of, state, websocket, run_id)
    if viewer is None:
        await websocket.close(POLICY_VIOLATION)
        return
    try:
        with (
            state.limits.sockets.taken(viewer.id),
            state.subscription.frames(run_id) as frames,
            get_auth_state(websocket).streams.opened(viewer) as ended,
        ):
            await websocket.accept()
            await _send_frames(state, websocket, run_id, frames, ended)
    except TooMany as error:
        await websocket.send_denial_response(respond(error, None))


async def _send_frames(
    state: AppState, websocket: WebSocket, run_id: str, frames: Frames, ended: asyncio.Event
) -> None:
    tasks = [
        asyncio.create_task(work)
        for work in (
            _notify_worker(state, run_id),
            _send(websocket, frames),
            _wait_for_disconnect(websocket),
            _wait_for(ended),
        )
    ]
    await asyncio.wait(tasks, timeout=LIFETIME_S, return_when=asyncio.FIRST_COMPLETED)
    await cancel_all(tasks)
    if websocket.client_state is WebSocketState.CONNECTED:
        await websocket.close(POLICY_VIOLATION if ended.is_set() else GOING_AWAY)


def _viewer_of(state: AppState, websocket: WebSocket, run_id: str) -> Principal | None:
    """Who watches; None if they may not, or there is no such run."""
    viewer = find_viewer(websocket)
    if viewer is None:
        return None
    with reading(state.db_engine) as session:
        return viewer if runs.get(session, run_id) is not None else None


async def _wait_for(ended: asyncio.Event) -> None:
    await ended.wait()


async def _wait_for_disconnect(websocket: WebSocket) -> None:
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass


async def _send(websocket: WebSocket, frames: Frames) -> None:
    with suppress(WebSocketDisconnect):
        while True:
            await websocket.send_bytes(await frames.next())


async def _notify_worker(state: AppState, run_id: str) -> None:
    """Publish that a client watches the run, until the server stops."""
    published_at = 0.0
    while not state.stopping.is_set():
        is_due = time.monotonic() - published_at >= WATCH_INTERVAL_S
        if is_due and await state.subscription.publish(WATCH_CHANNEL, run_id):
            published_at = time.monotonic()
        await asyncio.sleep(WAIT_S if published_at else RETRY_S)
