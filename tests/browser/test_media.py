"""Histograms, images and tables of a run on its page."""

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import callboard
from backend.analysis.media import service as media
from backend.db import Run
from backend.db.engine import writing
from backend.platform.principals import Role
from backend.specs.events import HistogramEvent
from backend.specs.states import RunState
from tests.browser.axe import axe_violations
from tests.support.artifacts import make_episode
from tests.support.rows import make_run
from tests.support.service import RunningService


@pytest.mark.browser
@pytest.mark.long
def test_one_slider_moves_all_media_of_a_run(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = service_page
    monkeypatch.setenv("CALLBOARD_HOME", str(tmp_path))
    monkeypatch.setattr("callboard.starting.RECORDS", False)
    with sqlite_service.client_as(Role.OPERATOR) as client:
        monkeypatch.setenv("CALLBOARD_URL", sqlite_service.url)
        monkeypatch.setenv("CALLBOARD_TOKEN", client.headers["Authorization"].removeprefix("Bearer "))
        with callboard.init(algorithm="mine", environment="CartPole-v1") as run:
            for step in (100, 200, 300):
                run.log({"policy/actions": callboard.Histogram([0, 1, 1])}, agent_steps=step)
            run.log({"state": callboard.Image(np.zeros((8, 8)), "first")}, agent_steps=50)
            run.log({"state": callboard.Image(np.ones((8, 8)), "second")}, agent_steps=200)
            run.log({"levels": callboard.Table(["level"], [["<b>one</b>"]])}, agent_steps=300)
        page.goto(f"{sqlite_service.url}/runs/{run.id}")
        page.get_by_role("tab", name="Media").click()
        expect(page.get_by_role("img", name="Histogram of policy/actions at 300")).to_be_visible()
        expect(page.get_by_role("img", name="state at agent step 200: second")).to_have_js_property(
            "naturalWidth", 8
        )
        expect(page.get_by_role("cell", name="<b>one</b>")).to_be_visible()
        slider = page.get_by_role("slider", name="Agent step 300, of all media")
        slider.press("Home")
        expect(page).to_have_url(re.compile("step=50"))
        expect(page.get_by_role("img", name="state at agent step 50: first")).to_be_visible()
        expect(page.get_by_role("img", name="Histogram of policy/actions at 100")).to_be_visible()
        assert axe_violations(page) == {}
        page.get_by_role("slider").press("End")
        expect(page.get_by_text("(4 of 4)")).to_be_visible()
        expect(page).not_to_have_url(re.compile("step="))


@pytest.mark.browser
@pytest.mark.long
def test_bar_of_returns_lists_its_episodes(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    page, engine = service_page, sqlite_service.engine
    run = make_run(engine, RunState.FINISHED)
    for reached in (1.0, 9.0):
        make_episode(engine, run, sqlite_service.artifacts, tmp_path, episode_return=reached, agent_steps=50)
    with writing(engine) as session:
        histogram = HistogramEvent(
            metric="rollout/episode_return", agent_steps=100, wall_time_s=1, edges=[0, 5, 10], counts=[3, 4]
        )
        media.add_histograms(session, session.get_one(Run, run.id), 1, [histogram])
    page.goto(f"{sqlite_service.url}/runs/{run.id}?tab=media")
    episodes = page.get_by_role("button", name=re.compile("Watch the episode"))
    expect(episodes).to_have_count(2)
    figure = page.get_by_role("img", name="Histogram of rollout/episode_return")
    bar = figure.locator(".point path").last.bounding_box()
    assert bar is not None
    page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)  # Plotly's layer is above it
    expect(episodes).to_have_count(1)
    expect(episodes).to_have_accessible_name("Watch the episode with return 9.00 at 50")
    page.get_by_role("button", name="All", exact=True).click()
    expect(episodes).to_have_count(2)
    episodes.first.click()
    expect(page).to_have_url(re.compile("episode="))
