"""Route `/runs/{id}/live`: the agent playing while it trains, over a WebSocket."""

import asyncio
import time
from contextlib import suppress

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from redis.asyncio import Redis
from redis.exceptions import RedisError
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocketState

from backend.auth.access import find_viewer
from backend.db.engine import reading
from backend.dependencies import Parts
from backend.live.bus import LIFETIME_S
from backend.live.gameplay import WATCH_CHANNEL, WATCH_INTERVAL_S, pictures_channel
from backend.runs import repository as runs

router = APIRouter()

REFUSED = 1008
GOING_AWAY = 1001
RECONNECT_S = 1.0
WAIT_S = 0.5
"""How long one wait for a picture lasts: the delay of noticing that the server goes down."""


@router.websocket("/runs/{run_id:ulid}/live")
async def watch_run(websocket: WebSocket, run_id: str) -> None:
    """Pictures of training, for a viewer, while the socket is open.

    Each binary message is the agent step whose parameters played (u64, little-endian), then a JPEG. A slow
    client misses pictures, never gets old ones late. Nothing the client sends is read.
    """
    parts: Parts = websocket.app.state.parts
    if not await run_in_threadpool(_may_watch, parts, websocket, run_id):
        await websocket.close(REFUSED)
        return
    await websocket.accept()
    # One place: what is not yet sent when the next picture comes is dropped.
    newest: asyncio.Queue[bytes] = asyncio.Queue(1)
    tasks = [
        asyncio.create_task(work)
        for work in (_receive(parts, run_id, newest), _send(websocket, newest), _leave(websocket))
    ]
    await asyncio.wait(tasks, timeout=LIFETIME_S, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if websocket.client_state is WebSocketState.CONNECTED:
        await websocket.close(GOING_AWAY)


def _may_watch(parts: Parts, websocket: WebSocket, run_id: str) -> bool:
    with reading(parts.engine) as session:
        return find_viewer(session, websocket) is not None and runs.get(session, run_id) is not None


async def _leave(websocket: WebSocket) -> None:
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass


async def _send(websocket: WebSocket, newest: asyncio.Queue[bytes]) -> None:
    with suppress(WebSocketDisconnect):
        while True:
            await websocket.send_bytes(await newest.get())


async def _receive(parts: Parts, run_id: str, newest: asyncio.Queue[bytes]) -> None:
    while not parts.stopping.is_set():
        try:
            async with (
                Redis.from_url(parts.settings.redis, socket_connect_timeout=RECONNECT_S) as client,
                client.pubsub(ignore_subscribe_messages=True) as listener,
            ):
                await listener.subscribe(pictures_channel(run_id))
                said_at = 0.0
                while not parts.stopping.is_set():
                    if time.monotonic() - said_at >= WATCH_INTERVAL_S:
                        await client.publish(WATCH_CHANNEL, run_id)
                        said_at = time.monotonic()
                    message = await listener.get_message(timeout=WAIT_S)
                    if message is not None:
                        if newest.full():
                            newest.get_nowait()
                        newest.put_nowait(message["data"])
        except RedisError:
            await asyncio.sleep(RECONNECT_S)
