"""Kills during a migration of a campaign's database."""

import random
import subprocess
from collections.abc import Callable
from time import monotonic

from sqlalchemy import Engine, select

from backend.db import Run
from backend.db.engine import reading
from backend.db.migrate import downgrade, is_current, upgrade
from tests.chaos.invariants import Story, story_of_rows
from tests.chaos.stack import Stack
from tests.support.installation import CALLBOARD
from tests.support.waiting import PATIENCE_S

OLDER = "0013"
"""The revision before the one that computes statistics from every recorded point."""


def kill_upgrades(stack: Stack, rng: random.Random, n_kills: int, log: Callable[[str], None]) -> list[str]:
    """Downgrade and upgrade the database, killing the upgrade each time. Return the violations.

    Args:
        stack: whose workers have ended; its web process is ended here.
        rng: draws when to kill.
        n_kills: number of upgrades to kill.
        log: called with each event.
    """
    stack.web.process.kill()
    stack.web.process.wait()
    url, engine = stack.database.url, stack.engine
    before = _stories(engine)
    violations = []
    downgrade(url, OLDER)
    started_at = monotonic()
    if (status := _start_upgrade(stack).wait(timeout=PATIENCE_S)) != 0:
        return [f"an upgrade exited with status {status}"]
    whole_s = monotonic() - started_at
    for _ in range(n_kills):
        downgrade(url, OLDER)
        process, after_s = _start_upgrade(stack), whole_s * rng.uniform(0.5, 1.0)
        try:
            process.wait(timeout=after_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log(f"kill an upgrade of the database after {after_s:.1f} s of {whole_s:.1f} s")
        upgrade(url)
        engine.dispose()
        if not is_current(engine):
            violations.append("the database is not at the latest revision after a killed upgrade")
        if _stories(engine) != before:
            violations.append("rows have changed by a killed upgrade")
    return violations


def _start_upgrade(stack: Stack) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*CALLBOARD, "db", "upgrade"],
        env=stack.given("web"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _stories(engine: Engine) -> dict[str, Story]:
    with reading(engine) as session:
        return {run_id: story_of_rows(session, run_id) for run_id in session.scalars(select(Run.id))}
