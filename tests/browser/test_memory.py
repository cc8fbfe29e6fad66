"""A page that stays open for a week must not grow: many hours of events go through one page in a minute."""

import json

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

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(600)]

# A curve of so many points has as many buckets before as after.
WARM, WATCHED = 700, 4_900
"""Events of 200 points each."""
MAX_GROWTH_BYTES = 30 * WATCHED


def _held_bytes(chrome: CDPSession) -> int:
    """What the page's own objects and elements take.

    V8 makes more and more machine code of a page that is redrawn, and keeps account of it; Chromium keeps
    something of each request for its debugger. Neither is the page's doing.
    """
    parts: list[str] = []
    chrome.on("HeapProfiler.addHeapSnapshotChunk", lambda event: parts.append(event["chunk"]))
    chrome.send("HeapProfiler.collectGarbage")
    chrome.send("HeapProfiler.takeHeapSnapshot", {"reportProgress": False})
    heap = json.loads("".join(parts))
    fields, kinds = heap["snapshot"]["meta"]["node_fields"], heap["snapshot"]["meta"]["node_types"][0]
    kind, name, size = (
        heap["nodes"][fields.index(field) :: len(fields)] for field in ("type", "name", "self_size")
    )
    counted = {kinds.index(one) for one in ("object", "closure", "array", "native")}
    internal = {n for n, words in enumerate(heap["strings"]) if words.startswith(("blink::", "system / "))}
    return sum(s for k, n, s in zip(kind, name, size, strict=True) if k in counted and n not in internal)


def test_a_live_page_keeps_its_memory(service_page: Page, sqlite_service: RunningService) -> None:
    engine, bus = sqlite_service.engine, sqlite_service.parts.bus
    run = make_run(engine, RunState.RUNNING, name="for a week")
    page = service_page
    page.goto(f"/runs/{run.id}")
    expect(page.get_by_role("banner").get_by_role("status").last).to_contain_text("live")
    chrome = page.context.new_cdp_session(page)
    step = 0

    def train(events: int) -> None:
        nonlocal step
        for _ in range(events):
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
            page.wait_for_timeout(10)

    train(WARM)
    before = _held_bytes(chrome)
    train(WATCHED)
    growth = _held_bytes(chrome) - before
    print(f"\n{step:,} points and {step // 200:,} events: {growth / 1e3:+,.0f} kB")  # noqa: T201
    assert growth < MAX_GROWTH_BYTES
