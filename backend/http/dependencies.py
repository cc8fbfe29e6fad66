"""Dependencies of endpoints: the state of the application, who sends a request, and sessions.

What stands above this package is given to it: `backend.app` puts the functions that authenticate a request
and record its change into `AppState`.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security.utils import get_authorization_scheme_param
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from backend.db.engine import UnitOfWork, commit, read_session, reading, writing
from backend.db.series import NEW_SERIES
from backend.http.addresses import address_of
from backend.http.context import Repeated, RequestContext, context_of
from backend.http.counters import RequestCounters
from backend.http.idempotency import repository as idempotency
from backend.http.limits import WRITE_TIMEOUT_S, Limits
from backend.http.pages import SAFE_METHODS
from backend.platform.artifacts import ArtifactStore
from backend.platform.errors import Unauthenticated, Unavailable
from backend.platform.files import existing_folder
from backend.platform.principals import Principal
from backend.platform.settings import Settings
from backend.pubsub.bus import Bus
from backend.pubsub.subscription import Subscription

COOKIE = "callboard_session"
"""Beginning of the name of the session's cookie; see `cookie_name`."""
PAGE_SECRET_HEADER = "X-Page-Secret"  # noqa: S105 - the name of a header
"""Carries the second secret of a session. A browser sends cookies to every port of a host; what a page keeps
in its local storage, no page of another port can read."""
TICKET = "ticket"
"""The parameter of an address that takes the header's place for a while, where a browser sends none: streams,
media and downloads."""


_COMPLETE = "callboard_complete"
"""Key in a session's `info`: the function that completes its transaction, until it is called."""

RESERVED_BYTES = 16 * 2**20
"""Free space of a disk that is nearly full, down to which heartbeats and ends of scripts are stored."""

BETWEEN_BATCHES_S = 0.05
"""Pause between the transactions of a request: whoever waits for SQLite's lock looks for it now and then."""


@dataclass(frozen=True)
class SentSecrets:
    """The secrets that a request carries: a token, or those of a session."""

    token: str | None = None
    cookie: str | None = None
    page: str | None = None
    """The second secret of a session, from the header."""
    ticket: str | None = None
    """Only of a request that reads."""


Authenticate = Callable[[SentSecrets, str], Principal | None]
"""Finds the user of a token, else of a session, and records that it was used from the client's address; None
if it is unknown, revoked or expired."""

RecordChange = Callable[[Session, Request, bytes], None]
"""Records a request with this body in the transaction of its change."""


@dataclass(frozen=True)
class AppState:
    """What every endpoint of one web process may need."""

    settings: Settings
    db_engine: Engine
    bus: Bus
    subscription: Subscription
    artifacts: ArtifactStore
    counters: RequestCounters
    authenticate: Authenticate
    record_change: RecordChange
    stopping: asyncio.Event
    """Set on shutdown: streams end."""
    limits: Limits = field(default_factory=Limits)


def get_state(connection: HTTPConnection) -> AppState:
    """The state that `backend.app.create_app` created."""
    state: AppState = connection.app.state.app_state
    return state


# Dependencies that do no I/O are coroutines: each synchronous one would be called in a thread of its own.
async def _state(request: Request) -> AppState:
    return get_state(request)


async def _context(request: Request) -> RequestContext:
    return context_of(request)


AppStateDep = Annotated[AppState, Depends(_state)]
RequestContextDep = Annotated[RequestContext, Depends(_context)]


def cookie_name(connection: HTTPConnection, beginning: str = COOKIE) -> str:
    """The name of a cookie, by default the session's, at the address that the client uses. It has the port,
    which cookies do not have: else a login at one of two servers of a host would end the session at the
    other."""
    port = connection.url.port
    return beginning if port is None else f"{beginning}_{port}"


def secrets_of(connection: HTTPConnection) -> SentSecrets:
    """The token that a client sends, else the secrets of its session: its cookie, and the page's secret or a
    ticket in place of it."""
    header = connection.headers.get("authorization")
    if header is not None:
        # A cookie next to another authorization scheme is ignored: its origin was not checked.
        scheme, token = get_authorization_scheme_param(header)
        return SentSecrets(token=(token or None) if scheme.lower() == "bearer" else None)
    reads = connection.scope["type"] == "websocket" or connection.scope["method"] in SAFE_METHODS
    page = connection.headers.get(PAGE_SECRET_HEADER) or None
    return SentSecrets(
        cookie=connection.cookies.get(cookie_name(connection)) or None,
        page=page,
        ticket=(connection.query_params.get(TICKET) or None) if reads and page is None else None,
    )


def principal_of(request: Request) -> Principal:
    """Who sends a request. `RequestMiddleware` has authenticated and authorised it before it read the body.

    Raises:
        Exception: why it was refused.
    """
    context = context_of(request)
    if context.principal is None or context.refusal is not None:
        raise context.refusal or Unauthenticated()
    return context.principal


# FastAPI solves a dependency again wherever a request names it. What many requests need is therefore a
# function of the request here; only what the API's schema shows is a dependency.
async def _authenticated(request: Request) -> Principal:
    return principal_of(request)


def authenticate(connection: HTTPConnection) -> Principal:
    """Find out who sends a request, by its token, else by the two secrets of its session.

    Raises:
        Unauthenticated: it has none, or it is unknown, revoked or expired.
    """
    sent = secrets_of(connection)
    if sent.token is None and sent.cookie is None:
        raise Unauthenticated
    if sent.token is None and sent.page is None and sent.ticket is None:
        raise Unauthenticated(
            "the session's cookie alone is not accepted, since a browser sends it to every port of this "
            f"host: log in again, and send the page's secret as {PAGE_SECRET_HEADER}",
            code="page_secret_missing",
        )
    principal = get_state(connection).authenticate(sent, address_of(connection))
    if principal is None:
        raise Unauthenticated(
            "the token or session is unknown, revoked or expired: log in again, or create another token"
        )
    return principal


Authenticated = Annotated[Principal, Depends(_authenticated)]
"""Who sends the request. It is found once for each request, whatever depends on it."""


async def _body(request: Request) -> bytes:
    return await request.body()


async def _reading(request: Request) -> AsyncIterator[Session]:
    db_engine = get_state(request).db_engine
    session = read_session(db_engine)  # connects with its first query, in the endpoint's thread
    try:
        yield session
    finally:
        if db_engine.dialect.name == "sqlite":
            session.close()  # ends a transaction that only read: no I/O, quicker than a change of threads
        else:
            await run_in_threadpool(session.close)


async def _write_turn(request: Request) -> AsyncIterator[float]:
    payer_id = principal_of(request).credential.payer_id
    async with get_state(request).limits.writes.turn(payer_id) as ends_at:
        yield ends_at


_WriteTurn = Annotated[float, Depends(_write_turn, scope="function")]


def _writing(
    request: Request,
    state: AppStateDep,
    principal: Authenticated,
    body: Annotated[bytes, Depends(_body)],
    ends_at: _WriteTurn,
) -> Iterator[Session]:
    _refuse_repeated(request, state, principal)
    yield from _transaction(request, state, body, max(0.0, ends_at - monotonic()))


def _ingesting(
    request: Request, state: AppStateDep, principal: Authenticated, ends_at: _WriteTurn
) -> Iterator[Session]:
    require_room(state.settings)
    yield from _reporting(request, state, principal, ends_at)


def _reporting(
    request: Request, state: AppStateDep, principal: Authenticated, ends_at: _WriteTurn
) -> Iterator[Session]:
    require_room(state.settings, RESERVED_BYTES)
    _refuse_repeated(request, state, principal)
    n_bytes = context_of(request).body_bytes
    yield from _transaction(request, state, None, max(0.0, ends_at - monotonic()), n_bytes=n_bytes)


def require_room(settings: Settings, reserved_bytes: int | None = None) -> None:
    """Refuse to store more on a disk that is nearly full: a full one ends all training on this machine.

    Args:
        settings: with the free space below which it is.
        reserved_bytes: less free space that is enough for what is small and ends something.

    Raises:
        Unavailable: the disk is nearly full.
    """
    least_bytes = settings.min_free_disk_bytes
    if reserved_bytes is not None:
        least_bytes = min(least_bytes, reserved_bytes)
    if shutil.disk_usage(existing_folder(settings.home_dir)).free < least_bytes:
        raise Unavailable(
            "the disk of the server is nearly full; nothing was stored: free some space", retry_after_s=30
        )


def _writing_at_once(
    request: Request, state: AppStateDep, body: Annotated[bytes, Depends(_body)]
) -> Iterator[Session]:
    yield from _transaction(request, state, body, None)


def _refuse_repeated(request: Request, state: AppState, principal: Principal) -> None:
    keyed = context_of(request).keyed
    if keyed is not None:
        with reading(state.db_engine) as session:
            if idempotency.get(session, principal.credential.id, keyed.key) is not None:
                raise Repeated


def _transaction(
    request: Request, state: AppState, body: bytes | None, wait_s: float | None, *, n_bytes: int = 0
) -> Iterator[Session]:
    context = context_of(request)
    with writing(state.db_engine, wait_s=wait_s) as session:

        def complete() -> None:
            n_series = session.info.get(NEW_SERIES, 0)
            if context.principal is not None and (n_bytes or n_series):
                quotas = state.limits.quotas
                quotas.charge(context.principal, state.settings, n_bytes=n_bytes, n_series=n_series)
            if body is not None and context.audited and request.method not in SAFE_METHODS:
                state.record_change(session, request, body)

        context.session = session
        if context.keyed is None:
            session.info[_COMPLETE] = complete
        yield session
        if context.keyed is not None or session.info.pop(_COMPLETE, None) is not None:
            complete()
    state.bus.publish_changes(session)


def commit_session(session: Session) -> None:
    """Commit a `WriteSession` or `IngestSession`, if the endpoint has used it, in the endpoint's thread: the
    framework ends it in another thread after a turn of the event loop, in which others wait for SQLite's
    write lock. Where the response is stored in the same transaction, nothing happens yet."""
    complete = session.info.pop(_COMPLETE, None)
    if complete is not None:
        complete()
        commit(session)


# Function scope: the transaction is committed before the response is sent, so a 201 means that the object
# exists, and a failed commit becomes an error response.
ReadSession = Annotated[Session, Depends(_reading, scope="function")]
WriteSession = Annotated[Session, Depends(_writing, scope="function")]
"""A transaction. Whoever sends the request is authenticated before it begins."""


async def _work(read: ReadSession, write: WriteSession) -> UnitOfWork:
    return UnitOfWork(read, write)


Work = Annotated[UnitOfWork, Depends(_work)]
"""A `ReadSession` and a `WriteSession`, for services that read much before they write."""
IngestSession = Annotated[Session, Depends(_ingesting, scope="function")]
"""A `WriteSession` whose requests are not in the audit trail: the measurements of a script."""
ReportSession = Annotated[Session, Depends(_reporting, scope="function")]
"""The same for its heartbeats and its end, for which a nearly full disk has room."""
LoginSession = Annotated[Session, Depends(_writing_at_once, scope="function")]
"""A `WriteSession` without an authentication, and without a turn among the requests that write: none of them
waits while a password is checked."""


class WriteBatches:
    """Several transactions of one request, each of which holds SQLite's write lock for a moment."""

    def __init__(self, request: Request, state: AppState, body: bytes) -> None:
        self._request = request
        self._state = state
        self._body = body
        self._n = 0

    @contextmanager
    def transaction(self, *, changes: bool = True) -> Iterator[Session]:
        """The next transaction. With `changes`, the first one records the request in the audit trail."""
        if self._n:
            sleep(BETWEEN_BATCHES_S)
        self._n += 1
        context = context_of(self._request)
        with writing(self._state.db_engine, wait_s=WRITE_TIMEOUT_S) as session:
            yield session
            if changes and context.audited:
                self._state.record_change(session, self._request, self._body)
        context.audited = False
        self._state.bus.publish_changes(session)


def _batches(request: Request, state: AppStateDep, body: Annotated[bytes, Depends(_body)]) -> WriteBatches:
    return WriteBatches(request, state, body)


Batches = Annotated[WriteBatches, Depends(_batches)]
"""Transactions of a request that changes many rows. Beside a `WriteSession`, which gives it its turn."""


async def _artifacts(request: Request) -> ArtifactStore:
    return get_state(request).artifacts


Artifacts = Annotated[ArtifactStore, Depends(_artifacts)]
"""The artifact store."""
