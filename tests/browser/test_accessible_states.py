"""No serious fault that axe finds while a page loads, fails, waits, is refused or asks."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from backend.specs.states import RunState
from tests.browser.axe import serious_faults
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(600)]

API = "**/api/v1/**"
PAGES = (
    "/",
    "/new",
    "/worlds",
    "/hosts",
    "/settings",
    "/runs/{run}",
    "/runs/{run}?tab=log",
    "/compare?runs={run}",
)


def _faults(page: Page, what: str, shows: Locator) -> dict[str, Any]:
    shows.first.wait_for()
    found = serious_faults(page)
    return {what: found} if found else {}


def test_while_nothing_has_come_yet(service_page: Page, sqlite_service: RunningService) -> None:
    page, run = service_page, make_run(sqlite_service.engine)
    held: list[Route] = []
    page.route(API, lambda route: held.append(route))  # playwright marks its handlers; a method cannot be
    faults: dict[str, Any] = {}
    for address in PAGES:
        page.goto(address.format(run=run.id))
        faults |= _faults(page, address, page.get_by_role("main"))
    for route in held:
        route.abort()
    assert held
    assert not faults


def test_where_the_service_fails(service_page: Page, sqlite_service: RunningService) -> None:
    page, run = service_page, make_run(sqlite_service.engine)
    page.route(API, lambda route: route.fulfill(status=500, json={"title": "Internal Server Error"}))
    faults: dict[str, Any] = {}
    for address in PAGES:
        page.goto(address.format(run=run.id))
        faults |= _faults(page, address, page.get_by_role("alert"))
    assert not faults


def test_runs_in_every_state(service_page: Page, sqlite_service: RunningService) -> None:
    page, faults = service_page, {}
    for state in RunState:
        run = make_run(sqlite_service.engine, state, name=f"it is {state}", tags=["a tag"])
        page.goto(f"/runs/{run.id}")
        faults |= _faults(page, state, page.get_by_role("heading", name=f"it is {state}"))
    page.goto("/")
    faults |= _faults(page, "all", page.get_by_role("row").filter(has_text="failed"))
    page.get_by_role("checkbox", name="Select it is failed").check()
    faults |= _faults(page, "selected", page.get_by_role("toolbar", name="Selected runs"))
    page.route("**/api/v1/events", lambda route: route.abort())
    page.reload()
    faults |= _faults(page, "cut off", page.get_by_role("banner").get_by_text("reconnecting"))
    assert not faults


def test_what_asks_and_what_is_refused(service_page: Page, sqlite_service: RunningService) -> None:
    page, run = service_page, make_run(sqlite_service.engine, RunState.RUNNING, name="asked about")
    faults: dict[str, Any] = {}
    page.goto(f"/runs/{run.id}?tab=settings")
    for button in ("Stop and keep a checkpoint", re.compile("^Kill now"), "Change settings…"):
        page.get_by_role("button", name=button).click()
        faults |= _faults(page, str(button), page.get_by_role("dialog"))
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")

    page.goto("/")
    page.get_by_role("button", name="Columns").click()
    faults |= _faults(page, "columns", page.get_by_role("menu"))

    page.reload()
    page.get_by_role("button", name="Actions for asked about").click()
    faults |= _faults(page, "actions", page.get_by_role("menu"))

    page.goto("/new?environment=CartPole-v1")
    page.locator("[name='config.n_e']").fill("-3")
    faults |= _faults(page, "a wrong setting", page.get_by_role("alert"))

    page.goto("/settings")
    page.get_by_label("New password").fill("short")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_label("New password")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("New password")).to_have_accessible_description(re.compile("at least", re.I))
    tokens = page.get_by_role("region", name="Tokens")
    tokens.get_by_label("What it is for").fill("nightly")
    tokens.get_by_role("button", name="Make a token").click()
    faults |= _faults(page, "a token", tokens.get_by_role("button", name="Revoke nightly"))

    page.goto("/login?expired=true")
    page.get_by_label("Name").fill("owner")
    password = page.get_by_role("textbox", name="Password")
    password.fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(password).to_have_attribute("aria-invalid", "true")
    faults |= _faults(page, "a wrong password", page.get_by_role("alert"))
    assert not faults
