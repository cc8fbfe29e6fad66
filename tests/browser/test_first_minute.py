"""The first minute of a new installation: a finished replay, an agent after one click, next steps."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.axe import serious_violations
from tests.browser.conftest import opened
from tests.support.databases import short_folder
from tests.support.installation import Installation, installation

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def new_installation() -> Iterator[Installation]:
    with short_folder() as folder, installation(folder / "home", demo="true") as running:
        running.log_in()
        yield running


@pytest.fixture
def context(
    browser: Browser, new_installation: Installation, request: pytest.FixtureRequest
) -> Iterator[BrowserContext]:
    with opened(browser, new_installation.client, request) as context:
        yield context


def test_newcomer_opens_a_replay_trains_an_agent_and_gets_next_steps(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Watch agents learn")
    assert not serious_violations(page)

    moments = page.get_by_role("link", name=re.compile("^after .* agent steps"))
    expect(moments).to_have_count(4)
    page.set_viewport_size({"width": 390, "height": 844})
    widths = [box["width"] for moment in moments.all() if (box := moment.bounding_box())]
    assert min(widths) > 120, "two beside each other on a phone"
    page.set_viewport_size({"width": 1280, "height": 800})
    moments.last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Demo: PAAC learns CartPole")
    page.wait_for_function("() => document.querySelector('video')?.duration > 5")

    page.goto("/")
    page.get_by_role("button", name="Train on CartPole").click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    page.get_by_role("img", name="Live view of the agent in training").wait_for()
    page.get_by_role("button", name="Best return").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Best return")).to_contain_text("a single training episode")
    expect(page.get_by_role("link", name="More in the documentation")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Best return")).to_be_focused()

    page.goto("/")
    steps = page.get_by_role("region", name="First steps")
    expect(steps.get_by_role("listitem")).to_have_count(4)
    # The demo run's replay was one.
    expect(steps).to_contain_text("1 of 4")
    expect(page.get_by_role("grid")).not_to_contain_text("Demo")
    assert not serious_violations(page)
    steps.get_by_role("button", name="Hide the first steps").click()
    expect(steps).to_have_count(0)
