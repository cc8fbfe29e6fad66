"""Histograms, images and tables of a run on its page."""

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import callboard
from backend.platform.principals import Role
from tests.browser.axe import axe_violations
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
