"""Memory of a page that stays open: many hours of events pass through it in a minute, and live data for as
long as `--live-minutes` says."""

import json
from time import monotonic

import pytest
from playwright.sync_api import CDPSession, Page, expect

from backend.analysis.metrics import repository as series
from backend.db import Run
from backend.db.engine import writing
from backend.runs.runs import service as run_service
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.browser.load import BATCHES_PER_S, METRICS, POINTS_PER_S, record
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.benchmark]

# With these numbers of points a curve has equally many buckets before and after.
WARM, WATCHED = 700, 4_900
"""Events of 200 points each."""
MAX_GROWTH_BYTES = 30 * WATCHED


def _held_bytes(chrome: CDPSession) -> int:
    """The heap size of the page's own objects and elements.

    Machine code that V8 compiles of a page that redraws, and what Chromium keeps of each request for its
    debugger, do not count.
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
    counted = {kinds.index(kind) for kind in ("object", "closure", "array", "native")}
    internal = {n for n, words in enumerate(heap["strings"]) if words.startswith(("blink::", "system / "))}
    return sum(s for k, n, s in zip(kind, name, size, strict=True) if k in counted and n not in internal)


def test_live_page_does_not_leak_memory(service_page: Page, sqlite_service: RunningService) -> None:
    engine, bus = sqlite_service.engine, sqlite_service.app_state.bus
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
                revision = run_service.touch(session, row)
                points = PointsEvent(
                    metric="rollout/episode_return",
                    agent_steps=steps,
                    frames=steps,
                    wall_time_s=[at / 1000 for at in steps],
                    episodes=steps,
                    value=[float(at % 500) for at in steps],
                )
                series.append(session, run.id, 1, revision, [points])
            bus.publish_changes(session)
            page.wait_for_timeout(10)

    train(WARM)
    before = _held_bytes(chrome)
    train(WATCHED)
    growth = _held_bytes(chrome) - before
    print(f"\n{step:,} points and {step // 200:,} events: {growth / 1e3:+,.0f} kB")  # noqa: T201
    assert growth < MAX_GROWTH_BYTES


BASE_POINTS = 500_000
"""Of each metric before the page is opened: so many that half an hour adds a few buckets to each chart."""
MAX_LIVE_GROWTH_BYTES = 500_000


@pytest.mark.timeout(3 * 3600)
def test_memory_is_flat_while_live_data_arrives(
    service_page: Page, sqlite_service: RunningService, pytestconfig: pytest.Config
) -> None:
    """Five metrics of a run, 50 points per second, on its page with the charts of all of them."""
    minutes = float(pytestconfig.getoption("live_minutes"))
    engine, bus = sqlite_service.engine, sqlite_service.app_state.bus
    run = make_run(engine, RunState.RUNNING, name="live")
    steps = list(range(BASE_POINTS))
    with writing(engine) as session:
        points = [
            PointsEvent(
                metric=metric, agent_steps=steps, frames=steps, wall_time_s=[at / 1000 for at in steps],
                episodes=steps, value=[float(at % 7) for at in steps],
            )
            for metric in METRICS
        ]  # fmt: skip
        series.append(session, run.id, 1, 1, points)
    page = service_page
    page.set_viewport_size({"width": 1280, "height": 1600})
    page.goto(f"/runs/{run.id}")
    expect(page.get_by_role("img", name="optim/grad_norm of live")).to_be_visible()
    chrome = page.context.new_cdp_session(page)
    held: list[int] = []
    began = monotonic()
    batch = BASE_POINTS // (POINTS_PER_S // BATCHES_PER_S // len(METRICS))
    while (passed := monotonic() - began) < 60 * minutes:
        with writing(engine) as session:
            record(session, run.id, batch)
            session.get_one(Run, run.id).score = float(batch)
        bus.publish_changes(session)
        batch += 1
        page.wait_for_timeout(1000 / BATCHES_PER_S)
        if passed > (len(held) + 1) * 6 * minutes:  # ten times in all
            held.append(_held_bytes(chrome))
    held.append(_held_bytes(chrome))
    shown = ", ".join(f"{n_bytes / 1e6:.2f}" for n_bytes in held)
    print(f"\n{minutes:g} minutes of live data, heap in MB: {shown}")  # noqa: T201
    assert max(held[len(held) // 2 :]) - held[1] < MAX_LIVE_GROWTH_BYTES
