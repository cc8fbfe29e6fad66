"""Route `/events`: what changed, as it changes."""

import asyncio
import time
from collections.abc import AsyncIterator

from fastapi import APIRouter
from fastapi.sse import EventSourceResponse, ServerSentEvent
from redis.asyncio import Redis
from redis.exceptions import RedisError

from backend.auth.access import Viewer
from backend.dependencies import ThisParts
from backend.live.bus import CHANNEL, LIFETIME_S

router = APIRouter(tags=["live"])

RECONNECT_S = 1.0
WAIT_S = 1.0
"""How long one wait for a message lasts: the delay of noticing that the server goes down."""


@router.get("/events", response_class=EventSourceResponse)
async def follow_events(actor: Viewer, parts: ThisParts) -> AsyncIterator[ServerSentEvent]:
    """What changes, as server-sent events; a comment every 15 s shows that the stream lives.

    An unnamed event carries `{"run", "revision", "state"}` (`deleted` when it is no more), `{"host"}` or
    `{"job", "run", "state"}`. The event `resync` (first of all, and whenever some may have been missed) asks
    to pull what is new since the revision one has; `stale` says that changes are not being told for now.
    """
    ends_at = time.monotonic() + LIFETIME_S
    while not parts.stopping.is_set() and time.monotonic() < ends_at:
        try:
            async with (
                Redis.from_url(parts.settings.redis, socket_connect_timeout=RECONNECT_S) as client,
                client.pubsub(ignore_subscribe_messages=True) as listener,
            ):
                await listener.subscribe(CHANNEL)
                yield ServerSentEvent(event="resync", data={}, id=_event_id())
                while not parts.stopping.is_set() and time.monotonic() < ends_at:
                    message = await listener.get_message(timeout=WAIT_S)
                    if message is not None:
                        yield ServerSentEvent(raw_data=message["data"].decode(), id=_event_id())
        except RedisError:
            yield ServerSentEvent(event="stale", data={}, id=_event_id())
            await asyncio.sleep(RECONNECT_S)


def _event_id() -> str:
    return str(time.time_ns() // 1000)
