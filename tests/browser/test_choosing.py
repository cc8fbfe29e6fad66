"""Choosing: a world, a preset, columns."""

import pytest
from playwright.sync_api import Page, expect

from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_a_world_from_the_table(service_page: Page) -> None:
    page = service_page
    page.goto("/worlds")
    page.get_by_role("searchbox", name="Search worlds").fill("break")
    page.wait_for_url("**q=break**")
    row = page.get_by_role("row").filter(has_text="ALE/Breakout-v5")
    expect(row).to_contain_text("1.7")  # random play, Mnih et al. 2015
    expect(page.get_by_role("row")).to_have_count(2)
    row.get_by_role("link", name="New run").click()
    expect(page.get_by_role("option", name="Breakout")).to_have_attribute("aria-selected", "true")
    page.go_back()
    page.get_by_role("searchbox", name="Search worlds").fill("")
    page.get_by_role("combobox", name="Family").select_option("mujoco")
    page.wait_for_url("**family=mujoco**")
    expect(page.get_by_role("row").filter(has_text="ALE/")).to_have_count(0)


def test_a_preset_fills_the_form_and_the_cost_follows(service_page: Page) -> None:
    page = service_page
    page.goto("/new?environment=ALE/Breakout-v5")
    workers = page.locator("[name='config.n_w']")
    expect(workers).to_have_value("2")
    page.get_by_role("radiogroup", name="Preset").get_by_text("Defaults").click()
    expect(workers).to_have_value("8")
    cost = page.get_by_role("status", name="Cost")
    page.locator("[name='stop.agent_steps']").fill("2,000,000")
    expect(cost).to_contain_text("8.00 M frames")
    page.get_by_label("Number of seeds").fill("3")
    expect(cost).to_contain_text("3 runs, each")
    page.get_by_role("radiogroup", name="Algorithm").get_by_text("GA3C").click()
    expect(page.get_by_role("region", name="Parallelism")).to_contain_text("Predictors")


def test_columns_are_remembered(service_page: Page, sqlite_service: RunningService) -> None:
    make_run(sqlite_service.engine, RunState.FINISHED, name="one run")
    page = service_page
    page.goto("/")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("menuitemcheckbox", name="Tags", checked=True).click()
    page.reload()
    expect(page.get_by_role("columnheader", name="Age", exact=True)).to_be_visible()
    expect(page.get_by_role("columnheader", name="Tags")).to_have_count(0)
