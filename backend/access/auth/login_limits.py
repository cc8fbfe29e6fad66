"""Limits of logins: how many are checked at the same time, and how often a client may fail.

Failures are counted in the database, before a password is checked: of many concurrent guesses, no more are
tried than of consecutive ones. They count for a user name from one address, for the address, and for the name
from all addresses. Those of a browser that has logged in as the user before count for it alone: guesses of
others do not lock the user out there.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.access.auth import repository
from backend.access.auth.known_browsers import is_known
from backend.access.auth.passwords import MAX_HASHES
from backend.db import User
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.platform.errors import TooMany, Unavailable

FREE_FAILURES = 5
"""Failures of a name from one address before further logins have to wait."""
FREE_ADDRESS_FAILURES = 50
"""Failures of all names from one address before further logins have to wait."""
FREE_NAME_FAILURES = 20
"""Failures of a name from all addresses before further logins have to wait."""
FIRST_WAIT_S = 5.0
"""First wait; it doubles with each further failure."""
MAX_WAIT_S = 300.0
REMEMBERED = timedelta(minutes=10)
"""Failures are forgotten when this time has passed since the latest attempt."""

MAX_PENDING = 20
"""Logins that may wait or be checked at the same time."""
MAX_PENDING_PER_ADDRESS = 10
TURN_TIMEOUT_S = 10.0
"""How long a login waits for its turn."""

T = TypeVar("T")


class LoginPool:
    """Checks passwords in a few threads of its own, so that other requests never wait for them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MAX_HASHES, thread_name_prefix="login")
        self._turns = asyncio.Semaphore(MAX_HASHES)
        self._pending: Counter[str] = Counter()

    async def run(self, address: str, action: Callable[[], T]) -> T:
        """Run an action in one of the threads.

        Raises:
            TooMany: too many are waiting, in all or from this address.
            Unavailable: its turn did not come within `TURN_TIMEOUT_S`.
        """
        if self._pending.total() >= MAX_PENDING or self._pending[address] >= MAX_PENDING_PER_ADDRESS:
            raise TooMany("too many logins at the same time: try again in a second", 1)
        self._pending[address] += 1
        try:
            await self._take_turn()
            try:
                return await asyncio.get_running_loop().run_in_executor(self._threads, action)
            finally:
                self._turns.release()
        finally:
            self._pending[address] -= 1
            self._pending += Counter()  # drops zeros

    async def _take_turn(self) -> None:
        try:
            async with asyncio.timeout(TURN_TIMEOUT_S):
                await self._turns.acquire()
        except TimeoutError:
            raise Unavailable("logins take too long now: try again", retry_after_s=5) from None

    def close(self) -> None:
        """Drop the waiting logins."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def check_within_limits(
    db_engine: Engine,
    address: str,
    name: str,
    check: Callable[[Session], User | None],
    browser: str | None = None,
) -> User | None:
    """Check a password, if the client may try.

    Args:
        db_engine: the engine of the database.
        address: `network_of` the client.
        name: name of the user.
        check: returns the user if the password is right.
        browser: the cookie by which the browser may be known.

    Raises:
        TooMany: the client has to wait.
    """
    with writing(db_engine) as session:
        own = _key("name and address", name, address)
        free = {
            own: FREE_FAILURES,
            _key("address", address): FREE_ADDRESS_FAILURES,
            _key("name", name): FREE_NAME_FAILURES,
        }
        if browser is not None and is_known(browser, repository.user_by_name(session, name)):
            own = _key("browser", browser)
            free = {own: FREE_FAILURES}
        wait_s = _reserve(session, free)
    if wait_s > 0:
        raise TooMany("too many failed logins: wait before you try again", wait_s)
    with reading(db_engine) as session:
        user = check(session)
    if user is not None:
        with writing(db_engine) as session:
            _forgive(session, own, list(free))
    return user


def count_failure(session: Session, kind: str, address: str) -> bool:
    """Count a failed login of another kind than by password. False while the address is over its limit: the
    caller then leaves it out of the audit log."""
    return _reserve(session, {_key(kind, address): FREE_ADDRESS_FAILURES}) == 0


def begin(session: Session, kind: str, address: str) -> None:
    """Count a login of another kind than by password as failed, before it is checked.

    Raises:
        TooMany: the client has to wait.
    """
    wait_s = _reserve(session, {_key(kind, address): FREE_ADDRESS_FAILURES})
    if wait_s > 0:
        raise TooMany("too many failed logins: wait before you try again", wait_s)


def succeed(session: Session, kind: str, address: str) -> None:
    """Take back what `begin` has counted."""
    [limit] = repository.lock_login_limits(session, [_key(kind, address)])
    limit.failures = max(0, limit.failures - 1)
    limit.blocked_until = database_now(session)


def _reserve(session: Session, free: dict[str, int]) -> float:
    """Count an attempt as failed, by keys with their free failures. Returns how long the client has to wait
    instead; 0 if it may try."""
    limits = repository.lock_login_limits(session, list(free))
    now = database_now(session)
    wait_s = max((limit.blocked_until - now).total_seconds() for limit in limits)
    if wait_s > 0:
        return wait_s
    for limit in limits:
        limit.failures += 1
        over = limit.failures - free[limit.key]
        if over >= 0:
            limit.blocked_until = now + timedelta(
                seconds=min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(over, 30))
            )
        limit.expires_at = now + REMEMBERED
    return 0.0


def _forgive(session: Session, own: str, keys: Sequence[str]) -> None:
    """Take back an attempt that was successful, and forget all failures of its own key."""
    now = database_now(session)
    for limit in repository.lock_login_limits(session, keys):
        limit.failures = 0 if limit.key == own else max(0, limit.failures - 1)
        limit.blocked_until = now


def _key(*parts: str) -> str:
    return sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
