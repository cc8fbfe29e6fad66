"""The tabs of a run: config changes, episodes, evaluations and downloads of charts."""

import csv
import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from backend.db import Run
from backend.db.engine import writing
from backend.runs.runs import service as run_service
from backend.specs.states import RunState
from tests.browser.boxes import tick
from tests.browser.curves import await_points
from tests.browser.stage import end, start, until_episodes, until_state
from tests.browser.timers import stop_timers
from tests.support.rows import make_checkpoint, make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]

WORK_MS = 400_000
"""Deadline for what a process does that has to start, on a busy machine."""


@pytest.fixture
def run_id(script: httpx.Client) -> str:
    """A training run with some episodes."""
    run = start(script, name="tabbed")
    until_episodes(script, run["id"], 20)
    return str(run["id"])


def test_phase_of_a_starting_run_is_shown_next_to_its_state(
    service_page: Page, sqlite_service: RunningService
) -> None:
    run = make_run(sqlite_service.engine, RunState.STARTING)
    with writing(sqlite_service.engine) as session:
        locked = run_service.find(session, run.id, for_update=True)
        assert locked is not None
        locked.state_reason = "starting 64 of 131 processes"
    service_page.goto(f"/runs/{run.id}")
    expect(service_page.get_by_text("starting 64 of 131 processes")).to_be_visible()


SETTLING_MS = 5_000
"""For this long a page scrolls to its tab again while what is above it loads."""


@pytest.mark.parametrize("width", [1280, 390])
def test_address_with_a_tab_lands_on_that_tab(
    service_page: Page, sqlite_service: RunningService, width: int
) -> None:
    run = make_run(sqlite_service.engine, RunState.FINISHED)
    stop_timers(service_page, SETTLING_MS)
    service_page.set_viewport_size({"width": width, "height": 800})
    service_page.goto(f"/runs/{run.id}")
    tabs = service_page.get_by_role("tablist")
    expect(tabs).to_be_attached()
    if width == 1280:  # an empty curve takes little room
        tabs_at = tabs.bounding_box()
        assert tabs_at is not None
        assert tabs_at["y"] < 650
    service_page.goto(f"/runs/{run.id}?tab=log")
    expect(service_page.get_by_role("log")).to_be_in_viewport()
    service_page.wait_for_function(
        "() => document.querySelector('[role=tablist]').getBoundingClientRect().top < 60"
    )
    service_page.mouse.wheel(0, 2000)
    expect(tabs).to_be_in_viewport()


def test_log_follows_new_lines_until_it_is_scrolled_up(
    service_page: Page, sqlite_service: RunningService
) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)

    def log(*numbers: int) -> None:
        with writing(sqlite_service.engine) as session:
            for number in numbers:
                run_service.log(session, run.id, 1, "info", f"line {number} of the test")
            run_service.bump_revision(session, run.id, {"log"})
        sqlite_service.app_state.bus.publish_changes(session)

    log(*range(300))
    service_page.goto(f"/runs/{run.id}?tab=log")
    lines = service_page.get_by_role("log")
    follow = service_page.get_by_role("switch", name="Follow")
    expect(lines.get_by_text("line 299 of the test")).to_be_in_viewport()
    log(300)
    expect(lines.get_by_text("line 300 of the test")).to_be_in_viewport()
    expect(follow).to_be_checked()
    lines.press("Home")
    expect(lines.get_by_text("line 0 of the test")).to_be_in_viewport()
    expect(follow).not_to_be_checked()
    count = service_page.get_by_text(re.compile(r"^\d+ lines$"))
    before = count.inner_text()
    log(301)
    expect(count).not_to_have_text(before)
    expect(lines.get_by_text("line 0 of the test")).to_be_in_viewport()


def test_config_change_of_a_training_run_is_applied_and_listed(page: Page, run_id: str) -> None:
    page.goto(f"/runs/{run_id}?tab=config")
    page.get_by_role("button", name="Change config").click()
    dialog = page.get_by_role("dialog")
    entropy = dialog.locator("[name='config.beta']")
    expect(dialog).to_contain_text("current 0.01")
    expect(dialog).not_to_contain_text("default")
    entropy.fill("-1")
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(dialog.get_by_role("button", name="Apply")).to_be_disabled()
    entropy.fill("0.02")
    dialog.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("beta = 0.02")).to_be_visible()
    expect(page.get_by_text("applied at agent step")).to_be_visible(timeout=WORK_MS)
    tick(page.get_by_role("switch", name="Changed values only"), hidden=True)
    page.wait_for_url("**changed=true**")
    expect(page.get_by_role("row").filter(has_text="Discount")).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text="Environments")).to_be_visible()


def test_film_strip_shows_recorded_episodes_and_plays_one(
    page: Page, script: httpx.Client, run_id: str
) -> None:
    """Thumbnails of a real worker, at their training step on the axis of the chart above."""
    until_episodes(script, run_id, 1)
    page.goto(f"/runs/{run_id}")
    frame = page.get_by_role("group", name="Recorded episodes").get_by_role("button").first
    thumbnail = frame.locator("img")
    thumbnail.wait_for(timeout=WORK_MS)
    assert thumbnail.evaluate("img => [img.naturalWidth, img.naturalHeight]") == [160, 107]
    frame.click()
    page.wait_for_url("**episode=**")
    expect(frame).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("heading", name="Selected episode")).to_be_visible()
    page.keyboard.press("f")
    expect(page.get_by_role("heading", name="Episode of tabbed")).to_be_visible()


def test_episode_is_selected_for_replay_and_latest_checkpoint_evaluated(
    page: Page, script: httpx.Client, run_id: str
) -> None:
    script.post(f"/api/v1/runs/{run_id}/stop")
    until_state(script, run_id, "stopped")
    page.goto(f"/runs/{run_id}?tab=episodes")
    page.get_by_role("radiogroup", name="Order").get_by_text("Best first").click()
    page.wait_for_url("**best=true**")
    page.get_by_role("button", name="Watch the episode").first.click()
    expect(page.get_by_role("heading", name="Selected episode")).to_be_visible()
    expect(page.get_by_role("region", name="Agent")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("region", name="Agent")).to_be_focused()
    page.get_by_role("link", name="Open full replay").click()
    expect(page.get_by_role("heading", name="Episode of tabbed")).to_be_visible()
    # A step sought while the video is being rendered is the one it shows afterwards.
    position = page.get_by_role("slider", name="Position in the episode")
    position.press("End")
    page.wait_for_function(
        "() => document.querySelector('video[aria-label^=Video]')?.duration > 0", timeout=WORK_MS
    )
    last = position.get_attribute("aria-valuemax")
    expect(position).to_have_attribute("aria-valuenow", last or "")
    assert page.evaluate("document.querySelector('video[aria-label^=Video]').paused")
    page.goto(f"/runs/{run_id}?tab=evaluations")
    page.get_by_role("button", name="Evaluate a checkpoint").click()
    dialog = page.get_by_role("dialog")
    protocol = dialog.get_by_label("Protocol")
    options = ["standard resets (default)", "standard resets, greedy"]
    expect(protocol.locator("option")).to_have_text(options)
    protocol.select_option(label="standard resets, greedy")
    dialog.get_by_label("Episodes").fill("0")
    expect(dialog.get_by_role("alert")).to_contain_text("from 1 to 1,000")
    expect(dialog.get_by_role("button", name="Evaluate")).to_be_disabled()
    dialog.get_by_label("Episodes").fill("3")
    dialog.get_by_label("Seed of the starts").fill("77")
    dialog.get_by_role("button", name="Evaluate").click()
    expect(dialog).to_have_count(0)
    requested = page.get_by_role("region", name="Evaluations").get_by_role("row").filter(has_text="77")
    expect(requested).to_contain_text("standard resets, greedy")
    expect(page.get_by_role("region", name="Evaluations").get_by_text("done")).to_be_visible(timeout=WORK_MS)


def test_chart_is_exported_as_drawn(page: Page, script: httpx.Client, run_id: str) -> None:
    end(script, run_id)
    page.goto(f"/runs/{run_id}")
    points = await_points(page)
    menu = page.get_by_role("button", name="Options for tabbed learning curve")
    menu.click()
    page.get_by_role("menuitem", name="Export figure…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("img", name="Preview of Learning curve")).to_be_visible()
    for form, suffix in (("png", ".png"), ("svg", ".svg"), ("csv", ".csv")):
        dialog.get_by_label("Format").select_option(form)
        with page.expect_download() as saved:
            dialog.get_by_role("button", name="Download").click()
        assert saved.value.suggested_filename == f"tabbed learning curve{suffix}"
        content = saved.value.path().read_bytes()
        if suffix == ".png":
            assert content.startswith(b"\x89PNG")
        elif suffix == ".svg":
            assert b'aria-label="Return (true score)"' in content
        else:
            rows = list(csv.DictReader(content.decode().splitlines()))
            assert [float(row["x"]) for row in rows if row["kind"] == "line"] == points
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    menu.click()
    page.get_by_role("menuitem", name="Logarithmic scale").click()
    page.wait_for_url("**log=rollout**")
    page.wait_for_function(
        """() => document.querySelector('[role=img][aria-label^=Learning]')
          ._fullLayout.yaxis.type === 'log'"""
    )


def test_evaluation_is_disabled_until_a_checkpoint_exists(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, engine = service_page, sqlite_service.engine
    run = make_run(engine, RunState.RUNNING)
    failed = make_run(engine, RunState.FAILED)
    button = page.get_by_role("button", name="Evaluate a checkpoint")
    page.goto(f"/runs/{failed.id}?tab=evaluations")
    expect(page.get_by_text("The run ended before it saved a checkpoint")).to_be_visible()
    expect(button).to_be_disabled()
    page.goto(f"/runs/{run.id}?tab=evaluations")
    expect(page.get_by_text("No checkpoint yet")).to_be_visible()
    expect(button).to_be_disabled()
    expect(page.get_by_role("banner").get_by_role("status").last).to_contain_text("live")

    # The button is enabled as soon as a checkpoint is saved.
    make_checkpoint(engine, run)
    with writing(engine) as session:
        run_service.touch(session, session.get_one(Run, run.id))
    sqlite_service.app_state.bus.publish_changes(session)
    expect(button).to_be_enabled()
    expect(page.get_by_text("No checkpoint yet")).to_have_count(0)


def test_evaluation_dialog_offers_protocols_of_the_game_and_explains_a_missing_one(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    run = make_run(sqlite_service.engine, RunState.RUNNING, algorithm="dqn", environment="ALE/Pong-v5")
    older, newer = (make_checkpoint(sqlite_service.engine, run, steps) for steps in (100, 200))
    page.goto(f"/runs/{run.id}?tab=checkpoints")
    page.get_by_role("button", name=f"Evaluate {older.file}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Checkpoint")).to_have_value(older.id)
    expect(dialog.get_by_label("Protocol")).to_have_value("noop_starts_5min")
    expect(dialog.get_by_text("at most 18,000 frames (5 minutes)")).to_be_visible()
    missing = dialog.get_by_role("option", name="human starts (not available)")
    expect(missing).to_be_disabled()
    expect(dialog.get_by_text("Not available: human starts, because it needs a start set")).to_be_visible()
    dialog.get_by_label("Checkpoint").select_option(newer.id)
    dialog.get_by_label("Protocol").select_option("noop_starts")
    dialog.get_by_role("button", name="Evaluate").click()
    expect(dialog).to_have_count(0)
    page.goto(f"/runs/{run.id}?tab=evaluations")
    row = page.get_by_role("region", name="Evaluations").get_by_role("row").nth(1)
    expect(row).to_contain_text("no-op starts")
    expect(row).to_contain_text("200")
    expect(row).to_contain_text("queued")
