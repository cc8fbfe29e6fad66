"""Printed pages: everything that is loaded, not one screen of it, and no controls."""

from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from backend.specs.states import RunState
from tests.browser.load import fill
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]

N_RUNS = 1000


def test_list_prints_every_loaded_run(service_page: Page, sqlite_service: RunningService) -> None:
    fill(sqlite_service.engine, N_RUNS)
    page = service_page
    page.goto("/?sort=-name")
    rows = page.locator("[role=row][data-index]")
    expect(rows.first).to_contain_text("run 00999")
    last = page.get_by_role("link", name="run 00900", exact=True)
    expect(last).to_have_count(0)
    page.emulate_media(media="print")
    expect(last).to_be_visible()
    expect(rows).to_have_count(100)
    expect(page.get_by_text("The first 100 of 1,000 runs.")).to_be_visible()
    expect(page.get_by_role("navigation").first).to_be_hidden()
    expect(page.get_by_role("searchbox", name="Search runs")).to_be_hidden()
    # Nothing is cut: the page is as long as its rows, none of which covers another.
    tops = rows.evaluate_all("rows => rows.map(row => row.getBoundingClientRect().top)")
    assert all(below - above >= 20 for above, below in pairwise(tops))
    assert page.evaluate("document.documentElement.scrollHeight") >= tops[-1]
    page.emulate_media(media="screen")
    expect(last).to_have_count(0)


def test_long_list_is_printed_on_several_pages(service_page: Page, sqlite_service: RunningService) -> None:
    page = service_page
    make_run(sqlite_service.engine, RunState.FINISHED, name="alone")
    page.goto("/")
    expect(page.get_by_role("link", name="alone", exact=True)).to_be_visible()
    assert _n_pages(page) == 1
    for at in range(60):
        make_run(sqlite_service.engine, RunState.FINISHED, name=f"run {at}")
    page.reload()
    expect(page.get_by_text("61 runs")).to_be_visible()
    # A page of A4 in landscape has room for at most 22 rows of 36 px.
    assert _n_pages(page) >= 3


def test_wide_tables_wrap_on_paper(service_page: Page, sqlite_service: RunningService) -> None:
    page, width = service_page, 718  # A4 between margins of 1 cm
    runs = [
        make_run(sqlite_service.engine, RunState.FINISHED, config={"learning_rate": 0.001 * (1 + at)})
        for at in range(8)
    ]
    page.set_viewport_size({"width": width, "height": 1040})
    page.goto(f"/compare?runs={','.join(run.id for run in runs)}")
    expect(page.get_by_role("cell", name="Learning rate")).to_be_visible()
    page.emulate_media(media="print")
    edges = page.locator("table").evaluate_all(
        "tables => tables.map(table => table.getBoundingClientRect().right)"
    )
    assert edges
    assert max(edges) <= width


def _n_pages(page: Page) -> int:
    """The number of pages of paper, which the PDF names in its page tree."""
    return page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n")
