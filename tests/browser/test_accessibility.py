"""No serious fault that axe finds on any page, in either theme; and the first run by the keyboard alone."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.curves import await_points, await_state
from tests.browser.stage import end, start, until_episodes

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RUN_AXE = """async () => {
  const found = await axe.run(document, {resultTypes: ['violations']});
  return found.violations
    .filter(({impact}) => impact === 'serious' || impact === 'critical')
    .map(({id, nodes}) => `${id}: ${nodes.map(node => node.target.join(' ')).slice(0, 5).join(' | ')}`);
}"""


@pytest.fixture(scope="module")
def run_id(installed: Any) -> str:
    """A run that has ended, with some episodes."""
    client: httpx.Client = installed.client
    run = start(client, name="looked at", tags=["a"])
    until_episodes(client, run["id"], 20)
    end(client, run["id"])
    return str(run["id"])


def test_every_page_in_either_theme(page: Page, run_id: str) -> None:
    tabs = ("curves", "episodes", "evaluations", "checkpoints", "settings", "log")
    addresses = [
        "/",
        "/?q=nothing-is-called-so",
        "/new",
        *(f"/runs/{run_id}?tab={tab}" for tab in tabs),
        f"/compare?runs={run_id}",
        "/compare",
        "/worlds",
        "/hosts",
        "/settings",
        "/login",
        "/nowhere",
    ]
    faults = {}
    for address in addresses:
        page.goto(address)
        page.get_by_role("heading", level=1).or_(page.get_by_text("no page at this address")).first.wait_for()
        page.wait_for_timeout(300)
        page.add_style_tag(content="* { transition: none !important }")  # a colour half-way is no theme's
        page.evaluate(AXE.read_text())
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
            if found := page.evaluate(RUN_AXE):
                faults[f"{address} {theme}"] = found
    assert not faults


def test_the_first_run_by_keyboard_alone(page: Page, script: httpx.Client) -> None:
    page.goto("/")
    page.get_by_role("heading", name="Runs").wait_for()

    def walk_to(role: Any, name: str) -> None:
        target = page.get_by_role(role, name=name).first
        for _ in range(150):
            page.keyboard.press("Tab")
            if target.count() and target.evaluate("element => element === document.activeElement"):
                return
        raise AssertionError(f"Tab does not lead to {role} {name}")

    walk_to("link", "New run")
    page.keyboard.press("Enter")
    walk_to("searchbox", "Search worlds")
    page.keyboard.type("cartpole")
    page.keyboard.press("Enter")
    expect(page.get_by_role("option", name="CartPole")).to_have_attribute("aria-selected", "true")
    walk_to("button", "Start run")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    await_state(page, "running")
    await_points(page)

    walk_to("button", "Stop and keep a checkpoint")
    page.keyboard.press("Enter")
    confirm = page.get_by_role("dialog").get_by_role("button", name="Stop and keep a checkpoint")
    expect(confirm).to_be_focused()
    page.keyboard.press("Enter")
    await_state(page, "stopped")


def test_the_runs_table_by_keyboard(page: Page, script: httpx.Client, run_id: str) -> None:
    page.goto("/")
    page.get_by_role("link", name="looked at").first.wait_for()
    page.locator("[role=row][data-index='0']").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("1 run selected")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    expect(page.locator("[role=row][data-index='0']")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search runs")).to_be_focused()
    page.keyboard.type("alg")
    expect(page.get_by_role("option", name="algorithm:")).to_be_visible()
