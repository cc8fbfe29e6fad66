"""Bulk actions on runs selected by keyboard and mouse, with a preview of what they do."""

import re

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from backend.db.engine import writing
from backend.runs.runs import service as run_service
from backend.specs.states import RunState
from tests.browser.boxes import tick
from tests.browser.stage import read
from tests.browser.timers import stop_timers
from tests.support.rows import make_checkpoint, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.browser

NAMES = ("waits", "trains", "stopped early", "done")
"""In the order of the list, latest first."""
TOAST_MS = 15_000
"""After this time a toast is gone, with the button to undo."""


@pytest.fixture
def ids(sqlite_service: RunningService) -> dict[str, str]:
    """One run in each of four states."""
    states = (RunState.QUEUED, RunState.RUNNING, RunState.STOPPED, RunState.FINISHED)
    runs = [
        make_run(sqlite_service.engine, state, name=name)
        for name, state in zip(reversed(NAMES), reversed(states), strict=True)
    ]
    make_checkpoint(sqlite_service.engine, runs[1])
    return {run.name: run.id for run in runs}


def _listed(page: Page) -> Locator:
    page.goto("/")
    rows = page.get_by_role("grid", name="Runs").locator("[data-index]")
    expect(rows).to_have_count(len(NAMES))
    for row, name in zip(rows.all(), NAMES, strict=True):
        expect(row).to_contain_text(name)
    return rows


def _bar(page: Page) -> Locator:
    return page.get_by_role("toolbar", name="Selected runs")


def _ask(page: Page, action: str) -> Locator:
    _bar(page).get_by_role("button", name=action).click()
    return page.get_by_role("dialog")


def _named(dialog: Locator, text: str) -> Locator:
    """The runs listed under a sentence of the dialog."""
    return dialog.get_by_role("list", name=text).get_by_role("listitem")


def _select(page: Page, *names: str) -> None:
    for name in names:
        tick(page.get_by_role("checkbox", name=f"Select {name}", exact=True))


def _expect_focus_at_the_table(page: Page) -> None:
    expect(page.locator(":focus").get_by_role("grid", name="Runs")).to_be_visible()


def _states(script: httpx.Client, ids: dict[str, str]) -> dict[str, str]:
    return {name: read(script, run_id)["state"] for name, run_id in ids.items()}


@pytest.mark.long
def test_selection_works_by_keyboard_and_mouse(service_page: Page, ids: dict[str, str]) -> None:
    page = service_page
    rows = _listed(page)
    rows.nth(1).focus()
    page.keyboard.press("Space")
    expect(_bar(page)).to_contain_text("1 run selected")
    expect(_bar(page).get_by_role("link")).to_have_count(0)
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    expect(_bar(page)).to_contain_text("3 runs selected")
    page.keyboard.press("Space")
    expect(_bar(page)).to_contain_text("2 runs selected")
    chosen = ",".join(ids[name] for name in NAMES[1:3])
    assert page.evaluate("new URLSearchParams(location.search).get('selected')") == chosen
    page.reload()
    expect(_bar(page)).to_contain_text("2 runs selected")
    _bar(page).get_by_role("button", name="Clear").click()
    expect(_bar(page)).to_have_count(0)
    _expect_focus_at_the_table(page)

    page.get_by_role("checkbox", name="Select waits").click()
    page.get_by_role("checkbox", name="Select done").click(modifiers=["Shift"])
    expect(_bar(page)).to_contain_text("4 runs selected")
    everything = page.get_by_role("checkbox", name="Select all loaded runs")
    expect(everything).to_be_checked()
    everything.click()
    expect(_bar(page)).to_have_count(0)
    tick(everything)
    page.get_by_role("checkbox", name="Select trains").click()
    expect(_bar(page)).to_contain_text("3 runs selected")
    _bar(page).get_by_role("link", name="Compare").click()
    compared = page.get_by_role("grid", name="Compared runs").get_by_role("link")
    expect(compared).to_have_count(3)
    page.go_back()
    expect(_bar(page)).to_contain_text("3 runs selected")


@pytest.mark.long
def test_bulk_action_lists_and_changes_only_runs_it_applies_to(
    service_page: Page, sqlite_service: RunningService, ids: dict[str, str]
) -> None:
    page, script = service_page, sqlite_service.client
    _listed(page)
    before = _states(script, ids)
    tick(page.get_by_role("checkbox", name="Select all loaded runs"))
    dialog = _ask(page, "Stop")
    expect(dialog).to_contain_text("Stop: 4 selected runs")
    expect(dialog).to_contain_text(
        "Stops 2 runs. Training runs save a checkpoint, queued runs leave the queue"
    )
    expect(dialog).to_contain_text("2 runs are left unchanged")
    expect(_named(dialog, "Stops")).to_have_text(["trains", "waits"])
    expect(_named(dialog, "left unchanged")).to_have_text(
        [re.compile("^done: "), re.compile("^stopped early: ")]
    )
    assert _states(script, ids) == before, "the preview changes nothing"
    expect(dialog.get_by_role("button", name="Stop 2 runs")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(_bar(page)).to_have_count(0)
    _expect_focus_at_the_table(page)
    assert _states(script, ids) == before | {"waits": "stopped", "trains": "stopping"}

    _select(page, "trains", "stopped early")
    dialog = _ask(page, "Resume")
    expect(dialog).to_contain_text("Puts 1 run back in the queue to continue from the latest checkpoint")
    expect(_named(dialog, "left unchanged")).to_have_text([re.compile("^trains: ")])
    dialog.get_by_role("button", name="Resume 1 run").click()
    expect(dialog).to_have_count(0)
    expect(_bar(page)).to_have_count(0)
    assert _states(script, ids)["stopped early"] == "queued"

    _select(page, "waits", "done")
    dialog = _ask(page, "Tag")
    expect(dialog.get_by_role("button", name="Tag 2 runs")).to_be_disabled()
    dialog.get_by_role("textbox", name="Tags").fill("kept, for later")
    dialog.get_by_role("button", name="Tag 2 runs").click()
    expect(dialog).to_have_count(0)
    for name in ("waits", "done"):
        assert read(script, ids[name])["tags"] == ["kept", "for later"]
    expect(page.get_by_role("row").filter(has_text="kept+1")).to_have_count(2)


@pytest.mark.long
def test_bulk_action_without_applicable_runs_can_only_be_closed(
    service_page: Page, ids: dict[str, str]
) -> None:
    page = service_page
    _listed(page)
    _select(page, "waits", "trains")
    dialog = _ask(page, "Resume")
    expect(_named(dialog, "Nothing to do: 2 runs are left unchanged")).to_have_text(
        [re.compile("^trains: .+only an ended run"), re.compile("^waits: ")]
    )
    close = dialog.get_by_role("button").filter(has_text="Close")
    expect(dialog.get_by_role("button", name=re.compile("Resume|Cancel"))).to_have_count(0)
    expect(close).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)


@pytest.mark.long
def test_fork_is_offered_for_a_single_trained_run_only(
    service_page: Page, sqlite_service: RunningService, ids: dict[str, str]
) -> None:
    page = service_page
    with writing(sqlite_service.engine) as session:
        run = run_service.find(session, ids["stopped early"], for_update=True)
        assert run is not None
        run.agent_steps = 1_000
    _listed(page)
    fork = _bar(page).get_by_role("link", name="Fork")
    _select(page, "stopped early")
    expect(fork).to_be_visible()
    _select(page, "waits")
    expect(fork).to_have_count(0)
    tick(page.get_by_role("checkbox", name="Select stopped early"), False)
    expect(_bar(page)).to_contain_text("1 run selected")
    expect(fork).to_have_count(0)


@pytest.mark.long
def test_archive_and_delete_require_confirmation(
    service_page: Page, sqlite_service: RunningService, ids: dict[str, str]
) -> None:
    page, script = service_page, sqlite_service.client
    stop_timers(page, TOAST_MS)
    rows = _listed(page)
    _select(page, "done", "stopped early")
    dialog = _ask(page, "Archive")
    expect(dialog).to_contain_text("Archives 2 runs: hidden from the list, nothing is deleted.")
    dialog.get_by_role("button", name="Archive 2 runs").click()
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(4)
    _select(page, "done", "stopped early")
    _ask(page, "Archive").get_by_role("button", name="Archive 2 runs").click()
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Dismiss").click()  # it covers the actions on the selected runs
    archived = page.get_by_role("switch", name="Archived")
    tick(archived, hidden=True)
    expect(rows.filter(has_text="done")).to_be_visible()
    expect(rows).to_have_count(2)
    tick(archived, False, hidden=True)
    expect(rows.filter(has_text="trains")).to_be_visible()

    tick(page.get_by_role("checkbox", name="Select all loaded runs"))
    dialog = _ask(page, "Delete")
    expect(dialog).to_contain_text("Deletes 1 run, including curves, logs, episodes, videos and checkpoints.")
    expect(dialog).to_contain_text("1 run is left unchanged")
    expect(_named(dialog, "Deletes")).to_have_text(["waits"])
    expect(_named(dialog, "left unchanged")).to_have_text([re.compile("^trains: ")])
    # A stray Enter must not delete anything.
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(_bar(page)).to_contain_text("2 runs selected")
    expect(_bar(page).get_by_role("button", name="Delete")).to_be_focused()
    assert script.get(f"/api/v1/runs/{ids['waits']}").status_code == 200

    _ask(page, "Delete").get_by_role("button", name="Delete 1 run").click()
    expect(rows).to_have_count(1)
    for name, status in (("waits", 404), ("trains", 200), ("done", 200), ("stopped early", 200)):
        assert script.get(f"/api/v1/runs/{ids[name]}").status_code == status
    page.get_by_role("button", name="Undo").last.click()
    expect(rows.filter(has_text="waits")).to_have_count(1)


@pytest.mark.long
def test_bulk_bar_counts_selected_runs_hidden_by_a_filter(
    service_page: Page, sqlite_service: RunningService, ids: dict[str, str]
) -> None:
    page = service_page
    for number in range(5):
        make_run(sqlite_service.engine, RunState.FINISHED, name=f"more {number}")
    page.goto("/")
    tick(page.get_by_role("checkbox", name="Select all loaded runs"))
    expect(_bar(page)).to_contain_text("9 runs selected")
    expect(_bar(page)).not_to_contain_text("not shown")
    page.get_by_role("radiogroup", name="Filter by state").get_by_text("Stopped").click()
    expect(_bar(page)).to_contain_text("9 runs selected, 8 not shown")
    named = _named(_ask(page, "Delete"), "Deletes 8 runs")
    expect(named).to_have_count(6)
    expect(named.last).to_have_text("and 3 more")


@pytest.mark.long
def test_phone_layout_sorts_and_selects_all(service_page: Page, ids: dict[str, str]) -> None:
    page = service_page
    page.set_viewport_size({"width": 390, "height": 844})
    rows = _listed(page)
    page.get_by_role("combobox", name="Sort by").select_option("Name")
    expect(rows.first).to_contain_text("done")
    page.get_by_role("button", name="Descending", pressed=False).click()
    expect(rows.first).to_contain_text("waits")
    page.wait_for_url("**sort=-name*")
    tick(page.get_by_role("checkbox", name="Select all loaded runs"))
    expect(_bar(page)).to_contain_text("4 runs selected")


@pytest.mark.long
def test_empty_list_offers_the_archived_runs(service_page: Page, sqlite_service: RunningService) -> None:
    run = make_run(sqlite_service.engine, RunState.FINISHED, name="archived run")
    assert sqlite_service.client.post(f"/api/v1/runs/{run.id}/archive").status_code < 300
    service_page.goto("/")
    expect(service_page.get_by_text("All runs are archived.")).to_be_visible()
    expect(service_page.get_by_role("button", name="Train on Pong")).to_have_count(0)
    service_page.get_by_role("button", name="Show 1 archived run").click()
    expect(service_page.get_by_role("link", name="archived run")).to_be_visible()
