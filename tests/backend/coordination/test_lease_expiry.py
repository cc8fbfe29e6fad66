"""Leases expire while no worker is alive: the web process finds them."""

import pytest
from sqlalchemy import Engine

from tests.support.databases import ON_SQLITE_FIRST
from tests.support.installation import CALLBOARD
from tests.support.rows import add_host
from tests.workers.support import Start, claim, fake_run, moves, until_state

pytestmark = [pytest.mark.service, ON_SQLITE_FIRST]


def test_web_process_expires_lease_of_silent_worker(start: Start, engine: Engine) -> None:
    run = fake_run(engine)
    add_host(engine, "hung")
    claim(engine, "hung", lease_s=0.1)
    start(command=(*CALLBOARD, "web"), lease_s=2, reconcile_interval_s=0.1)
    reason = "hung no longer renews its lease: to resume from its latest checkpoint, if it has one"
    assert until_state(engine, run.id, "queued").state_reason == reason
    assert moves(engine, run.id) == ["queued", "starting", "lost", "queued"]
