"""What one does in the tabs of a run: watch, evaluate, change settings as it trains, save charts."""

import csv

import httpx
import pytest
from playwright.sync_api import Page, expect

from backend.db import Run
from backend.db.engine import writing
from backend.runs import repository
from backend.specs.states import RunState
from tests.browser.curves import await_points
from tests.browser.stage import end, start, until_episodes, until_state
from tests.support.artifacts import make_checkpoint
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(240)]


@pytest.fixture
def run_id(script: httpx.Client) -> str:
    """A run with some episodes that still trains."""
    run = start(script, name="tabbed")
    until_episodes(script, run["id"], 20)
    return str(run["id"])


def test_settings_change_as_it_trains(page: Page, run_id: str) -> None:
    page.goto(f"/runs/{run_id}?tab=settings")
    page.get_by_role("button", name="Change settings").click()
    dialog = page.get_by_role("dialog")
    entropy = dialog.locator("[name='config.beta']")
    expect(dialog).to_contain_text("now 0.01")
    expect(dialog).not_to_contain_text("default")
    entropy.fill("-1")
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(dialog.get_by_role("button", name="Apply")).to_be_disabled()
    entropy.fill("0.02")
    dialog.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("beta = 0.02")).to_be_visible()
    expect(page.get_by_text("in force")).to_be_visible()
    page.get_by_role("switch", name="Only what differs").check(force=True)
    page.wait_for_url("**changed=true**")
    expect(page.get_by_role("row").filter(has_text="Discount")).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text="Environments")).to_be_visible()


def test_an_episode_is_picked_and_a_checkpoint_scored(page: Page, script: httpx.Client, run_id: str) -> None:
    script.post(f"/api/v1/runs/{run_id}/stop")
    until_state(script, run_id, "stopped")
    page.goto(f"/runs/{run_id}?tab=episodes")
    page.get_by_role("radiogroup", name="Order").get_by_text("Best first").click()
    page.wait_for_url("**best=true**")
    page.get_by_role("button", name="Watch the episode").first.click()
    expect(page.get_by_role("heading", name="Picked episode")).to_be_visible()
    page.get_by_role("link", name="Open large").click()
    expect(page.get_by_role("heading", name="Episode of tabbed")).to_be_visible()
    # A moment that is looked for while the video is still drawn is the one it shows then.
    position = page.get_by_role("slider", name="Position in the episode")
    position.press("End")
    page.wait_for_function("() => document.querySelector('video[aria-label^=Video]')?.duration > 0")
    last = position.get_attribute("aria-valuemax")
    expect(position).to_have_attribute("aria-valuenow", last or "")
    assert page.evaluate("document.querySelector('video[aria-label^=Video]').paused")
    page.goto(f"/runs/{run_id}?tab=evaluations")
    page.get_by_role("button", name="Evaluate the newest checkpoint now").click()
    expect(page.get_by_role("region", name="Evaluations").get_by_text("done")).to_be_visible(timeout=120_000)


def test_a_chart_is_saved_as_it_is(page: Page, script: httpx.Client, run_id: str) -> None:
    end(script, run_id)
    page.goto(f"/runs/{run_id}")
    points = await_points(page)
    menu = page.get_by_role("button", name="View and save tabbed learning curve")
    for item, suffix in (
        ("Picture (PNG)", ".png"),
        ("Drawing (SVG)", ".svg"),
        ("Points as drawn (CSV)", ".csv"),
    ):
        menu.click()
        with page.expect_download() as saved:
            page.get_by_role("menuitem", name=item).click()
        assert saved.value.suggested_filename == f"tabbed learning curve{suffix}"
        content = saved.value.path().read_bytes()
        if suffix == ".png":
            assert content.startswith(b"\x89PNG")
        elif suffix == ".svg":
            assert b"Return (true score)" in content
        else:
            rows = list(csv.DictReader(content.decode().splitlines()))
            assert [float(row["agent_steps"]) for row in rows] == points
    menu.click()
    page.get_by_role("menuitemcheckbox", name="Logarithmic scale").click()
    page.wait_for_url("**log=true**")
    page.wait_for_function(
        """() => document.querySelector('[role=img][aria-label^=Learning]')
          ._fullLayout.yaxis.type === 'log'"""
    )


def test_what_has_no_checkpoint_is_not_evaluated(service_page: Page, sqlite_service: RunningService) -> None:
    page, engine = service_page, sqlite_service.engine
    run = make_run(engine, RunState.RUNNING)
    failed = make_run(engine, RunState.FAILED)
    button = page.get_by_role("button", name="Evaluate the newest checkpoint now")
    page.goto(f"/runs/{failed.id}?tab=evaluations")
    expect(page.get_by_text("The run ended before it saved a checkpoint")).to_be_visible()
    expect(button).to_be_disabled()
    page.goto(f"/runs/{run.id}?tab=evaluations")
    expect(page.get_by_text("No checkpoint yet")).to_be_visible()
    expect(button).to_be_disabled()

    # It is there as soon as there is one.
    make_checkpoint(engine, run)
    with writing(engine) as session:
        repository.touch(session, session.get_one(Run, run.id))
    sqlite_service.parts.bus.announce(session)
    expect(button).to_be_enabled()
    expect(page.get_by_text("No checkpoint yet")).to_have_count(0)
