"""The layout of pages: nothing moves while they load and grow, and nothing is wider than the window."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, ViewportSize

from backend.db.base import new_id
from tests.browser.curves import await_points
from tests.browser.examples import addresses
from tests.browser.pages import ROUTES
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


_CUT_OFF = """() => [...document.querySelectorAll('.page *')].filter(element => {
  const isOutside = box => box.getBoundingClientRect().right > innerWidth + 1;
  if (!isOutside(element)) return false;
  for (let box = element.parentElement; box.closest('.page *'); box = box.parentElement) {
    const {overflowX, textOverflow} = getComputedStyle(box);
    if (['auto', 'scroll'].includes(overflowX)) return false;
    if (textOverflow === 'ellipsis' && !isOutside(box)) return false;
  }
  return true;
}).map(element => `${element.tagName} ${element.className}: ${element.textContent.slice(0, 20)}`)"""
"""What is outside of the window, neither in a box that scrolls nor shortened in one of its own."""


def _tabs(run: str) -> list[str]:
    """Each tab of a run by its address, which shows the tab."""
    page = (ROUTES / "_shell" / "runs" / "$runId" / "index.tsx").read_text("utf-8")
    tabs = re.findall(r"^  \{ id: '(\w+)', label: ", page, re.M)
    assert len(tabs) > 5
    return [f"/runs/{run}?tab={tab}" for tab in tabs]


def _external(script: httpx.Client, rate: float, seed: int) -> str:
    """A run of another program, with a score that its learning rate decides."""
    wanted = {
        "origin": "external", "algorithm": "my_ppo", "environment": "CartPole-v1", "seed": seed,
        "config": {"learning_rate": rate},
    }  # fmt: skip
    [run] = script.post("/api/v1/runs", json=wanted).raise_for_status().json()["items"]
    at = f"/api/v1/runs/{run['id']}"
    episodes = [
        {"agent_steps": 1_000 * n, "wall_time_s": n, "return": 1e4 * rate + seed + n / 10, "length": 10}
        for n in range(40)
    ]
    batch = {"source": new_id(), "sequence": 1, "episodes": episodes}
    script.post(f"{at}/episodes", json=batch).raise_for_status()
    script.post(f"{at}/heartbeat", json={"state": "finished"}).raise_for_status()
    return str(run["id"])


def _load(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("heading", level=1).first.wait_for()
    page.get_by_role("status", name="Loading").first.wait_for(state="detached")


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
        for address in (*addresses(examples), *_tabs(examples["runId"])):
            _load(page, address)
            _check(page, f"{address} at {size['width']}", faults)
    assert not faults


def test_comparison_with_statistics_does_not_shift_while_it_loads(
    context: BrowserContext, script: httpx.Client
) -> None:
    context.add_init_script(f"({_OBSERVE})()")
    runs = [_external(script, rate, seed) for rate in (0.01, 0.001) for seed in range(4)]
    page = context.new_page()
    faults: dict[str, Any] = {}
    for size in SIZES:
        page.set_viewport_size(size)
        for grouped in ("", "&group=seed"):
            _load(page, f"/compare?runs={','.join(runs)}{grouped}")
            page.get_by_role("region", name="Pairwise comparison").wait_for()
            page.get_by_role("heading", name="Side-by-side replay").wait_for()
            _check(page, f"Compare{grouped} at {size['width']}", faults)
    assert not faults


def test_no_page_is_wider_than_a_phone_with_long_names(context: BrowserContext, script: httpx.Client) -> None:
    context.add_init_script(f"({_OBSERVE})()")
    name, metric = "x" * 100, "y" * 90
    wanted = {
        "origin": "external", "algorithm": "my_ppo", "environment": "CartPole-v1", "seed": 1, "group": name,
        "name": name, "tags": [name[:50]], "config": {name: 1},
    }  # fmt: skip
    [run] = script.post("/api/v1/runs", json=wanted).raise_for_status().json()["items"]
    script.patch(f"/api/v1/runs/{run['id']}", json={"notes": 5 * name}).raise_for_status()
    steps = {"agent_steps": [1, 2], "wall_time_s": [1.0, 2.0], "value": [1.0, 2.0]}
    batch = {"source": new_id(), "sequence": 1, "series": [steps | {"metric": f"loss/{metric}"}]}
    script.post(f"/api/v1/runs/{run['id']}/points", json=batch).raise_for_status()
    page = context.new_page()
    page.set_viewport_size(SIZES[-1])
    faults: dict[str, Any] = {}
    for address in ("/", f"/compare?runs={run['id']}", *_tabs(run["id"])):
        _load(page, address)
        if address.endswith("=curves"):
            page.get_by_text(metric).first.wait_for()
        _check(page, address, faults)
        if cut := page.evaluate(_CUT_OFF):
            faults[f"{address} is too wide"] = cut
    assert not {what for what in faults if what.endswith("is too wide")}, faults


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
