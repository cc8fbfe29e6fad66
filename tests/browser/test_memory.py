"""A page that stays open for a week must not grow: many hours of events go through one page in a minute."""

from time import monotonic

import pytest
from playwright.sync_api import CDPSession, Page, expect

from backend.db import Run
from backend.db.engine import writing
from backend.metrics import repository as series
from backend.runs import repository
from backend.specs.events import Points
from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(300)]

WARM_S, WATCHED_S = 20, 60
MAX_GROWTH_BYTES = 3_000_000


def _used_bytes(session: CDPSession) -> int:
    session.send("HeapProfiler.collectGarbage")
    return int(session.send("Runtime.getHeapUsage")["usedSize"])


def test_a_live_page_keeps_its_memory(service_page: Page, sqlite_service: RunningService) -> None:
    engine, bus = sqlite_service.engine, sqlite_service.parts.bus
    run = make_run(engine, RunState.RUNNING, name="for a week")
    page = service_page
    page.goto(f"/runs/{run.id}")
    expect(page.get_by_role("banner").get_by_role("status").last).to_contain_text("live")
    chrome = page.context.new_cdp_session(page)
    step = 0

    def train(seconds: float) -> None:
        nonlocal step
        deadline = monotonic() + seconds
        while monotonic() < deadline:
            steps = list(range(step + 1, step + 201))
            step += 200
            with writing(engine) as session:
                row = session.get_one(Run, run.id)
                row.agent_steps, row.score = step, float(step % 1000)
                revision = repository.touch(session, row)
                points = Points(
                    metric="rollout/episode_return",
                    agent_steps=steps,
                    frames=steps,
                    wall_time_s=[at / 1000 for at in steps],
                    episodes=steps,
                    value=[float(at % 500) for at in steps],
                )
                series.append(session, run.id, 1, revision, [points])
            bus.announce(session)
            page.wait_for_timeout(50)

    train(WARM_S)
    before = _used_bytes(chrome)
    train(WATCHED_S)
    growth = _used_bytes(chrome) - before
    print(f"\n{step:,} points and {step // 200:,} events: {growth / 1e6:+.2f} MB")  # noqa: T201
    assert growth < MAX_GROWTH_BYTES
