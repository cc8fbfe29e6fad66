"""URLs: a copied URL shows the same view, back and forward restore it, and old URLs redirect."""

import re

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.boxes import tick
from tests.browser.stage import end, start

pytestmark = pytest.mark.browser


@pytest.fixture
def ended(script: httpx.Client) -> str:
    """The id of an ended run."""
    run = start(script, name="an old run", tags=["old"])
    end(script, run["id"])
    return str(run["id"])


def test_run_page_restores_tab_axis_and_search_from_its_url(
    page: Page, context: BrowserContext, ended: str
) -> None:
    page.goto(f"/runs/{ended}")
    page.get_by_role("tab", name="Log").click()
    page.get_by_label("X axis").first.select_option(label="Frames")
    page.get_by_role("searchbox", name="Search the log").fill("queued")
    page.wait_for_url(re.compile("find=queued"))

    copy = context.new_page()
    copy.goto(page.url)
    expect(copy.get_by_role("tab", name="Log")).to_have_attribute("aria-selected", "true")
    expect(copy.get_by_label("X axis").first).to_have_value("frames")
    expect(copy.get_by_role("searchbox", name="Search the log")).to_have_value("queued")
    expect(copy.get_by_role("log")).to_contain_text("queued")

    page.go_back()
    expect(page.get_by_label("X axis").first).to_have_value("agent_steps")
    page.go_back()
    expect(page.get_by_role("tab", name="Curves")).to_have_attribute("aria-selected", "true")
    page.go_forward()
    expect(page.get_by_role("tab", name="Log")).to_have_attribute("aria-selected", "true")


@pytest.mark.long
def test_runs_list_restores_filter_sort_and_search_from_its_url(
    page: Page, context: BrowserContext, ended: str
) -> None:
    page.goto("/")
    page.get_by_role("radiogroup", name="Filter by state").get_by_text("Stopped").click()
    expect(page.get_by_role("radio", name="Stopped")).to_be_checked()
    page.get_by_role("button", name="Score").click()
    expect(page.get_by_role("columnheader", name="Score")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("searchbox", name="Search runs").fill("tag:old")
    page.wait_for_url(re.compile("q=tag"))
    row = page.get_by_role("row").filter(has_text="an old run").first
    expect(row).to_be_visible()

    copy = context.new_page()
    copy.goto(page.url)
    expect(copy.get_by_role("radio", name="Stopped")).to_be_checked()
    expect(copy.get_by_role("columnheader", name="Score")).to_have_attribute("aria-sort", "descending")
    expect(copy.get_by_role("searchbox", name="Search runs")).to_have_value("tag:old")
    expect(copy.get_by_role("row").filter(has_text="an old run").first).to_be_visible()

    page.get_by_role("link", name="an old run").first.click()
    page.wait_for_url(re.compile("/runs/"))
    page.go_back()
    expect(page.get_by_role("searchbox", name="Search runs")).to_have_value("tag:old")
    expect(row).to_be_visible()


@pytest.mark.long
def test_runs_list_restores_its_selection_from_its_url(
    page: Page, context: BrowserContext, script: httpx.Client
) -> None:
    for seed in (1, 2, 3):
        end(script, start(script, name=f"picked {seed}", seed=seed, host="nowhere")["id"])
    page.goto("/?q=name%3Apicked&sort=name")
    tick(page.get_by_role("checkbox", name="Select picked 1"))
    tick(page.get_by_role("checkbox", name="Select picked 3"))

    copy = context.new_page()
    copy.goto(page.url)
    expect(copy.get_by_role("toolbar", name="Selected runs")).to_contain_text("2 runs selected")
    expect(copy.get_by_role("checkbox", name="Select picked 3")).to_be_checked()
    expect(copy.get_by_role("checkbox", name="Select picked 2")).not_to_be_checked()

    page.get_by_role("toolbar", name="Selected runs").get_by_role("link", name="Compare").click()
    expect(page.get_by_role("grid", name="Compared runs").get_by_role("link")).to_have_count(2)
    page.go_back()
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("2 runs selected")

    page.get_by_role("combobox", name="Group runs").select_option("seed")
    expect(page.get_by_role("toolbar", name="Selected runs")).to_have_count(0)
    tick(page.get_by_role("table", name="Runs by seed").get_by_role("checkbox"))
    page.reload()
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("3 runs selected")


def test_clone_fills_the_form_with_the_config_of_the_run(page: Page, script: httpx.Client) -> None:
    config = {"n_e": 8, "beta": 0.02, "evaluation_episodes": 0}
    run = start(script, name="to clone", config=config, tags=["a", "b"])
    end(script, run["id"])
    page.goto(f"/runs/{run['id']}")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Clone").click()
    expect(page.locator("[name='config.beta']")).to_have_value("0.02")
    expect(page.locator("[name='stop.agent_steps']")).to_have_value("10,000,000")
    expect(page.get_by_label("Tags")).to_have_value("a, b")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    created = script.get(f"/api/v1/runs/{page.url.rsplit('/', 1)[1]}").json()
    assert created["spec"]["config"] == run["spec"]["config"]
    assert created["tags"] == ["a", "b"]


@pytest.mark.long
def test_run_url_without_id_redirects_to_the_list(page: Page) -> None:
    page.goto("/runs")
    expect(page.get_by_role("heading", name="Runs", level=1)).to_be_visible()
    assert page.url.endswith("/")


@pytest.mark.long
def test_invalid_search_parameters_are_dropped(page: Page, ended: str) -> None:
    page.goto("/?archived=banana&sort=bar&state=nope&group=foo")
    expect(page.get_by_role("row").filter(has_text="an old run").first).to_be_visible()
    expect(page.get_by_role("switch", name="Archived")).not_to_be_checked()
    page.goto(f"/runs/{ended}?x=foo&tab=nope")
    expect(page.get_by_role("tab", name="Curves")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_label("X axis").first).to_have_value("agent_steps")
    page.goto(f"/compare?runs=a,{ended},b")
    expect(page.get_by_role("grid", name="Compared runs").get_by_role("link")).to_have_count(1)
    expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)
