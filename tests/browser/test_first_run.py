"""A new user's path: log in, start a run, watch its curve and its agent, stop, resume."""

import re
from itertools import pairwise

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import serious_violations
from tests.browser.boxes import tick
from tests.browser.curves import await_first_x, await_points, await_state, drawn
from tests.browser.stage import delete_all, start
from tests.support.waiting import until

pytestmark = pytest.mark.browser


def test_run_is_started_watched_stopped_and_resumed(page: Page, script: httpx.Client) -> None:
    page.goto("/new?all=true")
    page.get_by_role("combobox", name="Search environments").fill("paced")
    page.get_by_role("option", name="Paced pole").click()
    page.get_by_label("Evaluation episodes").fill("2")
    page.locator("[name='stop.agent_steps']").fill("10,000,000")  # never reached: the test stops the run
    page.get_by_label("Name", exact=True).fill("first light")
    page.get_by_role("button", name="Start run").click()

    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    run = page.url.rsplit("/", 1)[1]
    expect(page.get_by_role("heading", name="first light")).to_be_visible()
    await_state(page, "running")
    before = await_points(page)
    await_points(page, more_than=len(before))

    page.get_by_label("Smoothing").first.wait_for()

    page.get_by_role("button", name="Stop and keep a checkpoint").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("saves a checkpoint")
    dialog.get_by_role("button", name="Stop and keep a checkpoint").click()
    await_state(page, "stopped")
    stopped_at = script.get(f"/api/v1/runs/{run}").json()

    page.get_by_label("X axis").first.select_option(label="Episodes")
    # The points of a window are as far apart as its width, which grows with the run.
    page.get_by_label("Smoothing", exact=True).first.select_option("points")
    await_first_x(page, 1, 2)
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

    # Last: of more than 1,000 episodes, the curve would have merged points.
    _watch(page)


def _watch(page: Page) -> None:
    """Check the live view, and that the latest episode's video plays in step with its timeline."""
    agent = page.get_by_role("region", name="Agent")
    agent.get_by_role("img", name="Live view of the agent in training").wait_for()
    expect(agent).to_contain_text("Parameters from agent step")
    agent.get_by_role("radiogroup", name="Episode").get_by_text("Latest").click()
    player = page.get_by_role("group", name="Episode player")
    video = player.locator("video").first
    video.wait_for()
    page.wait_for_function("() => document.querySelector('video')?.duration > 0")
    page.wait_for_function(
        "() => { const v = document.querySelector('video'); return v?.currentTime > 0.1 || v?.ended; }"
    )
    player.get_by_role("button", name=re.compile("Pause|Play")).wait_for()
    slider = player.get_by_role("slider", name="Position in the episode")
    slider.focus()

    def at_end() -> bool:
        slider.press("End")
        return slider.get_attribute("aria-valuenow") == slider.get_attribute("aria-valuemax")

    until(at_end)  # a newer episode may just have replaced one that had ended
    slider.press("Home")
    expect(player.get_by_role("list", name=re.compile("Policy"))).to_contain_text("%")


@pytest.mark.long
def test_five_seeds_start_five_runs_selected_for_comparison(page: Page, script: httpx.Client) -> None:
    page.goto("/new?environment=CartPole-v1")
    seeds = page.get_by_label("Seeds", exact=False)
    seeds.fill("500")
    expect(page.get_by_role("status").filter(has_text="from 1 to 100")).to_be_visible()
    seeds.fill("5")
    page.get_by_role("button", name="Start 5 runs").click()
    expect(page.get_by_role("toolbar", name="Selected runs")).to_contain_text("5 runs selected")
    page.get_by_role("toolbar", name="Selected runs").get_by_role("link", name="Compare").click()
    compared = page.get_by_role("grid", name="Compared runs")
    compared.get_by_role("button", name="Run", exact=True).click()  # by name
    links = compared.get_by_role("link")
    expect(links).to_have_text([f"seed {seed}" for seed in range(5)])
    expect(links.first).to_have_attribute("title", "paac CartPole-v1 seed 0")


@pytest.mark.long
def test_default_run_starts_with_few_tabs_while_other_runs_are_shown(
    page: Page, script: httpx.Client
) -> None:
    run = start(script)["id"]
    page.goto("/new")
    shown = page.get_by_role("banner").get_by_label("Running now").get_by_role("link")
    shown.first.wait_for()
    expect(page.get_by_role("combobox", name="Search environments")).to_be_focused()
    button = page.get_by_role("button", name="Start run")
    button.wait_for()
    presses = 0
    while not button.evaluate("button => button === document.activeElement"):
        page.keyboard.press("Tab")
        presses += 1
        assert presses <= 15, "presses of Tab from the opened page to the start button"
    page.get_by_role("link", name="Skip to main content").focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    script.post(f"/api/v1/runs/{run}/kill").raise_for_status()


def test_empty_home_starts_an_agent_that_plays_with_one_click(page: Page, script: httpx.Client) -> None:
    delete_all(script)
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Watch agents learn")
    expect(page.get_by_role("radiogroup", name="Filter by state")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^Train on "))).to_have_count(3)
    assert not serious_violations(page)
    page.get_by_role("button", name="Train on Pong").click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    page.get_by_role("img", name="Live view of the agent in training").wait_for()
    run = script.get(f"/api/v1/runs/{page.url.rsplit('/', 1)[1]}").json()
    assert (run["algorithm"], run["environment"]) == ("paac", "ALE/Pong-v5")
    assert run["spec"]["config"]["n_w"] == 2, "the preset for two CPU cores"
    assert run["name"] == "paac Pong-v5 full-frame-centred seed 0"


@pytest.mark.long
def test_form_opens_on_what_the_home_offers(page: Page, script: httpx.Client) -> None:
    page.goto("/new")
    presets = page.get_by_role("radiogroup", name="Preset")
    expect(presets.get_by_role("radio", checked=True)).to_contain_text("Full frame, centred")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    run = script.get(f"/api/v1/runs/{page.url.rsplit('/', 1)[1]}").json()
    script.post(f"/api/v1/runs/{run['id']}/kill")
    assert run["name"] == "paac Pong-v5 full-frame-centred seed 0"


@pytest.mark.long
def test_new_run_of_another_game_shows_the_agent_the_whole_frame(page: Page, script: httpx.Client) -> None:
    def choose_game() -> None:
        page.goto("/new?all=true")
        page.get_by_role("combobox", name="Search environments").fill("pac")
        page.get_by_role("listbox", name="Environment").get_by_title("ALE/MsPacman-v5", exact=True).click()

    choose_game()
    presets = page.get_by_role("radiogroup", name="Preset")
    expect(presets.get_by_role("radio", checked=True)).to_contain_text("Full frame")
    expect(presets.get_by_role("radio").nth(1)).to_contain_text("As in the paper")
    expect(presets.get_by_role("radio", name="cropped frame")).to_have_count(0)
    crop = page.locator("[name='environment_config.crop']")
    # Of this field: without bf16 the precision has a note, and so has an environment without a host.
    note = page.get_by_role("note").filter(has_text="pixels that move")
    expect(note).to_have_count(0)
    tick(crop, hidden=True)
    expect(note).to_contain_text("hides 24 % of the pixels that move")
    tick(crop, False, hidden=True)
    expect(note).to_have_count(0)
    choose_game()  # the settings of this run are the form's own
    page.get_by_label("Name", exact=True).fill("whole frame")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    run = f"/api/v1/runs/{page.url.rsplit('/', 1)[1]}"
    spec = script.get(run).json()["spec"]
    script.post(f"{run}/kill")
    assert (spec["environment"], spec["environment_config"]["crop"]) == ("ALE/MsPacman-v5", False)
    assert spec["environment_config"]["observation_size"] == "84x84"
