"""Rules, the inbox and the bell."""

import re

import pytest
from playwright.sync_api import Page, expect

from backend.db.alert import record_signal
from backend.db.engine import writing
from backend.specs.states import RunState
from tests.browser.axe import VARIANTS, axe_violations
from tests.support.alerts import evaluate
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.browser


def test_run_notifies_after_two_clicks_and_the_bell_leads_to_its_step(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page, service = service_page, sqlite_service
    run = make_run(service.engine, RunState.RUNNING, name="night run")
    page.goto(f"/runs/{run.id}")
    page.get_by_role("button", name="Notify me of night run").click()
    page.get_by_role("menuitem", name="When it has finished or failed, or is lost").click()
    expect(page.get_by_text("You get an alert when the run has finished or failed")).to_be_visible()
    with writing(service.engine) as session:
        record_signal(
            session, "failed", run.id, agent_steps=5_000, level="error", text="<b>out of memory</b>"
        )
    evaluate(service)

    page.get_by_role("link", name="Alerts, 1 unread").click()  # without a reload
    inbox = page.get_by_role("region", name="Inbox")
    expect(inbox.get_by_text("<b>out of memory</b>")).to_be_visible()
    inbox.get_by_role("button", name="Chart: night run: failed").click()
    expect(inbox.get_by_text("Learning curve", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Rules")).to_contain_text("finished, failed, lost")
    assert axe_violations(page) == {}

    inbox.get_by_role("link", name="night run: failed").click()
    expect(page).to_have_url(re.compile(rf"/runs/{run.id}\?zoom=4000\.\.6000"))
    expect(page.get_by_role("link", name="Alerts", exact=True)).to_be_visible()
    page.get_by_role("button", name="Notify me of night run").click()
    page.get_by_role("menuitem", name="Stop notifying me").click()
    page.get_by_role("link", name="Alerts", exact=True).click()
    expect(page.get_by_role("region", name="Rules")).to_contain_text("You have no rules")


def test_rule_and_target_are_made_by_keyboard(service_page: Page) -> None:
    page = service_page
    page.goto("/alerts")
    targets = page.get_by_role("region", name="Targets")
    targets.get_by_label("Name").fill("lab")
    targets.get_by_label("Address").fill("https://user:secret@hooks.example/secret")
    page.keyboard.press("Enter")
    expect(targets).to_contain_text("jsons://hooks.example/****")
    expect(targets).not_to_contain_text("secret@")

    page.get_by_role("button", name="New rule").press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("a run has a metric above or below a value").press("Space")
    dialog.get_by_role("textbox", name="Metric").fill("loss/value")
    dialog.get_by_role("textbox", name="Value").fill("5")
    dialog.get_by_label("lab (json)").press("Space")
    assert axe_violations(page, VARIANTS[:2]) == {}
    dialog.get_by_role("button", name="Create rule").press("Enter")
    rules = page.get_by_role("region", name="Rules")
    expect(rules).to_contain_text("failed, lost, loss/value above 5 for 10 min")
    expect(rules).to_contain_text("all; to lab")
    rules.get_by_role("button", name="Delete the rule").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Delete").press("Enter")
    expect(rules).to_contain_text("You have no rules")
