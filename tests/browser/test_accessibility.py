"""Accessibility: axe reports no violation on any page, and the main tasks work by keyboard alone."""

import re
from itertools import cycle, islice
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import VARIANTS, axe_violations
from tests.browser.curves import await_points, await_state
from tests.browser.examples import addresses

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


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "variants_of_a_page",
    [pytest.param(1, id="one"), pytest.param(len(VARIANTS), id="all")],
)
def test_every_page_has_no_axe_violation(
    page: Page, script: httpx.Client, examples: dict[str, str], variants_of_a_page: int
) -> None:
    violations = {}
    in_turn = cycle(VARIANTS)

    def check(what: str) -> None:
        variants = tuple(islice(in_turn, variants_of_a_page))
        page.get_by_role("status", name="Loading").first.wait_for(state="detached")
        if by_variant := axe_violations(page, variants):
            violations[what] = by_variant

    for address in addresses(examples):
        page.goto(address)
        page.get_by_role("heading", level=1).wait_for()
        expect(page.get_by_role("navigation", name="Pages")).to_have_count(0 if address == "/login" else 1)
        check(address)
    for tab in RUN_TABS:
        page.get_by_role("tab", name=tab, exact=True).click()
        page.get_by_role("tabpanel", name=tab).wait_for()
        check(tab)
    assert not violations


@pytest.mark.long
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
    page: Page, script: httpx.Client, examples: dict[str, str]
) -> None:
    page.goto("/")
    page.get_by_role("link", name="checked").first.wait_for()
    first = page.locator("[role=row][data-index='0']")
    name = first.get_by_role("link").first.locator("[title]").get_attribute("title")
    assert name
    first.focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("1 run selected")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    page.get_by_role("heading", name=name, exact=True).wait_for()  # a new page takes the focus
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search runs")).to_be_focused()
    page.keyboard.type("alg")
    expect(page.get_by_role("option", name="algorithm:")).to_be_visible()
    page.goto("/")
    first.wait_for()
    for key in "xjxc":  # select, next, select, compare
        page.keyboard.press(key)
    page.wait_for_url(re.compile(r"/\?list=beside&runs=\w{26}(,|%2C)\w{26}"))


@pytest.mark.long
def test_search_keeps_the_focus_while_its_results_replace_the_rows(
    page: Page, script: httpx.Client, examples: dict[str, str]
) -> None:
    page.goto("/")
    others = page.get_by_role("link", name=re.compile("CartPole-v1"))
    others.first.wait_for()
    page.locator("[role=row][data-index='0']").focus()
    page.keyboard.press("Home")  # the cursor is there already
    page.keyboard.press("/")
    page.keyboard.type("name:checked")
    expect(others).to_have_count(0)
    expect(page.locator("[role=row][data-index='0']")).to_be_visible()
    expect(page.get_by_role("searchbox", name="Search runs")).to_be_focused()
