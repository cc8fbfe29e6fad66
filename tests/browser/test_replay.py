"""An episode from within: what was earned and thought at each decision."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.artifacts import make_episode
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.browser


def test_from_one_lost_life_to_the_next(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine)
    episode = make_episode(
        sqlite_service.engine, run, sqlite_service.artifacts, tmp_path, lives=(3, 3, 2, 2, 1)
    )
    page = service_page
    page.goto(f"/runs/{run.id}/episodes/{episode.id}")
    position = page.get_by_role("slider", name="Position in the episode")
    for decision in (2, 4, 2):
        page.get_by_role("button", name="Next lost life").click()
        expect(position).to_have_attribute("aria-valuenow", str(decision))
    expect(page.get_by_role("list", name="Policy: probability of each action")).to_contain_text("50%")
    page.keyboard.press(".")
    expect(position).to_have_attribute("aria-valuenow", "3")
    page.wait_for_url("**at=3")
    page.reload()
    expect(position).to_have_attribute("aria-valuenow", "3")
    page.keyboard.press(".")  # with the focus on nothing
    expect(position).to_have_attribute("aria-valuenow", "4")
    position.press("ArrowLeft")
    expect(position).to_have_attribute("aria-valuenow", "3")


def test_a_value_methods_bars_are_q(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine, algorithm="one_step_q")
    episode = make_episode(sqlite_service.engine, run, sqlite_service.artifacts, tmp_path)
    page = service_page
    page.goto(f"/runs/{run.id}/episodes/{episode.id}")
    bars = page.get_by_role("list", name="Q: what the agent expected of each action")
    expect(bars).to_contain_text("0.5")
    expect(page.get_by_text("max Q").first).to_be_visible()
    expect(page.get_by_text("%")).to_have_count(0)
    expect(page.get_by_role("button", name="Next lost life")).to_have_count(0)
