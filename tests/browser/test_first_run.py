"""The path a new user takes: log in, launch, watch it learn, watch it play, stop, resume."""

import re
from itertools import pairwise

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.curves import await_first_x, await_points, await_state, drawn
from tests.browser.stage import delete_all

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]


def test_launch_watch_stop_resume(page: Page, script: httpx.Client) -> None:
    page.goto("/new")
    page.get_by_role("searchbox", name="Search worlds").fill("cartpole")
    page.get_by_role("option", name="CartPole").click()
    page.get_by_label("Evaluation episodes").fill("2")
    page.locator("[name='stop.agent_steps']").fill("10,000,000")  # it ends when it is asked to
    page.get_by_label("Name", exact=True).fill("first light")
    page.get_by_role("button", name="Start run").click()

    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    run = page.url.rsplit("/", 1)[1]
    expect(page.get_by_role("heading", name="first light")).to_be_visible()
    await_state(page, "running")
    before = await_points(page)
    await_points(page, more_than=len(before))

    page.get_by_label("Smoothing").first.wait_for()
    _watch(page)

    page.get_by_role("button", name="Stop and keep a checkpoint").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("saves a checkpoint")
    dialog.get_by_role("button", name="Stop and keep a checkpoint").click()
    await_state(page, "stopped")
    stopped_at = script.get(f"/api/v1/runs/{run}").json()

    page.get_by_role("radiogroup", name="Horizontal axis").get_by_text("Episodes").click()
    await_first_x(page, 1)
    until_stopped = await_points(page)
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    await_state(page, "running")
    episodes = await_points(page, more_than=len(until_stopped))

    assert script.get(f"/api/v1/runs/{run}").json()["attempt"] == stopped_at["attempt"] + 1
    assert episodes[: len(until_stopped)] == until_stopped
    assert all(earlier < later for earlier, later in pairwise(episodes))
    page.reload()
    await_points(page)
    assert drawn(page)["x"][: len(episodes)] == episodes


def _watch(page: Page) -> None:
    """It plays live; the newest episode's video is drawn and plays; the trace moves with it."""
    agent = page.get_by_role("region", name="The agent playing")
    agent.get_by_role("img", name="The agent playing in training, live").wait_for(timeout=30_000)
    expect(agent).to_contain_text("with the parameters of agent step")
    agent.get_by_role("radiogroup", name="Which episode").get_by_text("Newest").click()
    player = page.get_by_role("group", name="Episode player")
    video = player.locator("video")
    video.wait_for(timeout=60_000)
    page.wait_for_function("() => document.querySelector('video')?.duration > 0")
    page.wait_for_function(
        "() => { const v = document.querySelector('video'); return v.currentTime > 0.1 || v.ended; }"
    )
    player.get_by_role("button", name=re.compile("Pause|Play")).wait_for()
    slider = player.get_by_role("slider", name="Position in the episode")
    slider.focus()
    slider.press("End")
    last = slider.get_attribute("aria-valuemax")
    expect(slider).to_have_attribute("aria-valuenow", last or "")
    slider.press("Home")
    expect(player.get_by_role("list", name=re.compile("Policy"))).to_contain_text("%")


def test_five_seeds_of_a_setting(page: Page, script: httpx.Client) -> None:
    page.goto("/new?environment=CartPole-v1")
    seeds = page.get_by_label("Seeds", exact=False)
    seeds.fill("500")
    expect(page.get_by_role("status").filter(has_text="from 1 to 100")).to_be_visible()
    seeds.fill("5")
    page.get_by_role("button", name="Start 5 runs").click()
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("5 runs selected")
    page.get_by_role("toolbar", name="Selected runs").get_by_role("link", name="Compare").click()
    compared = page.get_by_role("list", name="Compared runs")
    expect(compared.get_by_role("link")).to_have_text([f"paac CartPole-v1 seed {seed}" for seed in range(5)])


def test_start_pong_from_the_empty_page(page: Page, script: httpx.Client) -> None:
    delete_all(script)
    page.goto("/")
    start = page.get_by_role("button", name="Start PAAC on Pong")
    expect(start).to_be_visible()
    expect(page.get_by_role("radiogroup", name="Which states")).to_have_count(0)
    expect(page.get_by_role("main")).not_to_contain_text(re.compile(r"\d"))
    start.click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    run = script.get(f"/api/v1/runs/{page.url.rsplit('/', 1)[1]}").json()
    assert (run["algorithm"], run["environment"]) == ("paac", "ALE/Pong-v5")
    assert run["spec"]["config"]["n_w"] == 2, "the preset for two CPU cores"
