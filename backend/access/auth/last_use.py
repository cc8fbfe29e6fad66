"""When sessions and tokens were used, and the end of streams whose session or token has ended or has a lower
role now."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Lock
from time import monotonic

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from backend.access.auth import repository
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.platform.principals import Credential, Principal, Role

CHECK_INTERVAL_S = 2.0
"""How often the sessions and tokens of open streams are checked."""
STORE_INTERVAL_S = 10.0
"""How often uses are stored."""
STORED_AGAIN_S = 60.0
"""A use is stored if the stored one is older or from another address."""

log = structlog.get_logger(__name__)


class Uses:
    """The latest uses of sessions and tokens. They are stored at intervals: if each request wrote, readers
    would wait for writers."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._storing = Lock()
        self._recorded: dict[Credential, str] = {}
        self._stored: dict[Credential, tuple[float, str]] = {}

    def record(self, credential: Credential, address: str) -> None:
        """Record a use, now, from this address."""
        stored_at, stored_address = self._stored.get(credential, (-STORED_AGAIN_S, ""))
        if address != stored_address or monotonic() - stored_at >= STORED_AGAIN_S:
            with self._lock:
                self._recorded[credential] = address

    def store(self, db_engine: Engine) -> None:
        """Store the recorded uses; they are kept for the next time if the database is unavailable. All that
        were recorded before are stored when this returns, also if another thread is storing them."""
        with self._storing:
            self._store(db_engine)

    def _store(self, db_engine: Engine) -> None:
        with self._lock:
            recorded, self._recorded = self._recorded, {}
        if not recorded:
            return
        try:
            with writing(db_engine) as session:
                now = database_now(session)
                for credential, address in recorded.items():
                    if credential.kind == "session":
                        repository.set_session_use(session, credential.id, address, now)
                    else:
                        repository.set_token_use(session, credential.id, address, now)
        except SQLAlchemyError:
            with self._lock:
                self._recorded = recorded | self._recorded
            raise
        at = monotonic()
        recent = {
            credential: kept for credential, kept in self._stored.items() if at - kept[0] < STORED_AGAIN_S
        }
        self._stored = recent | {credential: (at, address) for credential, address in recorded.items()}


class OpenStreams:
    """The open event streams and sockets of this process, by whom they were opened."""

    def __init__(self) -> None:
        self._ended: dict[Principal, asyncio.Event] = {}
        self._open: Counter[Principal] = Counter()

    @contextmanager
    def opened(self, principal: Principal) -> Iterator[asyncio.Event]:
        """Count a stream as open. The event is set when its session or token has ended, or its role has been
        lowered: what the stream may do was decided by the role that it was opened with."""
        self._open[principal] += 1
        try:
            yield self._ended.setdefault(principal, asyncio.Event())
        finally:
            self._open[principal] -= 1
            if not self._open[principal]:
                del self._open[principal], self._ended[principal]

    def principals(self) -> list[Principal]:
        """Who has open streams: one entry for each session or token, and each role it had."""
        return list(self._open)

    def end(self, principals: Collection[Principal]) -> None:
        """End their streams."""
        for principal in principals:
            if event := self._ended.get(principal):
                event.set()


def find_ended(db_engine: Engine, principals: Collection[Principal], idle: timedelta) -> list[Principal]:
    """Those whose session or token is revoked, expired, or unused for `idle`, or has a lower role now."""
    credentials = [principal.credential for principal in principals]
    sessions = {credential.id for credential in credentials if credential.kind == "session"}
    tokens = {credential.id for credential in credentials if credential.kind == "token"}
    with reading(db_engine) as session:
        roles = repository.roles_of_sessions(session, sessions, idle)
        roles |= repository.roles_of_tokens(session, tokens)
    return [
        principal
        for principal in principals
        if not _covers(roles.get(principal.credential.id), principal.role)
    ]


def _covers(role: str | None, needed: Role) -> bool:
    return role in set(Role) and Role(role).covers(needed)


async def end_streams(db_engine: Engine, streams: OpenStreams, idle: timedelta) -> None:
    """End the streams of sessions and tokens within seconds of their end, or of a change to a lower role. It
    goes on until it is cancelled."""
    while True:
        await asyncio.sleep(CHECK_INTERVAL_S)
        if opened := streams.principals():
            try:
                streams.end(await run_in_threadpool(find_ended, db_engine, opened, idle))
            except SQLAlchemyError as error:
                # While the database is unavailable, streams stay open.
                log.warning("database.unavailable", operation="streams", error=str(error))


async def store_uses(db_engine: Engine, uses: Uses) -> None:
    """Store uses at intervals, until it is cancelled."""
    while True:
        await asyncio.sleep(STORE_INTERVAL_S)
        try:
            await run_in_threadpool(uses.store, db_engine)
        except SQLAlchemyError as error:
            log.warning("database.unavailable", operation="uses", error=str(error))
