"""The layout of pages: nothing moves while they load and grow, and nothing is wider than the window."""

from typing import Any

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, ViewportSize

from tests.browser.curves import await_points
from tests.browser.examples import addresses
from tests.browser.stage import start, until_episodes

pytestmark = [pytest.mark.browser, pytest.mark.long]

SIZES: tuple[ViewportSize, ...] = (
    {"width": 1280, "height": 800},
    {"width": 1920, "height": 1080},
    {"width": 390, "height": 844},
)
MAX_SHIFT = 0.02
"""Of cumulative layout shift; browsers call 0.1 good."""

# Shifts within half a second of a click or a key are the reader's own.
_OBSERVE = """() => {
  window.shifts = [];
  const keep = entries => window.shifts.push(...entries.filter(({hadRecentInput}) => !hadRecentInput));
  window.observer = new PerformanceObserver(list => keep(list.getEntries()));
  window.observer.observe({type: 'layout-shift', buffered: true});
  window.takeShifts = () => { keep(window.observer.takeRecords()); return window.shifts; };
}"""
# What moved most, for the message of a failure.
_SHIFTS = """() => window.takeShifts().map(({value, sources}) => ({
  value,
  moved: sources.map(({node, previousRect, currentRect}) =>
    `${node?.className || node?.nodeName} ${previousRect.y} -> ${currentRect.y}`),
}))"""
_DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def _check(page: Page, what: str, faults: dict[str, Any]) -> None:
    page.evaluate(_DRAWN)
    shifts = page.evaluate(_SHIFTS)
    if (total := sum(shift["value"] for shift in shifts)) > MAX_SHIFT:
        faults[f"{what} shifts by {total:.3f}"] = shifts
    if (over := page.evaluate("document.documentElement.scrollWidth - innerWidth")) > 0:
        faults[f"{what} is too wide"] = over


@pytest.mark.timeout(1_800)
def test_no_page_shifts_or_overflows_while_it_loads(
    context: BrowserContext, script: httpx.Client, examples: dict[str, str]
) -> None:
    context.add_init_script(f"({_OBSERVE})()")
    page = context.new_page()
    faults: dict[str, Any] = {}
    for size in SIZES:
        page.set_viewport_size(size)
        for address in addresses(examples):
            page.goto(address)
            page.get_by_role("heading", level=1).first.wait_for()
            page.get_by_role("status", name="Loading").first.wait_for(state="detached")
            _check(page, f"{address} at {size['width']}", faults)
    assert not faults


def test_run_page_and_list_do_not_shift_while_data_stream_in(
    context: BrowserContext, script: httpx.Client
) -> None:
    context.add_init_script(f"({_OBSERVE})()")
    run = start(script, name="streams in")
    until_episodes(script, run["id"], 10)
    list_, page = context.new_page(), context.new_page()
    list_.goto("/")
    page.goto(f"/runs/{run['id']}")
    n = len(await_points(page))
    for _ in range(3):
        n = len(await_points(page, n))
    faults: dict[str, Any] = {}
    _check(page, "the run", faults)
    _check(list_, "the list", faults)
    assert not faults
