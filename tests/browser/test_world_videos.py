"""A maze and a race launched from the page, and an episode of each seen in the replay page."""

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from backend.specs.environments import ENVIRONMENTS
from tests.browser.curves import await_state
from tests.browser.stage import end, read, until_episodes

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(900)]

PATIENCE_MS = 180_000
"""Four actor-learners load torch and begin a game each: on a busy machine they are long in coming."""
_SIZE = "video => [video.videoWidth, video.videoHeight]"
_PLAYS = "video => video.currentTime > 0.5 || video.ended"


@pytest.mark.parametrize(
    ("world", "preset", "width_by_height"),
    [
        # The player's view, 320x240, and the map, 240x240, beside it.
        ("Labyrinth-Small-v0", "a maze", 560 / 240),
        ("Racing-Slow-v0", "a race", 1.0),
    ],
)
def test_launched_and_replayed(
    page: Page, script: httpx.Client, world: str, preset: str, width_by_height: float
) -> None:
    page.goto(f"/new?environment={world}&algorithm=a3c")
    chosen = page.get_by_role("radiogroup", name="Preset").get_by_role("radio", checked=True)
    expect(chosen).to_contain_text(preset)
    page.locator("[name='environment_config.episode_s']").fill("4")
    page.get_by_label("Evaluation episodes").fill("0")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    run = page.url.rsplit("/", 1)[1]
    assert read(script, run)["spec"]["config"]["recurrent"] is True, "the preset's"
    await_state(page, "running", PATIENCE_MS)
    agent = page.get_by_role("region", name="The agent playing")
    agent.get_by_role("img", name="The agent playing in training, live").wait_for(timeout=PATIENCE_MS)
    until_episodes(script, run, 1, timeout_s=PATIENCE_MS / 1000)
    agent.get_by_role("radiogroup", name="Which episode").get_by_text("Newest").click()
    agent.get_by_role("link", name="Open large").click(timeout=PATIENCE_MS)
    page.wait_for_url(re.compile(rf"/runs/{run}/episodes/"))

    player = page.get_by_role("group", name="Episode player")
    video = player.get_by_label(re.compile("^Video of the episode"))
    video.wait_for(timeout=PATIENCE_MS)
    page.wait_for_function(_PLAYS, arg=video.element_handle(), timeout=PATIENCE_MS)
    width, height = video.evaluate(_SIZE)
    assert width / height == pytest.approx(width_by_height, rel=0.01)
    seen = player.get_by_label("What the network saw")
    seen.wait_for(timeout=PATIENCE_MS)
    width, height = seen.evaluate(_SIZE)
    assert width == height, "the map is for people alone"
    policy = player.get_by_role("list", name=re.compile("^Policy"))
    expect(policy.get_by_role("listitem")).to_have_count(len(ENVIRONMENTS[world].action_names))
    position = player.get_by_role("slider", name="Position in the episode")
    position.press("End")
    expect(position).to_have_attribute("aria-valuenow", position.get_attribute("aria-valuemax") or "")
    end(script, run)
