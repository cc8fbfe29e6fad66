"""Labyrinth and Racing: a run started from the form, and an episode of it on the replay page."""

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from backend.specs.environments import ENVIRONMENTS
from tests.browser.curves import await_state
from tests.browser.stage import end, read, until_episodes

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(3_600)]

PATIENCE_MS = 600_000
"""Four actor-learners load torch and start an environment each, which takes long on a busy machine."""
_SIZE = "video => [video.videoWidth, video.videoHeight]"
_PLAYS = "video => video.currentTime > 0.5 || video.ended"


@pytest.mark.parametrize(
    ("environment", "preset", "width_by_height"),
    [
        # The player's view, 320x240, and the map, 240x240, beside it.
        ("Labyrinth-Small-v0", "Labyrinth", 560 / 240),
        ("Racing-Slow-v0", "Racing", 1.0),
    ],
)
def test_preset_trains_in_its_environment_and_replays(
    page: Page, script: httpx.Client, environment: str, preset: str, width_by_height: float
) -> None:
    page.goto(f"/new?environment={environment}&algorithm=a3c&all=true")
    chosen = page.get_by_role("radiogroup", name="Preset").get_by_role("radio", checked=True)
    expect(chosen).to_contain_text(preset)
    page.locator("[name='environment_config.episode_s']").fill("4")
    page.get_by_label("Evaluation episodes").fill("0")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    run = page.url.rsplit("/", 1)[1]
    assert read(script, run)["spec"]["config"]["recurrent"] is True, "the preset's"
    await_state(page, "running", PATIENCE_MS)
    agent = page.get_by_role("region", name="Agent")
    agent.get_by_role("img", name="Live view of the agent in training").wait_for(timeout=PATIENCE_MS)
    until_episodes(script, run, 1, timeout_s=PATIENCE_MS / 1000)
    agent.get_by_role("radiogroup", name="Episode").get_by_text("Latest").click()
    agent.get_by_role("link", name="Open full replay").click(timeout=PATIENCE_MS)
    page.wait_for_url(re.compile(rf"/runs/{run}/episodes/"))

    player = page.get_by_role("group", name="Episode player")
    video = player.get_by_label(re.compile("^Video of the episode"))
    video.wait_for(timeout=PATIENCE_MS)
    page.wait_for_function(_PLAYS, arg=video.element_handle(), timeout=PATIENCE_MS)
    width, height = video.evaluate(_SIZE)
    assert width / height == pytest.approx(width_by_height, rel=0.01)
    observation = player.get_by_label("Observation")
    observation.wait_for(timeout=PATIENCE_MS)
    width, height = observation.evaluate(_SIZE)
    assert width == height, "the map is not part of the observation"
    policy = player.get_by_role("list", name=re.compile("^Policy"))
    expect(policy.get_by_role("listitem")).to_have_count(len(ENVIRONMENTS[environment].action_names))
    position = player.get_by_role("slider", name="Position in the episode")
    position.press("End")
    expect(position).to_have_attribute("aria-valuenow", position.get_attribute("aria-valuemax") or "")
    end(script, run)
