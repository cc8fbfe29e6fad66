"""Bounds on what one web process does at the same time: responses in parts, and requests that write."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from time import monotonic

from backend.errors import TooMany, Unavailable

RETRY_AFTER_S = 5
"""When a client may try again for a slot."""

MAX_CHARTS = 2
"""Charts and figures that are computed at the same time. The others wait; one may need 100 MiB."""

MAX_WRITERS = 8
"""Requests that write at the same time. Each occupies a thread while it waits for the database's write lock:
the other threads are for requests that read."""
MAX_WAITING_WRITERS = 200
WRITE_TIMEOUT_S = 4.0
"""How long a request waits for its turn and for the write lock, together."""


class Slots:
    """How many responses of one kind are sent at the same time, in all and to each user."""

    def __init__(self, what: str, *, total: int, per_user: int) -> None:
        self._what = what
        self._total = total
        self._per_user = per_user
        self._taken: Counter[str] = Counter()

    @property
    def n_taken(self) -> int:
        """Number of responses that are being sent."""
        return self._taken.total()

    @contextmanager
    def taken(self, user_id: str) -> Iterator[None]:
        """Hold a slot. Call it from the event loop only.

        Raises:
            TooMany: none is free.
        """
        if self._taken[user_id] >= self._per_user:
            raise TooMany(
                f"you have {self._per_user} {self._what} open, the maximum: try again when one has ended",
                RETRY_AFTER_S,
            )
        if self._taken.total() >= self._total:
            raise TooMany(
                f"all users together have {self._total} {self._what} open, the maximum: try again later",
                RETRY_AFTER_S,
            )
        self._taken[user_id] += 1
        try:
            yield
        finally:
            self._taken[user_id] -= 1
            self._taken += Counter()  # drops zeros


class WriteQueue:
    """Lets a few requests write at the same time; the others wait in the event loop, not in a thread."""

    def __init__(self) -> None:
        self._writers = asyncio.Semaphore(MAX_WRITERS)
        self.n_waiting = 0
        """Requests that wait for their turn."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[float]:
        """Wait for a turn, and hold it. Yields the time (`monotonic`) until which to wait for the write lock.

        Raises:
            Unavailable: too many requests wait, or the turn did not come within `WRITE_TIMEOUT_S`.
        """
        if self.n_waiting >= MAX_WAITING_WRITERS:
            raise _busy()
        ends_at = monotonic() + WRITE_TIMEOUT_S
        self.n_waiting += 1
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await self._writers.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self.n_waiting -= 1
        try:
            yield ends_at
        finally:
            self._writers.release()


def _busy() -> Unavailable:
    return Unavailable(
        "the database is busy with other changes; nothing was changed: try again",
        retry_after_s=1,
    )


@dataclass(frozen=True)
class Limits:
    """The bounds of one web process."""

    exports: Slots = field(default_factory=lambda: Slots("exports", total=8, per_user=4))
    """Each holds a database connection and about 10 MiB."""
    downloads: Slots = field(default_factory=lambda: Slots("downloads", total=100, per_user=40))
    """Checkpoints, videos and observations. A page of replays opens up to 8 videos."""
    streams: Slots = field(default_factory=lambda: Slots("event streams", total=500, per_user=50))
    """A browser opens one for all its tabs."""
    sockets: Slots = field(default_factory=lambda: Slots("live views", total=200, per_user=20))
    writes: WriteQueue = field(default_factory=WriteQueue)
    charts: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CHARTS))
    """Held while a chart is computed."""
