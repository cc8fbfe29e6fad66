"""DQN from the page: launched, watched, drawn from within, stopped, resumed, replayed."""

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.curves import await_points, await_state
from tests.browser.stage import until_episodes

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(900)]

PATIENCE_MS = 180_000
"""A busy machine takes its time."""


def test_launch_watch_stop_resume_replay(page: Page, script: httpx.Client) -> None:
    page.goto("/new?environment=CartPole-v1&algorithm=dqn")
    page.get_by_label("Evaluation episodes").fill("2")
    page.get_by_label("Name", exact=True).fill("dqn")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    run = page.url.rsplit("/", 1)[1]
    await_state(page, "running", PATIENCE_MS)
    until_episodes(script, run, 20, timeout_s=PATIENCE_MS / 1000)
    await_points(page)
    agent = page.get_by_role("region", name="The agent playing")
    agent.get_by_role("img", name="The agent playing in training, live").wait_for(timeout=PATIENCE_MS)

    page.get_by_role("tab", name="Internals").click()
    for panel in ("Epsilon", "Greatest Q", "Replay memory"):
        page.get_by_role("img", name=f"{panel} of dqn").wait_for(timeout=PATIENCE_MS)

    page.get_by_role("button", name="Stop and keep a checkpoint").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop and keep a checkpoint").click()
    await_state(page, "stopped", PATIENCE_MS)
    stopped = script.get(f"/api/v1/runs/{run}").json()

    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    await_state(page, "running", PATIENCE_MS)
    until_episodes(script, run, stopped["episodes"] + 5, timeout_s=PATIENCE_MS / 1000)
    resumed = script.get(f"/api/v1/runs/{run}").json()
    assert resumed["attempt"] == stopped["attempt"] + 1
    assert resumed["agent_steps"] > stopped["agent_steps"]

    page.get_by_role("tab", name="Episodes").click()
    agent.get_by_role("radiogroup", name="Which episode").get_by_text("Newest").click()
    player = page.get_by_role("group", name="Episode player")
    player.locator("video").wait_for(timeout=PATIENCE_MS)
    expect(player.get_by_role("list", name=re.compile("^Q: what the agent expected"))).to_be_visible()
    script.post(f"/api/v1/runs/{run}/kill")
    await_state(page, "stopped", PATIENCE_MS)
