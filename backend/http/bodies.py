"""The one reader of requests: who sends one, and whether they may, is known before its body is read, and the
body is bounded before anything is built from it.

Bodies are read here as a whole, so that endpoints, their dependencies and the framework find them complete.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.db.deadline import REQUEST_S, Deadline, RequestEnded, applied
from backend.http.access import Guards
from backend.http.addresses import network_of
from backend.http.context import context_in
from backend.http.dependencies import authenticate, get_state
from backend.http.errors import TooLarge, respond
from backend.http.json_bounds import MAX_VALUES, excess_of
from backend.http.limits import crowded
from backend.http.pages import HEALTH_PATH, SAFE_METHODS
from backend.platform.errors import Invalid, Problem, Unavailable

MAX_BODY_BYTES = 2 * 2**20
"""Maximum size of a body."""
MAX_SMALL_BODY_BYTES = 2**14
"""Maximum size of a body without a login. A body up to this size needs no room among those in progress:
`MAX_CONNECTIONS` bounds how many there are."""
MAX_BODIES_BYTES = 64 * 2**20
"""Maximum size of the bodies of all requests in progress that have a login."""
MAX_BODIES_BYTES_OF_USER = 16 * 2**20
"""The same for one user, who cannot take what others need, however slowly they send."""

_READING_METHODS = SAFE_METHODS | {"PUT"}

_QUICK_BYTES = 2**16
"""A body up to this size is checked in the event loop, in a few milliseconds."""


class ClientGone(Exception):
    """The client has left before its request was complete."""


class RequestMiddleware:
    """Authenticates and authorises each request of the API, then reads its body, bounds what it may take, and
    ends it when nobody waits for it any more.

    Args:
        app: gets each body in one message.
        open_paths: addresses of the API that need no login.
        values: how many values JSON may have, by the last part of an address; default: `MAX_VALUES`.
    """

    def __init__(self, app: ASGIApp, *, open_paths: Collection[str], values: Mapping[str, int]) -> None:
        self._app = app
        self._open_paths = open_paths
        self._values = values
        self._in_progress: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body, or respond with a problem document."""
        deadline = _RequestDeadline()
        # First of all: the server's tasks inherit the context of an earlier request of the connection.
        with applied(deadline):
            if scope["type"] == "http":
                await self._receive(scope, receive, send, deadline)
            else:
                await self._app(scope, receive, send)

    async def _receive(
        self, scope: Scope, receive: Receive, send: Send, deadline: "_RequestDeadline"
    ) -> None:
        context = context_in(scope)
        max_bytes = MAX_SMALL_BODY_BYTES
        if scope["path"].startswith("/api/") and scope["path"] not in self._open_paths:
            try:
                context.principal = await run_in_threadpool(authenticate, HTTPConnection(scope))
                if _has_body(scope):
                    guards: Guards = scope["app"].state.guards
                    guards.check(scope["method"], scope["path"], context.principal)
                max_bytes = MAX_BODY_BYTES
            except Exception as error:
                # The body is not read: the server discards it.
                context.refusal = error
                max_bytes = 0
        address = network_of((scope.get("client") or ("",))[0])
        user_id = context.principal.id if context.principal else None
        reading = _Reading(receive, self._in_progress, user_id, max_bytes)
        try:
            try:
                body = await reading.whole() if max_bytes else b""
                context.body_bytes = len(body)
                await self._respond(scope, body, address, receive, send, deadline)
            except Problem as problem:
                await respond(problem, context.request_id)(scope, receive, send)
            except RequestEnded:
                await respond(crowded(), context.request_id)(scope, receive, send)
            except ClientGone:
                return
        finally:
            reading.free()

    async def _respond(
        self,
        scope: Scope,
        body: bytes,
        address: str,
        receive: Receive,
        send: Send,
        deadline: "_RequestDeadline",
    ) -> None:
        async with _watched(receive, deadline) as gone, context_in(scope).turns as turns:
            await self._take_turns(turns, scope, len(body) + len(scope["query_string"]), address)
            await self._check(scope, body)

            async def send_on(message: Message) -> None:
                if message["type"] == "http.response.start":
                    deadline.begin_response()
                    await turns.aclose()
                await send(message)

            await self._app(scope, _Replayed(body, gone), send_on)

    async def _take_turns(self, turns: AsyncExitStack, scope: Scope, n_bytes: int, address: str) -> None:
        """Wait until the request may be worked on; `turns` ends its turns."""
        limits = get_state(HTTPConnection(scope)).limits
        principal = context_in(scope).principal
        if principal is None and scope["path"] != HEALTH_PATH:
            await turns.enter_async_context(limits.without_login.turn(address))
        if n_bytes > MAX_SMALL_BODY_BYTES:
            # Bodies and queries of a session or token are read one after another.
            sender = address if principal is None else principal.credential.payer_id
            await turns.enter_async_context(limits.heavy.turn(sender))
        if principal is not None and scope["method"] in _READING_METHODS:
            # Those that write have turns of their own, and wait for the database's lock.
            await turns.enter_async_context(limits.requests.turn(principal.id))

    async def _check(self, scope: Scope, body: bytes) -> None:
        if not body or "json" not in Headers(scope=scope).get("content-type", "").lower():
            return
        n_values = self._values.get(scope["path"].rpartition("/")[2], MAX_VALUES)
        if len(body) <= _QUICK_BYTES:
            excess = excess_of(body, n_values)
        else:
            excess = await run_in_threadpool(excess_of, body, n_values)
        if excess is not None:
            raise Invalid.field("body", excess)


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


class _RequestDeadline(Deadline):
    """Ends a request after `REQUEST_S` unless its response has begun: an export may take longer."""

    _timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The request's body is complete."""
        self._timer = asyncio.get_running_loop().call_later(REQUEST_S, self.end)

    def begin_response(self) -> None:
        """The response has begun, or the request has ended."""
        if self._timer is not None:
            self._timer.cancel()


@asynccontextmanager
async def _watched(receive: Receive, deadline: _RequestDeadline) -> AsyncIterator[asyncio.Event]:
    """End a request, whose body was received, when its client leaves. Yields an event that is set then."""
    gone = asyncio.Event()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()
        deadline.end()

    deadline.begin()
    task = asyncio.create_task(watch())
    try:
        yield gone
    finally:
        deadline.begin_response()
        task.cancel()


class _Reading:
    """Receives a body up to the maximum size, while those of its user, and of all, stay below theirs."""

    def __init__(
        self, receive: Receive, in_progress: Counter[str], user_id: str | None, max_bytes: int
    ) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._in_progress = in_progress
        self._user_id = user_id
        self._n_bytes = 0
        self._n_counted = 0
        """Of them, those that count for the user."""

    async def whole(self) -> bytes:
        """The body.

        Raises:
            TooLarge: it is too long.
            Unavailable: the bodies of this user, or of all requests, are too long together.
            ClientGone: the client has left.
        """
        parts: list[bytes] = []
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part: bytes = message.get("body", b"")
            self._count(len(part))
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def _count(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        if self._n_bytes > self._max_bytes:
            raise TooLarge(f"the request body exceeds the maximum of {self._max_bytes} bytes")
        if self._user_id is None or self._n_bytes <= MAX_SMALL_BODY_BYTES:
            return
        self._in_progress[self._user_id] += self._n_bytes - self._n_counted
        self._n_counted = self._n_bytes
        of_user = self._in_progress[self._user_id]
        if of_user > MAX_BODIES_BYTES_OF_USER or self._in_progress.total() > MAX_BODIES_BYTES:
            detail = "too many large requests at the same time: try again"
            raise Unavailable(detail, retry_after_s=1)

    def free(self) -> None:
        """The request has ended."""
        if self._user_id is not None and self._n_counted:
            self._in_progress[self._user_id] -= self._n_counted
            if not self._in_progress[self._user_id]:
                del self._in_progress[self._user_id]


class _Replayed:
    """Receives a body that was read already, and then the end of the client's connection."""

    def __init__(self, body: bytes, gone: asyncio.Event) -> None:
        self._body: bytes | None = body
        self._gone = gone

    async def __call__(self) -> Message:
        if self._body is None:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}
