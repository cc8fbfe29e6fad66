"""Leases expire while no worker is alive: the web process finds them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.coordination import claims, lease_expiry
from backend.coordination.context import Context
from backend.coordination.lease_expiry import LeaseExpiry
from tests.support.installation import CALLBOARD
from tests.support.rows import add_host
from tests.support.waiting import PATIENCE_S, until
from tests.workers.support import (
    FlakyContext,
    Start,
    claim,
    expire_lease,
    fake_run,
    moves,
    until_state,
)

pytestmark = pytest.mark.service


@pytest.mark.long
def test_web_process_expires_lease_of_silent_worker(start: Start, engine: Engine) -> None:
    run = fake_run(engine)
    add_host(engine, "hung")
    claim(engine, "hung", lease_s=0.1)
    start(command=(*CALLBOARD, "web"), lease_s=2, reconcile_interval_s=0.1)
    reason = "hung no longer renews its lease: to resume from its latest checkpoint, if it has one"
    assert until_state(engine, run.id, "queued").state_reason == reason
    assert moves(engine, run.id) == ["queued", "starting", "lost", "queued"]


@dataclass(frozen=True)
class _LockedContext(FlakyContext):
    """Connections to a database that can only be read while `outage` is not empty."""

    @contextmanager
    def reading(self) -> Iterator[Session]:
        with Context.reading(self) as session:
            yield session


@pytest.fixture
def clock_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time since boot, which each round of the expiry advances."""
    now_s, has_expired = [0.0], claims.has_expired

    def advance(session: Session) -> bool:
        now_s[0] += 10.0
        return has_expired(session)

    monkeypatch.setattr(claims, "has_expired", advance)
    monkeypatch.setattr(lease_expiry, "since_boot_s", lambda: now_s[0])
    return now_s


@pytest.fixture
def outage(context: Context) -> Iterator[list[bool]]:
    """While it is not empty, the expiry that runs can only read the database."""
    outage: list[bool] = []
    settings = context.settings.model_copy(update={"reconcile_interval_s": 0.01})
    expiry = LeaseExpiry(_LockedContext(settings, context.db_engine, context.store, context.bus, outage))
    expiry.start()
    yield outage
    expiry.begin_stop()
    expiry.join(PATIENCE_S)


@pytest.mark.parametrize("is_locked", [False, True])
def test_lease_that_expired_while_nobody_could_renew_it_lasts_one_more_term(
    context: Context,
    engine: Engine,
    clock_s: list[float],
    outage: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    is_locked: bool,
) -> None:
    """The machine was suspended, or another process has locked the database for longer than a lease."""
    lost_s: list[float] = []
    expire, lease_s = lease_expiry.expire, context.settings.lease_s

    def record_time(context: Context) -> None:
        expire(context)
        lost_s.append(clock_s[0])

    monkeypatch.setattr(lease_expiry, "expire", record_time)
    run = fake_run(engine)
    add_host(engine, "a")
    claim(engine)
    until(lambda: clock_s[0] > 2 * lease_s)
    if is_locked:
        outage.append(True)
    expire_lease(engine, run.id)
    since_s = clock_s[0]
    if is_locked:
        until(lambda: clock_s[0] > since_s + 2 * lease_s)
        since_s = clock_s[0]
        outage.clear()
    until_state(engine, run.id, "queued")
    until(lambda: lost_s)
    assert lost_s[0] >= since_s + lease_s
