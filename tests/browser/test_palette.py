"""The command palette, by keyboard alone."""

import pytest
from playwright.sync_api import Page, expect

from backend.specs.states import RunState
from tests.browser.axe import VARIANTS, axe_violations
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_palette_goes_to_runs_and_pages_acts_and_remembers(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    ended = make_run(sqlite_service.engine, RunState.FINISHED, name="the baseline")
    make_run(sqlite_service.engine, RunState.QUEUED, name="waits")
    page.goto("/machines")
    field = page.get_by_role("combobox", name="Go to")
    options = page.get_by_role("listbox", name="Matches").get_by_role("option")
    expect(page.get_by_role("heading", name="Machines", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.type("baseline")
    expect(page.get_by_role("group", name="Runs").get_by_role("option")).to_contain_text(["the baseline"])
    assert axe_violations(page, VARIANTS[:4]) == {}
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{ended.id}")
    # What was chosen last comes first.
    page.keyboard.press("Control+k")
    recent = page.get_by_role("group", name="Recent").get_by_role("option")
    expect(recent).to_have_count(1)
    expect(recent).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    page.keyboard.press("Control+k")
    page.keyboard.type("audit")
    expect(options.first).to_contain_text("Audit trail")
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings/audit")
    # An action is what its key does.
    page.keyboard.press("Control+k")
    page.keyboard.type("all keyboard")
    expect(options.first).to_contain_text("Show all keyboard shortcuts")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
