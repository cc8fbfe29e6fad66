"""Dependencies of endpoints: the state of the application, and sessions."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from backend.artifacts import ArtifactStore
from backend.audit import service as audit
from backend.auth.last_use import OpenStreams, Uses
from backend.auth.login_limits import LoginPool
from backend.db.engine import read_session, reading, writing
from backend.http.idempotency import repository as idempotency
from backend.http.limits import Limits
from backend.instruments import Instruments
from backend.pubsub.bus import Bus
from backend.pubsub.subscription import Subscription
from backend.settings import Settings

if TYPE_CHECKING:
    from backend.auth.oidc.provider import Provider  # Authlib is loaded only where a provider is configured


@dataclass(frozen=True)
class AppState:
    """Everything that one web process shares between requests."""

    settings: Settings
    db_engine: Engine
    bus: Bus
    subscription: Subscription
    artifacts: ArtifactStore
    instruments: Instruments
    logins: LoginPool
    uses: Uses
    streams: OpenStreams
    stopping: asyncio.Event
    """Set on shutdown: streams end."""
    limits: Limits = field(default_factory=Limits)
    oidc: "Provider | None" = None
    """None without an OpenID Connect provider."""


class Repeated(Exception):
    """A request whose idempotency key was used before; it gets the stored response."""

    def __init__(self, key: str, fingerprint: str) -> None:
        super().__init__(key)
        self.key = key
        self.fingerprint = fingerprint


def get_state(connection: HTTPConnection) -> AppState:
    """The state that `backend.app.create_app` created."""
    state: AppState = connection.app.state.app_state
    return state


# Dependencies that do no I/O are coroutines: each synchronous one would be called in a thread of its own.
async def _state(request: Request) -> AppState:
    return get_state(request)


AppStateDep = Annotated[AppState, Depends(_state)]


async def _body(request: Request) -> bytes:
    return await request.body()


async def _reading(state: AppStateDep) -> AsyncIterator[Session]:
    session = read_session(state.db_engine)  # connects with its first query, in the endpoint's thread
    try:
        yield session
    finally:
        if state.db_engine.dialect.name == "sqlite":
            session.close()  # ends a transaction that only read: no I/O, quicker than a change of threads
        else:
            await run_in_threadpool(session.close)


async def _write_turn(state: AppStateDep) -> AsyncIterator[float]:
    async with state.limits.writes.turn() as ends_at:
        yield ends_at


def _writing(
    request: Request,
    state: AppStateDep,
    body: Annotated[bytes, Depends(_body)],
    ends_at: Annotated[float, Depends(_write_turn, scope="function")],
) -> Iterator[Session]:
    yield from _transaction(request, state, body, max(0.0, ends_at - monotonic()))


def _ingesting(
    request: Request,
    state: AppStateDep,
    ends_at: Annotated[float, Depends(_write_turn, scope="function")],
) -> Iterator[Session]:
    yield from _transaction(request, state, None, max(0.0, ends_at - monotonic()))


def _writing_at_once(
    request: Request, state: AppStateDep, body: Annotated[bytes, Depends(_body)]
) -> Iterator[Session]:
    yield from _transaction(request, state, body, None)


def _transaction(
    request: Request, state: AppState, body: bytes | None, wait_s: float | None
) -> Iterator[Session]:
    repeated: Repeated | None = getattr(request.state, "repeated", None)
    if repeated is not None:
        with reading(state.db_engine) as session:
            if idempotency.get(session, request.state.principal.id, repeated.key) is not None:
                raise repeated
    with writing(state.db_engine, wait_s=wait_s) as session:
        request.state.writing = session
        yield session
        if body is not None:
            audit.record(session, request, body)
    state.bus.publish_changes(session)


# Function scope: the transaction is committed before the response is sent, so a 201 means that the object
# exists, and a failed commit becomes an error response.
ReadSession = Annotated[Session, Depends(_reading, scope="function")]
WriteSession = Annotated[Session, Depends(_writing, scope="function")]
IngestSession = Annotated[Session, Depends(_ingesting, scope="function")]
"""A `WriteSession` whose requests are not in the audit trail: the measurements and heartbeats of a script."""
LoginSession = Annotated[Session, Depends(_writing_at_once, scope="function")]
"""A `WriteSession` without a turn among the requests that write: none of them waits while a password is
checked."""


async def _artifacts(state: AppStateDep) -> ArtifactStore:
    return state.artifacts


Artifacts = Annotated[ArtifactStore, Depends(_artifacts)]
"""The artifact store."""
