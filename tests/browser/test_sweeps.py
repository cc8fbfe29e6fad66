"""The pages of sweeps: scores, scatter, links and actions of a sweep, and starting one from the form."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import select

from backend.db import Run
from backend.db.engine import writing
from backend.runs.runs import service as run_service
from backend.specs.states import RunState
from tests.browser.axe import serious_violations
from tests.browser.boxes import tick
from tests.support.rows import CARTPOLE, PATHS
from tests.support.service import RunningService

pytestmark = pytest.mark.browser

RATES = {"config.learning_rate": {"values": [0.001, 0.01, 0.1]}}
SCORES = {0.001: 200.0, 0.01: 100.0, 0.1: 10.0}


@pytest.fixture
def sweep(sqlite_service: RunningService) -> dict[str, Any]:
    """A sweep with three finished seeds of each of its configurations."""
    body = {"name": "rates", "run": CARTPOLE, "space": RATES, "max_seeds": 6}
    answer = sqlite_service.client.post("/api/v1/sweeps", json=body)
    assert answer.status_code == 201, answer.text
    with writing(sqlite_service.engine) as session:
        for run in session.scalars(select(Run)).all():
            for state in PATHS[RunState.FINISHED]:
                run_service.transition(session, run, state, "for the test")
            run.score = SCORES[run.spec["config"]["learning_rate"]] + run.seed
    created: dict[str, Any] = answer.json()
    return created


@pytest.mark.long
def test_sweep_page_restores_sort_setting_and_scale_from_its_url(
    service_page: Page, sweep: dict[str, Any]
) -> None:
    page = service_page
    page.goto("/sweeps")
    page.get_by_role("link", name="rates").click()
    page.wait_for_url(re.compile(f"/sweeps/{sweep['id']}"))
    table = page.get_by_role("region", name="Configurations").get_by_role("table")
    expect(table.get_by_role("row").nth(1)).to_contain_text("highest")
    expect(table.get_by_role("link", name="lr 0.001, seed 2: score 202.0")).to_have_attribute(
        "href", re.compile("/runs/")
    )
    expect(page.get_by_role("switch", name="Log scale")).to_be_checked()

    table.get_by_role("button", name="Learning rate").click()
    header = table.get_by_role("columnheader", name="Learning rate")
    expect(header).to_have_attribute("aria-sort", "ascending")
    tick(page.get_by_role("switch", name="Log scale"), checked=False, hidden=True)
    page.wait_for_url(re.compile("sort=config.learning_rate.*log=false"))
    page.reload()
    expect(header).to_have_attribute("aria-sort", "ascending")
    expect(page.get_by_role("switch", name="Log scale")).not_to_be_checked()
    assert not serious_violations(page)


@pytest.mark.long
def test_sweep_page_leads_to_its_runs_and_to_their_comparison(
    service_page: Page, sweep: dict[str, Any]
) -> None:
    page = service_page
    page.goto(f"/sweeps/{sweep['id']}")
    page.get_by_role("link", name="Compare the best").click()
    page.wait_for_url(re.compile("list=beside.*group=seed"))
    expect(page.get_by_role("heading", name="Compare")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Show runs").click()
    expect(page.get_by_role("searchbox", name="Search runs")).to_have_value('group="rates"')
    expect(page.get_by_role("main")).to_contain_text("9 runs")


def test_sweep_is_stopped_extended_and_deleted_on_its_page(
    service_page: Page, sqlite_service: RunningService, sweep: dict[str, Any]
) -> None:
    page = service_page
    page.goto(f"/sweeps/{sweep['id']}")
    page.get_by_role("button", name="More actions for").click()
    delete = page.get_by_role("menuitem", name="Delete")
    expect(delete).to_have_attribute("title", re.compile("stop it before"))
    page.keyboard.press("Escape")
    # What another client does appears on its own.
    assert sqlite_service.client.post(f"/api/v1/sweeps/{sweep['id']}/stop").is_success
    expect(page.get_by_text("Stopped on request")).to_be_visible()

    page.get_by_role("button", name="Extend").click()
    dialog = page.get_by_role("dialog")
    seeds = dialog.get_by_label("Seeds of each configuration, at most")
    expect(seeds).to_be_focused()
    seeds.fill("5")
    expect(dialog).to_contain_text("Enter a whole number from 6 to 100.")
    assert not serious_violations(page)
    seeds.fill("8")
    seeds.press("Enter")
    dialog.wait_for(state="detached")
    expect(page.get_by_text("at most 8 seeds of each configuration")).to_be_visible()

    page.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="More actions for").click()
    delete.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url(re.compile("/sweeps$"))
    expect(page.get_by_text("A sweep trains many combinations")).to_be_visible()


def test_several_values_start_a_sweep_from_the_form(service_page: Page) -> None:
    page = service_page
    page.goto("/new?environment=CartPole-v1&algorithm=paac")
    page.locator("[name='config.learning_rate']").fill("0.001, 0.01")
    tick(page.get_by_role("checkbox", name="Start as a sweep"))
    page.get_by_label("Seeds of each combination, at most").fill("4")
    expect(page.get_by_role("status", name="Cost")).to_contain_text("at most 8 runs")
    page.get_by_role("button", name="Start sweep").click()
    page.wait_for_url(re.compile(r"/sweeps/\w{26}"))
    expect(page.get_by_role("heading", name="paac on CartPole")).to_be_visible()
    expect(page.get_by_text("at most 4 seeds of each configuration")).to_be_visible()
