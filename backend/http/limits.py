"""Bounds on what one web process does at the same time: reads, writes, and responses in parts."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar, cast

from cachetools import TTLCache
from starlette.concurrency import run_in_threadpool

from backend.db import deadline
from backend.db.deadline import RequestEnded
from backend.platform.errors import TooMany, Unavailable
from backend.platform.principals import Principal
from backend.platform.settings import Settings

T = TypeVar("T")

RETRY_AFTER_S = 5
"""When a client may try again for a slot."""

MAX_WAITING_OF_USER = 100
"""Requests of one kind and user that wait for their turn."""

MAX_REST_S = 1.0
"""Longest pause after a turn of a kind that rests."""

MAX_WAITING_CHARTS = 1_000
MAX_WAITING_LARGE_CHARTS = 4
MAX_WAITING_LINKS = 10
MAX_CHARTS = 2
"""Charts and figures that are computed at the same time. The others wait; one may need 100 MiB."""

SHARED_FOR_S = 1.0
"""Maximum age of an answer that is shared by all who ask for it."""
MAX_SHARED = 16
"""Maximum number of such answers."""

QUOTA_S = 24 * 3600.0
"""Length of a period of a token's quota, which begins with the first thing stored after the period before."""

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


class Turns:
    """How many requests of one kind work at the same time, in all and of each user; the others wait in the
    event loop. Next is one of the user with the fewest turns now, then of the one whose turn began longest
    ago, then the one that came first: many requests of one user do not delay those of others.

    Args:
        total: how many work at the same time.
        per_user: how many of one user.
        max_waiting: how many of one user wait.
        rests: whether a turn is free for the next request only after a pause as long as the turn was. For
            work in the event loop itself: one request after another would leave nothing to those of others.
    """

    def __init__(
        self, *, total: int, per_user: int, max_waiting: int = MAX_WAITING_OF_USER, rests: bool = False
    ) -> None:
        self._total = total
        self._per_user = per_user
        self._max_waiting = max_waiting
        self._rests = rests
        self._working: Counter[str] = Counter()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._turns = itertools.count(1)
        self._latest: dict[str, int] = {}
        """By user, the number of their latest turn."""

    @property
    def n_working(self) -> int:
        """Requests that have a turn."""
        return self._working.total()

    @property
    def n_waiting(self) -> int:
        """Requests that wait for their turn."""
        return len(self._waiting)

    @asynccontextmanager
    async def turn(self, user_id: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it.

        Raises:
            TooMany: too many requests of the user wait.
            RequestEnded: the request's deadline has come, or its client has left.
        """
        await self._begin(user_id)
        began = monotonic()
        try:
            yield
        finally:
            if self._rests:
                rest_s = min(monotonic() - began, MAX_REST_S)
                asyncio.get_running_loop().call_later(rest_s, self._end, user_id)
            else:
                self._end(user_id)

    async def _begin(self, user_id: str) -> None:
        if self._is_free(user_id):
            self._take(user_id)
            return
        if sum(user == user_id for user, _ in self._waiting) >= self._max_waiting:
            raise TooMany("too many of your requests wait: try again when some have ended", RETRY_AFTER_S)
        loop, request = asyncio.get_running_loop(), deadline.current()
        turn: asyncio.Future[None] = loop.create_future()

        def give_up() -> None:
            if not turn.done():
                turn.set_exception(RequestEnded())

        self._waiting.append((user_id, turn))
        try:
            if request is not None:
                request.subscribe(give_up)
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._end(user_id)  # it came, too late
            raise
        finally:
            if (user_id, turn) in self._waiting:
                self._waiting.remove((user_id, turn))
            if request is not None:
                request.unsubscribe(give_up)

    def _is_free(self, user_id: str) -> bool:
        return self._working.total() < self._total and self._working[user_id] < self._per_user

    def _end(self, user_id: str) -> None:
        self._working[user_id] -= 1
        self._working += Counter()  # drops zeros
        while free := [waiting for waiting in self._waiting if self._is_free(waiting[0])]:
            user, turn = waiting = min(free, key=self._priority)
            self._waiting.remove(waiting)
            if not turn.done():
                self._take(user)
                turn.set_result(None)
        if not self._waiting and not self._working:
            self._latest.clear()

    def _priority(self, waiting: tuple[str, asyncio.Future[None]]) -> tuple[int, int]:
        return self._working[waiting[0]], self._latest.get(waiting[0], 0)

    def _take(self, user_id: str) -> None:
        self._working[user_id] += 1
        self._latest[user_id] = next(self._turns)


class WriteQueue:
    """Lets a few requests write at the same time, one of each session, or of a token and those that it has
    created; the others wait in the event loop, not in a thread."""

    def __init__(self) -> None:
        self._turns = Turns(total=MAX_WRITERS, per_user=1, max_waiting=MAX_WAITING_WRITERS)

    @property
    def n_waiting(self) -> int:
        """Requests that wait for their turn."""
        return self._turns.n_waiting

    @asynccontextmanager
    async def turn(self, payer_id: str) -> AsyncIterator[float]:
        """Wait for a turn, and hold it. Yields the time (`monotonic`) until which to wait for the write lock.

        Raises:
            Unavailable: too many requests wait, or the turn did not come within `WRITE_TIMEOUT_S`.
        """
        if self.n_waiting >= MAX_WAITING_WRITERS:
            raise busy()
        ends_at = monotonic() + WRITE_TIMEOUT_S
        async with AsyncExitStack() as turn:
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await turn.enter_async_context(self._turns.turn(payer_id))
            except TimeoutError:
                raise busy() from None
            yield ends_at


class SharedAnswers:
    """Answers that everybody may ask for: each is computed at most once in `SHARED_FOR_S`, whoever asks."""

    def __init__(self) -> None:
        self._recent: TTLCache[str, Any] = TTLCache(MAX_SHARED, SHARED_FOR_S)
        self._running: dict[str, asyncio.Task[Any]] = {}

    async def get(self, name: str, compute: Callable[[], T]) -> T:
        """The answer of this name, computed in a thread unless it is recent or being computed."""
        with suppress(KeyError):
            return cast("T", self._recent[name])
        task = self._running.get(name)
        if task is None:
            # In a context of its own: it does not end with the request that has begun it.
            task = asyncio.create_task(self._compute(name, compute), context=Context())
            self._running[name] = task
        return cast("T", await asyncio.shield(task))  # a client that leaves ends it for no other

    async def _compute(self, name: str, compute: Callable[[], T]) -> T:
        try:
            answer = await run_in_threadpool(compute)
            self._recent[name] = answer
            return answer
        finally:
            del self._running[name]


def busy() -> Unavailable:
    """The answer to a request that writes and for which there is no turn."""
    return Unavailable(
        "the database is busy with other changes; nothing was changed: try again",
        retry_after_s=1,
    )


def crowded() -> Unavailable:
    """The answer to a request whose turn among those of its kind did not come in time."""
    return Unavailable("too many requests wait; nothing was changed: try again", retry_after_s=1)


@dataclass
class _Used:
    """What a token has stored since the start of its day."""

    since: float
    n_bytes: int = 0
    n_runs: int = 0
    n_series: int = 0


class Quotas:
    """What the scripts of each token, and of those that it has created, may store in a day, so that none
    fills the storage of all."""

    def __init__(self) -> None:
        self._used: dict[str, _Used] = {}

    def charge(
        self,
        principal: Principal,
        settings: Settings,
        *,
        n_bytes: int = 0,
        n_runs: int = 0,
        n_series: int = 0,
    ) -> None:
        """Count what a token stores; sessions of browsers have no quota.

        Raises:
            TooMany: it has stored as much as it may.
        """
        if principal.credential.kind != "token":
            return
        now = monotonic()
        payer_id = principal.credential.payer_id
        used = self._used.get(payer_id)
        if used is None or now - used.since >= QUOTA_S:
            used = self._used[payer_id] = _Used(now)
        for count, most, what, variable in (
            (used.n_bytes + n_bytes, settings.token_daily_bytes, "bytes", "BYTES"),
            (used.n_runs + n_runs, settings.token_daily_runs, "runs", "RUNS"),
            (used.n_series + n_series, settings.token_daily_series, "series", "SERIES"),
        ):
            if count > most:
                detail = (
                    f"this token, with those that created it or that it has created, has stored {most:,} "
                    f"{what} today, the maximum of a day: try again later, or raise "
                    f"CALLBOARD_TOKEN_DAILY_{variable} on the server"
                )
                raise TooMany(detail, used.since + QUOTA_S - now)
        used.n_bytes += n_bytes
        used.n_runs += n_runs
        used.n_series += n_series


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
    quotas: Quotas = field(default_factory=Quotas)
    writes: WriteQueue = field(default_factory=WriteQueue)
    requests: Turns = field(default_factory=lambda: Turns(total=24, per_user=4, max_waiting=200))
    """Requests that read, until their response begins: each may occupy one of 40 threads."""
    without_login: Turns = field(default_factory=lambda: Turns(total=16, per_user=4, max_waiting=1_000))
    """Requests without a login, by address: pages, what everybody may ask for, and what is refused."""
    heavy: Turns = field(default_factory=lambda: Turns(total=4, per_user=1, max_waiting=200))
    """Requests with a long body or query, which the event loop reads: one of each session or
    token, or of an address without one."""
    lists: Turns = field(default_factory=lambda: Turns(total=4, per_user=2))
    """Lists whose cost grows with all runs, such as filters and sorting by settings and metrics, groups and
    fields; and long pages."""
    estimates: Turns = field(default_factory=lambda: Turns(total=2, per_user=1, rests=True))
    """Estimates, which validate up to 100 combinations."""
    hashes: Turns = field(default_factory=lambda: Turns(total=2, per_user=1))
    """Checksums of uploads of up to 1 GiB."""
    shared: SharedAnswers = field(default_factory=SharedAnswers)
    charts: Turns = field(
        default_factory=lambda: Turns(total=MAX_CHARTS, per_user=MAX_CHARTS, max_waiting=MAX_WAITING_CHARTS)
    )
    """Held while a chart is computed."""
    links: Turns = field(default_factory=lambda: Turns(total=1, per_user=1, max_waiting=MAX_WAITING_LINKS))
    """Held, by address, while a page behind a link is computed, which needs no login: of the turns of charts,
    links have at most one."""
    large_charts: Turns = field(
        default_factory=lambda: Turns(total=2, per_user=1, max_waiting=MAX_WAITING_LARGE_CHARTS)
    )
    """Held until a large chart is sent, or its client has left: it takes memory until then."""
