"""Wrong input is told at its field, and nothing is stored."""

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def _n_runs(script: httpx.Client) -> int:
    return int(script.get("/api/v1/runs", params={"archived": "all", "limit": 1}).json()["total"])


@pytest.mark.parametrize(
    ("field", "typed", "told"),
    [
        ("config.n_e", "1000000000", "Must be 1 to 512."),
        ("config.n_e", "2.5", "Give a whole number."),
        ("config.learning_rate", "fast", "Give a number."),
        ("config.gamma", "", "Give a value."),
    ],
)
def test_the_field_says_so_while_typing(
    page: Page, script: httpx.Client, field: str, typed: str, told: str
) -> None:
    before = _n_runs(script)
    page.goto("/new")
    box = page.locator(f"[name='{field}']")
    box.fill(typed)
    expect(page.locator(f"[id='setting-{field}-error']")).to_have_text(told)
    expect(box).to_have_attribute("aria-describedby", re.compile(f"setting-{re.escape(field)}-error"))
    expect(box).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Start run").click()
    expect(box).to_be_focused()
    assert page.url.endswith("/new")
    assert _n_runs(script) == before


def test_a_run_needs_a_bound(page: Page, script: httpx.Client) -> None:
    before = _n_runs(script)
    page.goto("/new")
    page.locator("[name='stop.agent_steps']").fill("")
    expect(page.get_by_role("region", name="Stopping")).to_contain_text("at least one bound")
    page.get_by_role("button", name="Start run").click()
    expect(page.locator("[name='stop.agent_steps']")).to_be_focused()
    expect(page.locator("footer")).to_contain_text("Another value is needed: Stopping.")
    assert _n_runs(script) == before


def test_what_the_service_refuses_stands_at_its_field(page: Page, script: httpx.Client) -> None:
    before = _n_runs(script)
    page.goto("/new")
    # The page lets it pass; only the service knows that pixels need another network.
    page.locator("[name='config.network']").select_option("mlp")
    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_role("region", name="Network").get_by_role("alert")).to_contain_text("pixels")
    expect(page.get_by_text("observations: use")).to_have_count(1)
    first = page.locator("[name='environment_config.picture_size']")
    expect(first).to_be_focused()
    expect(first).to_be_in_viewport()
    expect(page.locator("footer").get_by_role("alert")).to_have_text(
        "Not started. Another value is needed: Network, Pictures of."
    )
    assert _n_runs(script) == before
    page.get_by_role("button", name="Reset Network to its default").click()
    expect(page.get_by_role("region", name="Network").get_by_role("alert")).to_have_count(0)


def test_a_filter_that_cannot_be_read(page: Page) -> None:
    page.goto("/?q=score%3E%3E")
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("score")
    page.get_by_role("searchbox", name="Search runs").fill("")
    expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)
    page.goto("/?q=score%3E%3E")
    page.get_by_role("button", name="Show all runs").click()
    expect(page.get_by_role("searchbox", name="Search runs")).to_have_value("")
    expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)


def test_a_run_that_is_not_there(page: Page) -> None:
    page.goto("/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV")
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("no run")
    page.get_by_role("link", name="To the runs", exact=True).click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.goto("/nowhere")
    expect(page.get_by_text("There is no page at this address.")).to_be_visible()


@pytest.mark.long
def test_seeds_that_are_refused_promise_no_runs(page: Page) -> None:
    page.goto("/new")
    seeds = page.get_by_role("textbox", name="Number of seeds")
    seeds.fill("3")
    page.get_by_label("First seed").fill("abc")
    expect(page.get_by_role("region", name="This run")).to_contain_text("A seed is a whole number")
    expect(page.get_by_role("region", name="This run")).not_to_contain_text("NaN")
    seeds.fill("1000")
    expect(page.get_by_role("button", name="Start run", exact=True)).to_be_visible()


@pytest.mark.long
def test_a_tag_that_is_too_long_is_gone_to(page: Page, script: httpx.Client) -> None:
    before = _n_runs(script)
    page.goto("/new")
    tags = page.get_by_role("textbox", name="Tags")
    tags.fill(f"short, {'x' * 60}")
    expect(page.get_by_text("A tag has at most 50 characters; this has 60.")).to_have_count(1)
    page.evaluate("scrollTo(0, 0)")
    page.get_by_role("button", name="Start run").click()
    expect(tags).to_be_focused()
    expect(tags).to_be_in_viewport()
    expect(page.locator("footer")).to_contain_text("Another value is needed: Tags.")
    assert _n_runs(script) == before


@pytest.mark.long
def test_a_service_that_does_not_answer_starts_nothing(page: Page) -> None:
    page.goto("/new")
    page.route("**/api/v1/runs", lambda route: route.abort())
    start = page.get_by_role("button", name="Start run")
    start.click()
    expect(page.locator("footer").get_by_role("alert")).to_contain_text(
        "Not started. The service does not answer"
    )
    expect(start).to_be_focused()
