"""Invalid input is reported at its field, and nothing is stored."""

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def _n_runs(script: httpx.Client) -> int:
    return int(script.get("/api/v1/runs", params={"archived": "all", "limit": 1}).json()["total"])


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("config.n_e", "1000000000", "Must be 1 to 512."),
        pytest.param("config.n_e", "2.5", "Enter a whole number.", marks=pytest.mark.long),
        pytest.param("config.learning_rate", "fast", "Enter a number.", marks=pytest.mark.long),
        pytest.param("config.gamma", "", "Enter a value.", marks=pytest.mark.long),
    ],
)
def test_invalid_field_shows_its_error_while_typing(
    page: Page, script: httpx.Client, field: str, typed: str, message: str
) -> None:
    before = _n_runs(script)
    page.goto("/new")
    box = page.locator(f"[name='{field}']")
    box.fill(typed)
    expect(page.locator(f"[id='field-{field}-error']")).to_have_text(message)
    expect(box).to_have_attribute("aria-describedby", re.compile(f"field-{re.escape(field)}-error"))
    expect(box).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Start run").click()
    expect(box).to_be_focused()
    assert page.url.endswith("/new")
    assert _n_runs(script) == before


@pytest.mark.long
def test_run_without_a_bound_is_rejected(page: Page, script: httpx.Client) -> None:
    before = _n_runs(script)
    page.goto("/new")
    page.locator("[name='stop.agent_steps']").fill("")
    expect(page.get_by_role("region", name="Stopping")).to_contain_text("at least one stop condition")
    page.get_by_role("button", name="Start run").click()
    expect(page.locator("[name='stop.agent_steps']")).to_be_focused()
    expect(page.locator("footer")).to_contain_text("Check these fields: Stopping.")
    assert _n_runs(script) == before


def test_error_of_the_service_is_shown_at_its_field(page: Page, script: httpx.Client) -> None:
    before = _n_runs(script)
    page.goto("/new?all=true")
    # Only the service checks that the network suits pixel observations of this size.
    page.locator("[name='config.network']").select_option("mlp")
    page.locator("[name='environment_config.observation_size']").select_option("42x42")
    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_role("region", name="Network").get_by_role("alert")).to_contain_text(
        "pixel observations"
    )
    expect(page.get_by_text("pixel observations")).to_have_count(1)
    first = page.locator("[name='environment_config.observation_size']")
    expect(first).to_be_focused()
    expect(first).to_be_in_viewport()
    expect(page.locator("footer").get_by_role("alert")).to_have_text(
        "Not started. Check these fields: Network, Observation size."
    )
    assert _n_runs(script) == before
    page.get_by_role("button", name="Reset Network to the preset").click()
    expect(page.get_by_role("region", name="Network").get_by_role("alert")).to_have_count(0)


@pytest.mark.long
def test_invalid_filter_is_reported_and_can_be_cleared(page: Page) -> None:
    page.goto("/?q=score%3E%3E")
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("score")
    page.get_by_role("searchbox", name="Search runs").fill("")
    expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)
    page.goto("/?q=score%3E%3E")
    page.get_by_role("button", name="Show all runs").click()
    expect(page.get_by_role("searchbox", name="Search runs")).to_have_value("")
    expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)


def test_missing_run_and_unknown_url_show_not_found(page: Page) -> None:
    page.goto("/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV")
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("does not exist")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    page.get_by_role("link", name="Back to runs", exact=True).click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.goto("/nowhere")
    expect(page.get_by_text("There is nothing at this address. It may be mistyped")).to_be_visible()


@pytest.mark.long
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("environment=Foo", "Environment Foo does not exist."),
        pytest.param("algorithm=sarsa", "Algorithm sarsa does not exist.", marks=pytest.mark.long),
    ],
)
def test_form_of_something_unknown_shows_no_other(page: Page, query: str, message: str) -> None:
    page.goto(f"/new?{query}")
    expect(page.get_by_role("main")).to_contain_text(message)
    expect(page.get_by_role("button", name="Start run")).to_have_count(0)


@pytest.mark.long
def test_invalid_seed_count_starts_a_single_run(page: Page) -> None:
    page.goto("/new")
    seeds = page.get_by_role("textbox", name="Number of seeds")
    seeds.fill("3")
    page.get_by_label("First seed").fill("abc")
    expect(page.get_by_role("region", name="This run")).to_contain_text("Enter a whole number from 0")
    expect(page.get_by_role("region", name="This run")).not_to_contain_text("NaN")
    seeds.fill("1000")
    expect(page.get_by_role("button", name="Start run", exact=True)).to_be_visible()


@pytest.mark.long
def test_too_long_tag_is_focused_on_submit(page: Page, script: httpx.Client) -> None:
    before = _n_runs(script)
    page.goto("/new")
    tags = page.get_by_role("textbox", name="Tags")
    tags.fill(f"short, {'x' * 60}")
    expect(page.get_by_text("A tag may have at most 50 characters; one has 60.")).to_have_count(1)
    page.evaluate("scrollTo(0, 0)")
    page.get_by_role("button", name="Start run").click()
    expect(tags).to_be_focused()
    expect(tags).to_be_in_viewport()
    expect(page.locator("footer")).to_contain_text("Check these fields: Tags.")
    assert _n_runs(script) == before


@pytest.mark.long
def test_unreachable_service_is_reported_and_starts_nothing(page: Page) -> None:
    page.goto("/new")
    page.route("**/api/v1/runs", lambda route: route.abort())
    start = page.get_by_role("button", name="Start run")
    start.click()
    expect(page.locator("footer").get_by_role("alert")).to_contain_text(
        "Not started. The service cannot be reached"
    )
    expect(start).to_be_focused()
