"""Accessibility: axe reports no serious violation on any page, and the main tasks work by keyboard alone."""

import re
from itertools import cycle, islice
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import VARIANTS, serious_violations
from tests.browser.curves import await_points, await_state
from tests.browser.pages import page_addresses
from tests.browser.stage import end, start, until_episodes
from tests.support.playing import open_session, playing
from tests.support.rows import CARTPOLE

pytestmark = pytest.mark.browser

RUN_TABS = (
    "Episodes",
    "Diagnostics",
    "Evaluations",
    "Checkpoints",
    "Config",
    "Log",
    "System",
)
"""All but the first, which is open at once."""


@pytest.fixture(scope="module")
def run_id(installed: Any) -> str:
    """An ended run with some episodes."""
    client: httpx.Client = installed.client
    run = start(client, name="checked", tags=["a"])
    until_episodes(client, run["id"], 20)
    end(client, run["id"])
    return str(run["id"])


@pytest.fixture(scope="module")
def sweep_id(installed: Any) -> str:
    """A stopped sweep."""
    client: httpx.Client = installed.client
    body = {
        "name": "checked rates",
        "run": CARTPOLE,
        "space": {"config.learning_rate": {"values": [0.001, 0.01]}},
        "concurrency": 1,
    }
    answer = client.post("/api/v1/sweeps", json=body)
    assert answer.status_code == 201, answer.text
    sweep = answer.json()["id"]
    assert client.post(f"/api/v1/sweeps/{sweep}/stop").is_success
    return str(sweep)


@pytest.fixture(scope="module")
def study_id(installed: Any) -> str:
    """A stopped study."""
    client: httpx.Client = installed.client
    study = {
        "name": "checked study",
        "arms": [{"label": "PAAC", "algorithm": "paac"}],
        "environments": ["CartPole-v1"],
        "draws": {"n": 2},
        "run": {"stop": {"agent_steps": 1_000}},
        "figures": [{"id": "scores", "title": "Scores", "kind": "table"}],
        "concurrency": 1,
    }
    answer = client.post("/api/v1/studies", json={"study": study})
    assert answer.status_code == 201, answer.text
    study_id = answer.json()["id"]
    assert client.post(f"/api/v1/studies/{study_id}/stop").is_success
    return str(study_id)


@pytest.fixture(scope="module")
def recording(installed: Any) -> dict[str, Any]:
    """The recording of an ended play session."""
    client: httpx.Client = installed.client
    session = open_session(client, "Catch-v0", scripted=True)
    with playing(client, session["id"]) as player:
        player.until(paused=True)
        player.hold(0)
        player.until(over=True)
    assert client.delete(f"/api/v1/play/{session['id']}").is_success
    items = client.get("/api/v1/recordings", params={"environment": "Catch-v0"}).json()["items"]
    return next(item for item in items if item["session_id"] == session["id"])


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "variants_of_a_page", [pytest.param(1, id="one"), pytest.param(4, id="all", marks=pytest.mark.long)]
)
def test_every_page_has_no_serious_axe_violation(
    page: Page,
    script: httpx.Client,
    run_id: str,
    sweep_id: str,
    study_id: str,
    recording: dict[str, Any],
    variants_of_a_page: int,
) -> None:
    episode = script.get(f"/api/v1/runs/{run_id}/episodes").json()["items"][0]["id"]
    run = f"/runs/{run_id}"
    addresses = [
        *page_addresses(
            {
                "runId": run_id,
                "episodeId": episode,
                "sweepId": sweep_id,
                "studyId": study_id,
                "sessionId": recording["session_id"],
                "recordingId": recording["id"],
            }
        ),
        "/?q=nothing-is-called-so",
        "/?group=seed",
        f"/new?fork={run_id}",
        f"/compare?runs={run_id}",
        "/nowhere",
        f"{run}/nothing",
        run,
    ]
    violations = {}
    in_turn = cycle(VARIANTS)

    def check(what: str) -> None:
        variants = tuple(islice(in_turn, variants_of_a_page))
        page.get_by_role("status", name="Loading").first.wait_for(state="detached")
        if by_variant := serious_violations(page, variants):
            violations[what] = by_variant

    for address in addresses:
        page.goto(address)
        page.get_by_role("heading", level=1).wait_for()
        expect(page.get_by_role("navigation")).to_have_count(0 if address == "/login" else 1)
        check(address)
    for tab in RUN_TABS:
        page.get_by_role("tab", name=tab, exact=True).click()
        page.get_by_role("tabpanel", name=tab).wait_for()
        check(tab)
    assert not violations


def test_first_run_starts_and_stops_by_keyboard_alone(page: Page, script: httpx.Client) -> None:
    page.goto("/")
    page.get_by_role("heading", level=1).wait_for()

    def walk_to(role: Any, name: str) -> None:
        target = page.get_by_role(role, name=name).first
        target.wait_for()  # the page may still be loading
        for _ in range(150):
            if target.count() and target.evaluate("element => element === document.activeElement"):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {role} {name}")

    walk_to("link", "New run")
    page.keyboard.press("Enter")
    walk_to("combobox", "Search environments")
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
    # The button that opened the dialog is gone.
    page.wait_for_function("document.activeElement !== document.body")


def test_runs_table_selects_and_opens_a_run_by_keyboard(
    page: Page, script: httpx.Client, run_id: str
) -> None:
    page.goto("/")
    page.get_by_role("link", name="checked").first.wait_for()
    page.locator("[role=row][data-index='0']").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("1 run selected")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    expect(page.locator("[role=row][data-index='0']")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    page.get_by_role("heading", name="checked").wait_for()  # a new page takes the focus
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search runs")).to_be_focused()
    page.keyboard.type("alg")
    expect(page.get_by_role("option", name="algorithm:")).to_be_visible()
