"""Changes as server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi.sse import EventSourceResponse, ServerSentEvent

from backend.access.auth.state import AuthStateDep
from backend.db.changes import ChangeEvent
from backend.http.access import Viewer
from backend.http.dependencies import AppState, AppStateDep
from backend.http.routing import ResourceRouter
from backend.http.streaming import StreamSlot
from backend.pubsub.bus import LIFETIME_S
from backend.pubsub.subscription import Events, Signal

router = ResourceRouter(tags=["live"])

WAIT_S = 0.5
"""Timeout of one wait for a message: the maximum delay of a shutdown."""
HEARTBEAT_S = 1.0
"""After this long without an event, and at most `WAIT_S` later, a heartbeat is sent."""


_CONTENT = {
    "schema": {
        "type": "string",
        "description": "The `data` of each unnamed event.",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": f"#/components/schemas/{ChangeEvent.__name__}"},
    }
}


@router.get(
    "/events",
    response_class=EventSourceResponse,
    responses={200: {"content": {EventSourceResponse.media_type: _CONTENT}}},
)
async def follow_events(
    principal: Viewer, slot: StreamSlot, state: AppStateDep, auth: AuthStateDep
) -> AsyncIterator[ChangeEvent]:
    """Changes as server-sent events.

    An unnamed event is a `ChangeEvent`: what has changed, what it belongs to, its state, and which parts have
    changed. The event `heartbeat` follows at the latest 1.5 s after another event: its absence shows a broken
    connection. The event `resync` (sent first, and whenever messages may have been lost, as by a client that
    reads too slowly) asks the client to fetch everything since the revision it has. Where no message has been
    lost before it, its `quiet_s` says how long ago the last change was, except of hosts: what was requested
    later than that, apart from hosts, is up to date. `stale` means that changes are not currently published.
    The stream ends within 5 s after its session or token.
    """
    with auth.streams.opened(principal) as ended:
        async for event in _events(state, ended):
            yield event


async def _events(state: AppState, ended: asyncio.Event) -> AsyncIterator[Any]:
    """The stream as `ServerSentEvent`. The route's annotation names what they contain, for its document."""
    ends_at = time.monotonic() + LIFETIME_S
    with state.subscription.events() as events:
        sent_at = time.monotonic()
        while not (state.stopping.is_set() or ended.is_set()) and time.monotonic() < ends_at:
            match await events.next(WAIT_S):
                case None:
                    if time.monotonic() < sent_at + HEARTBEAT_S:
                        continue
                    yield ServerSentEvent(event="heartbeat", data={})
                case Signal.RESYNC:
                    yield ServerSentEvent(event="resync", data=_quiet(events), id=_event_id())
                case Signal.DISCONNECTED:
                    yield ServerSentEvent(event="stale", data={}, id=_event_id())
                case bytes(data):
                    yield ServerSentEvent(raw_data=data.decode(), id=_event_id())
            sent_at = time.monotonic()


def _quiet(events: Events) -> dict[str, Any]:
    return {} if events.quiet_since is None else {"quiet_s": time.monotonic() - events.quiet_since}


def _event_id() -> str:
    return str(time.time_ns() // 1000)
