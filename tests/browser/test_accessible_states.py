"""Accessibility of pages that load, fail, wait, reject input or ask for confirmation."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from backend.db.base import new_id
from backend.specs.states import RunState
from tests.browser.axe import axe_violations, serious_violations
from tests.browser.boxes import tick
from tests.browser.pages import page_addresses
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]

API = "**/api/v1/**"


def addresses(run: str) -> list[str]:
    """Every page that loads something, a tab that does, and Compare with a run; any id serves."""
    parameters = ("runId", "episodeId", "sweepId", "studyId", "sessionId", "recordingId", "view")
    pages = page_addresses(dict.fromkeys(parameters, run))
    loading = [page for page in pages if page not in ("/login", "/compare", "/diff", "/settings/shortcuts")]
    return [*loading, f"/runs/{run}?tab=log", f"/compare?runs={run}", f"/diff?runs={run},{run[:-1]}0"]


def _violations(page: Page, what: str, shows: Locator) -> dict[str, Any]:
    shows.first.wait_for()
    by_variant = serious_violations(page)
    return {what: by_variant} if by_variant else {}


def test_loading_pages_have_no_serious_axe_violation(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, run = service_page, make_run(sqlite_service.engine)
    held: list[Route] = []
    page.route(API, lambda route: held.append(route))  # playwright marks its handlers; a method cannot be
    violations: dict[str, Any] = {}
    for address in addresses(run.id):
        page.goto(address)
        violations |= _violations(page, address, page.get_by_role("main"))
    for route in held:
        route.abort()
    assert held
    assert not violations


def test_failed_pages_have_no_serious_axe_violation(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, run = service_page, make_run(sqlite_service.engine)
    page.route(API, lambda route: route.fulfill(status=500, json={"title": "Internal Server Error"}))
    violations: dict[str, Any] = {}
    for address in addresses(run.id):
        page.goto(address)
        violations |= _violations(page, address, page.get_by_role("alert"))
    assert not violations


def test_runs_in_every_state_have_no_serious_axe_violation(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    violations: dict[str, Any] = {}
    for state in RunState:
        run = make_run(sqlite_service.engine, state, name=f"it is {state}", tags=["a tag"])
        page.goto(f"/runs/{run.id}")
        violations |= _violations(page, state, page.get_by_role("heading", name=f"it is {state}"))
    page.goto("/")
    violations |= _violations(page, "all", page.get_by_role("row").filter(has_text="failed"))
    tick(page.get_by_role("checkbox", name="Select it is failed"))
    violations |= _violations(page, "selected", page.get_by_role("toolbar", name="Selected runs"))
    page.route("**/api/v1/events*", lambda route: route.abort())
    page.reload()
    violations |= _violations(page, "cut off", page.get_by_role("banner").get_by_text("reconnecting"))
    assert not violations


def test_dialogs_and_rejected_input_have_no_serious_axe_violation(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, run = service_page, make_run(sqlite_service.engine, RunState.RUNNING, name="questioned")
    violations: dict[str, Any] = {}
    page.goto(f"/runs/{run.id}?tab=config")
    for button in ("Stop and keep a checkpoint", "More actions", "Change config…"):
        page.get_by_role("button", name=button).click()
        if button == "More actions":
            violations |= _violations(page, button, page.get_by_role("menu"))
            page.get_by_role("menuitem", name=re.compile("^Kill now")).click()
        violations |= _violations(page, f"dialog of {button}", page.get_by_role("dialog"))
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")

    page.goto("/")
    page.get_by_role("button", name="Columns").click()
    violations |= _violations(page, "columns", page.get_by_role("dialog", name="Columns"))

    page.reload()
    page.get_by_role("button", name="Actions for questioned").click()
    violations |= _violations(page, "actions", page.get_by_role("menu"))

    page.goto("/new?environment=CartPole-v1")
    page.locator("[name='config.n_e']").fill("-3")
    violations |= _violations(page, "an invalid value", page.get_by_role("alert"))

    page.goto("/settings")
    page.get_by_label("New password").fill("short")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_label("New password")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("New password")).to_have_accessible_description(re.compile("at least", re.I))
    page.goto("/settings/tokens")
    tokens = page.get_by_role("region", name="Tokens")
    tokens.get_by_label("Name").fill("nightly")
    tokens.get_by_role("button", name="Create token").click()
    violations |= _violations(page, "a token", tokens.get_by_role("button", name="Revoke nightly"))

    page.goto("/login?expired=true")
    page.get_by_label("Name").fill("owner")
    password = page.get_by_role("textbox", name="Password")
    password.fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(password).to_have_attribute("aria-invalid", "true")
    violations |= _violations(page, "an invalid password", page.get_by_role("alert"))
    assert not violations


def test_notes_at_steps_have_no_axe_violation(service_page: Page, sqlite_service: RunningService) -> None:
    page, client = service_page, sqlite_service.client
    wanted = {"origin": "external", "algorithm": "a", "environment": "e", "name": "noted"}
    [run] = client.post("/api/v1/runs", json=wanted).raise_for_status().json()["items"]
    at = f"/api/v1/runs/{run['id']}"
    episodes = [
        {"agent_steps": step, "wall_time_s": step, "return": 1.0, "length": 10} for step in (100, 2_000)
    ]
    batch = {"source": new_id(), "sequence": 1, "episodes": episodes}
    client.post(f"{at}/episodes", json=batch).raise_for_status()
    violations: dict[str, Any] = {}

    def check(what: str, shows: Locator) -> None:
        shows.first.wait_for()
        if by_variant := axe_violations(page):
            violations[what] = by_variant

    page.goto(f"/runs/{run['id']}")
    page.get_by_role("button", name="Options for noted learning curve").click()
    page.get_by_role("menuitem", name="Notes at steps…").click()
    notes = page.get_by_role("dialog", name="Notes at steps")
    check("no note", notes.get_by_text("There is none."))
    notes.get_by_label("Note", exact=True).fill("collapse")
    notes.get_by_role("button", name="Add note").click()
    edit = notes.get_by_role("button", name="Edit the note at 2,000")
    check("a note", edit)
    edit.click()
    notes.get_by_label("Agent step").fill("3000")
    check("a step that the run has not reached", notes.get_by_role("alert"))
    assert not violations
