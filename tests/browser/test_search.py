"""The search box, which filters the list of runs while typing."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from backend.specs.states import RunState
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def box(service_page: Page, sqlite_service: RunningService) -> Locator:
    """The search box above a list of two runs."""
    make_run(sqlite_service.engine, RunState.QUEUED, name="waits", tags=["review"])
    make_run(sqlite_service.engine, RunState.FINISHED, name="done", tags=["review"])
    service_page.goto("/")
    expect(_rows(service_page)).to_have_count(2)
    return service_page.get_by_role("searchbox", name="Search runs")


def _rows(page: Page) -> Locator:
    return page.get_by_role("grid", name="Runs").locator("[data-index]")


def _offered(page: Page) -> Locator:
    """The completions offered."""
    return page.get_by_role("listbox").get_by_role("option")


def test_list_is_not_filtered_by_an_unfinished_word(service_page: Page, box: Locator) -> None:
    page = service_page
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.clock.install()
    box.press_sequentially("tag:review state:qu")
    expect(_offered(page)).to_have_text(["tag:review state:queued"])
    page.clock.run_for(1000)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.clock.run_for(1000)
    page.clock.resume()
    expect(_rows(page)).to_have_count(1)
    expect(box).to_have_value("tag:review state:queued")
    assert not any(url.endswith("state%3Aqu") for url in requested)


def test_invalid_query_is_reported_on_blur(service_page: Page, box: Locator) -> None:
    page = service_page
    alert = page.get_by_role("main").get_by_role("alert")
    box.press_sequentially("state:qu")
    expect(_offered(page)).to_have_count(1)
    box.blur()
    expect(alert).to_contain_text('unknown state "qu"')


def test_escape_closes_the_completions_then_clears_the_box(service_page: Page, box: Locator) -> None:
    page = service_page
    box.press_sequentially("tag:review sta")
    expect(_offered(page).first).to_be_visible()
    page.keyboard.press("Escape")
    expect(_offered(page)).to_have_count(0)
    expect(box).to_have_value("tag:review sta")
    page.wait_for_url(re.compile("review.+sta$"))
    page.keyboard.press("Escape")
    expect(box).to_have_value("")


def test_caret_stays_after_a_word_completed_in_the_middle(service_page: Page, box: Locator) -> None:
    page = service_page
    box.fill(" tag:review")
    page.keyboard.press("Home")
    page.keyboard.type("stat")
    _offered(page).filter(has_text="state: tag:review").click()
    expect(box).to_be_focused()
    _offered(page).filter(has_text="state:finished").click()
    page.keyboard.type(" score>1")
    expect(box).to_have_value("state:finished score>1 tag:review")
