"""No serious fault that axe finds on any page, however it looks; and the first run by the keyboard alone."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import serious_faults
from tests.browser.curves import await_points, await_state
from tests.browser.stage import end, start, until_episodes

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

RUN_TABS = (
    "curves",
    "episodes",
    "internals",
    "evaluations",
    "checkpoints",
    "settings",
    "log",
    "system",
)


@pytest.fixture(scope="module")
def run_id(installed: Any) -> str:
    """A run that has ended, with some episodes."""
    client: httpx.Client = installed.client
    run = start(client, name="looked at", tags=["a"])
    until_episodes(client, run["id"], 20)
    end(client, run["id"])
    return str(run["id"])


def test_every_page_in_every_look(page: Page, script: httpx.Client, run_id: str) -> None:
    episode = script.get(f"/api/v1/runs/{run_id}/episodes").json()["items"][0]["id"]
    addresses = [
        "/",
        "/?q=nothing-is-called-so",
        "/?group=seed",
        "/new",
        f"/new?fork={run_id}",
        *(f"/runs/{run_id}?tab={tab}" for tab in RUN_TABS),
        f"/runs/{run_id}/episodes/{episode}",
        f"/compare?runs={run_id}",
        "/compare",
        "/worlds",
        "/hosts",
        "/settings",
        "/login",
        "/nowhere",
        f"/runs/{run_id}/nothing",
    ]
    faults = {}
    for address in addresses:
        page.goto(address)
        page.get_by_role("heading", level=1).wait_for()
        expect(page.get_by_role("navigation")).to_have_count(0 if address == "/login" else 1)
        page.get_by_role("status", name="Loading").first.wait_for(state="detached")
        if found := serious_faults(page):
            faults[address] = found
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
