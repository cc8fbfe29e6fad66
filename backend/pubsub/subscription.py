"""One Redis subscription for all streams of a web process."""

import asyncio
import time
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from enum import Enum

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from backend.pubsub.bus import CHANNEL, LOST, frames_channel

RECONNECT_S = 1.0
WAIT_S = 0.5
CANCEL_INTERVAL_S = 1.0

MAX_UNSENT = 1000
"""Maximum number of events that wait for a slow client. After one more it gets a `resync` instead."""

_OF_HOST = b'{"kind":"host",'
"""How the message of a host begins."""

log = structlog.get_logger(__name__)


async def cancel_all(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended.

    A task is cancelled again until it ends: redis-py sends commands by `asyncio.wait_for`, which in Python
    3.11 ignores a cancellation that comes just after the command was sent.
    """
    running = {task for task in tasks if not task.done()}
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=CANCEL_INTERVAL_S)
    await asyncio.gather(*tasks, return_exceptions=True)


class Signal(Enum):
    """What a listener learns about the subscription itself."""

    RESYNC = "resync"
    """Messages may have been lost: Redis is connected anew, or a listener had too many unsent ones."""
    DISCONNECTED = "disconnected"


class Events:
    """The published changes that one stream has not sent yet."""

    def __init__(self) -> None:
        self._unsent: deque[bytes | Signal] = deque()
        self._arrived = asyncio.Event()
        self.quiet_since: float | None = None
        """When the last change before this stream began arrived, by the monotonic clock; None if messages may
        have been lost since. Changes of hosts do not count: their heartbeats come all the time, and pages
        poll hosts."""

    def put(self, message: bytes | Signal) -> None:
        """Append a message. `RESYNC` replaces the unsent ones, as it does once there are `MAX_UNSENT`."""
        if message is Signal.RESYNC or len(self._unsent) >= MAX_UNSENT:
            self._unsent.clear()
            self.quiet_since = None
            self._unsent.append(Signal.RESYNC)
        if message is not Signal.RESYNC:
            self._unsent.append(message)
        self._arrived.set()

    async def next(self, timeout_s: float) -> bytes | Signal | None:
        """The oldest message; None if there is none within `timeout_s`."""
        if not self._unsent:
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._arrived.wait()
        return self._unsent.popleft() if self._unsent else None


class Frames:
    """The latest frame of a run that one socket has not sent yet."""

    def __init__(self) -> None:
        self._latest: asyncio.Queue[bytes] = asyncio.Queue(1)

    def put(self, frame: bytes) -> None:
        """Replace the frame that was not sent in time."""
        if self._latest.full():
            self._latest.get_nowait()
        self._latest.put_nowait(frame)

    async def next(self) -> bytes:
        """The latest frame."""
        return await self._latest.get()


class Subscription:
    """Receives published changes and frames over one connection, and passes them on to every listener.

    It connects for the first listener and reconnects by itself.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._events: set[Events] = set()
        self._frames: dict[str, set[Frames]] = {}
        self._task: asyncio.Task[None] | None = None
        self._client: Redis | None = None
        """Set while subscribed."""
        self._quiet_since = 0.0
        """When the last change arrived, except of a host, or this subscription began."""

    @contextmanager
    def events(self) -> Iterator[Events]:
        """Listen for changes. `Signal.RESYNC` comes first where Redis is subscribed to, else once it is."""
        listener = Events()
        if self._client is not None:
            listener.put(Signal.RESYNC)
            listener.quiet_since = self._quiet_since
        self._events.add(listener)
        self._start()
        try:
            yield listener
        finally:
            self._events.discard(listener)

    @contextmanager
    def frames(self, owner_id: str) -> Iterator[Frames]:
        """Listen for the frames of a run or of a play session."""
        listener = Frames()
        channel = frames_channel(owner_id)
        listeners = self._frames.setdefault(channel, set())
        listeners.add(listener)
        self._start()
        try:
            yield listener
        finally:
            listeners.discard(listener)
            if not listeners and self._frames.get(channel) is listeners:
                del self._frames[channel]

    async def publish(self, channel: str, message: str) -> bool:
        """Publish a message; return whether Redis accepted it."""
        if self._client is None:
            return False
        with suppress(RedisError, OSError):
            await self._client.publish(channel, message)
            return True
        return False

    async def close(self) -> None:
        """Close the connection."""
        if self._task is not None:
            await cancel_all([self._task])

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                await self._receive()
            except (RedisError, OSError) as error:
                log.warning("redis.unavailable", operation="subscribe", error=str(error))
            finally:
                self._client = None
            self._signal(Signal.DISCONNECTED)
            await asyncio.sleep(RECONNECT_S)

    async def _receive(self) -> None:
        # Without retries, which would hide that messages were lost.
        retry = Retry(NoBackoff(), 0)
        async with (
            Redis.from_url(self._url, socket_connect_timeout=RECONNECT_S, retry=retry) as client,
            client.pubsub() as channels,
        ):
            await channels.subscribe(CHANNEL)
            await channels.psubscribe(frames_channel("*"))
            n_confirmed = 0
            while True:
                message = await channels.get_message(timeout=WAIT_S)
                if message is None:
                    continue
                if message["type"] in ("subscribe", "psubscribe"):
                    n_confirmed += 1
                    if n_confirmed >= 2:
                        self._client = client
                        self._quiet_since = time.monotonic()
                        self._signal(Signal.RESYNC)
                elif message["type"] == "message":
                    if not message["data"].startswith(_OF_HOST):
                        self._quiet_since = time.monotonic()
                    if message["data"] == LOST.encode():
                        self._signal(Signal.RESYNC)
                        continue
                    for listener in self._events:
                        listener.put(message["data"])
                elif message["type"] == "pmessage":
                    for watcher in self._frames.get(message["channel"].decode(), ()):
                        watcher.put(message["data"])

    def _signal(self, signal: Signal) -> None:
        for listener in self._events:
            listener.put(signal)
