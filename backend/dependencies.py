"""What endpoints are given: the parts of the running service, and sessions."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.artifacts import ArtifactStore
from backend.audit import service as audit
from backend.auth.passwords import Throttle
from backend.db.engine import reading, writing
from backend.idempotency import repository as idempotency
from backend.instruments import Instruments
from backend.live.bus import Bus
from backend.settings import Settings


@dataclass(frozen=True)
class Parts:
    """What one web process is made of."""

    settings: Settings
    engine: Engine
    bus: Bus
    artifacts: ArtifactStore
    instruments: Instruments
    throttle: Throttle
    stopping: asyncio.Event
    """Set when the process goes down: endless answers end."""


class Repeated(Exception):
    """A request whose idempotency key was seen before; answered as it was answered then."""

    def __init__(self, key: str, fingerprint: str) -> None:
        super().__init__(key)
        self.key = key
        self.fingerprint = fingerprint


def get_parts(request: Request) -> Parts:
    """The parts `backend.app.create_app` put together."""
    parts: Parts = request.app.state.parts
    return parts


ThisParts = Annotated[Parts, Depends(get_parts)]


async def _body(request: Request) -> bytes:
    return await request.body()


def _reading(parts: ThisParts) -> Iterator[Session]:
    with reading(parts.engine) as session:
        yield session


def _writing(request: Request, parts: ThisParts, body: Annotated[bytes, Depends(_body)]) -> Iterator[Session]:
    repeated: Repeated | None = getattr(request.state, "repeated", None)
    if repeated is not None:
        with reading(parts.engine) as session:
            if idempotency.get(session, request.state.actor.id, repeated.key) is not None:
                raise repeated
    with writing(parts.engine) as session:
        request.state.writing = session
        yield session
        audit.record(session, request, body)
    parts.bus.announce(session)


# Function scope: the transaction is committed before the answer is sent, so a client that was told "created"
# finds it, and one whose commit failed is told so.
ReadSession = Annotated[Session, Depends(_reading, scope="function")]
WriteSession = Annotated[Session, Depends(_writing, scope="function")]


def get_artifacts(parts: ThisParts) -> ArtifactStore:
    """The artifact store."""
    return parts.artifacts


Artifacts = Annotated[ArtifactStore, Depends(get_artifacts)]
