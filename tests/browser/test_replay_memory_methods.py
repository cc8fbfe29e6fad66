"""DQN and Gorila: a run from a preset, its diagnostics, stop, resume and replay."""

import re

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from backend.specs.algorithms import ALGORITHMS
from tests.browser.curves import await_points, await_state
from tests.browser.stage import end, read, until_episodes

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(5_400)]

PATIENCE_MS = 600_000
"""For a busy machine."""
STARTS_MS = 1_200_000
"""For Ray: seven processes, all started again if its server dies."""

TYPED = {"evaluation_episodes": 2, "replay_capacity": 2_000, "learning_starts_agent_steps": 500}


def test_dqn_trains_resumes_and_replays_from_a_preset(page: Page, script: httpx.Client) -> None:
    run = _launch(page, script, "dqn", TYPED)
    page.get_by_role("tab", name="Diagnostics").click()
    for panel in ("Epsilon", "Max Q", "Replay memory"):
        page.get_by_role("img", name=f"{panel} of dqn").wait_for(timeout=PATIENCE_MS)
    _stop_resume_replay(page, script, run)


def test_gorila_trains_resumes_and_replays_from_a_preset(page: Page, script: httpx.Client) -> None:
    # Of two gradients sent at the same time the second is stale by one update.
    run = _launch(page, script, "gorila_dqn", TYPED | {"max_gradient_staleness": 0})
    page.get_by_role("tab", name="Diagnostics").click()
    figure = page.get_by_role("region", name="Gorila architecture")
    server = figure.get_by_role("region", name="Parameter server, 2 shards")
    learners = figure.get_by_role("region", name="2 learners")
    memories = figure.get_by_role("region", name="Replay memories")
    actors = figure.get_by_role("region", name="2 actors")
    expect(figure.get_by_text("2 bundles of one actor, learner and replay memory")).to_be_visible(
        timeout=PATIENCE_MS
    )
    numbers = [
        _value(server, "Updates per second"),
        _value(server, "Stale gradients discarded"),
        _value(server, "Updates by shard"),
        _value(learners, "Loss |y − Q|"),
        _value(learners, "Gradients by staleness"),
        _value(actors, "Exploration ε"),
        _value(actors, "θ version by actor"),
        _value(actors, "Episodes by actor"),
    ]
    for number in numbers:
        expect(number).to_have_text(re.compile("[1-9]"), timeout=PATIENCE_MS)
    expect(_value(memories, "Filled")).to_have_text("100%", timeout=PATIENCE_MS)
    expect(_value(learners, "Staleness, mean and max")).to_have_text(
        re.compile(r"^0\.\d+, [1-9]"), timeout=PATIENCE_MS
    )
    for moving in (_value(server, "Updates by shard"), _value(actors, "Episodes by actor")):
        expect(moving).not_to_have_text(moving.inner_text(), timeout=PATIENCE_MS)
    page.set_viewport_size({"width": 1280, "height": 4_000})  # only charts in view are drawn
    for panel in (
        "Gradient staleness",
        "Gradient staleness distribution",
        "Discarded and lost updates",
        "Replay memory",
        "Parameter shards",
        "Parameter versions of the actors",
        "Episodes per actor",
    ):
        page.get_by_role("img", name=f"{panel} of gorila_dqn").wait_for(timeout=PATIENCE_MS)
    _stop_resume_replay(page, script, run)
    page.get_by_role("tab", name="Log").click()
    expect(page.get_by_role("log")).to_contain_text("refilled before learning continues")


def _value(box: Locator, name: str) -> Locator:
    """The value shown beside a name."""
    return box.locator(f'dt:text-is("{name}") + dd')


def _launch(page: Page, script: httpx.Client, algorithm: str, typed: dict[str, int]) -> str:
    """Start a run with a preset and changed fields, and wait for its first points; return its id."""
    [preset] = [preset for preset in ALGORITHMS[algorithm].presets if preset.id == "quarter-hour"]
    page.goto(f"/new?environment=Catch-v0&algorithm={algorithm}&all=true")
    presets = page.get_by_role("radiogroup", name="Preset")
    presets.get_by_role("radio", name=preset.title).click()
    expect(presets.get_by_role("radio", checked=True)).to_contain_text(preset.title)
    for name, value in typed.items():
        page.locator(f"[name='config.{name}']").fill(f"{value:,}")
    page.get_by_label("Name", exact=True).fill(algorithm)
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    run = page.url.rsplit("/", 1)[1]
    spec = read(script, run)["spec"]
    expected = preset.config | typed
    assert {name: spec["config"][name] for name in expected} == expected
    assert spec["stop"]["agent_steps"] == preset.stop["agent_steps"]
    await_state(page, "running", STARTS_MS)
    seen = await_points(page, timeout_ms=PATIENCE_MS)
    await_points(page, more_than=len(seen), timeout_ms=PATIENCE_MS)
    agent = page.get_by_role("region", name="Agent")
    agent.get_by_role("img", name="Live view of the agent in training").wait_for(timeout=PATIENCE_MS)
    return run


def _stop_resume_replay(page: Page, script: httpx.Client, run: str) -> None:
    """Stop with a checkpoint, resume from it, and replay an episode."""
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Stop and keep a checkpoint").click()
    dialog.get_by_role("button", name="Stop and keep a checkpoint").click()
    await_state(page, "stopped", PATIENCE_MS)
    stopped = read(script, run)

    page.get_by_role("button", name="Resume").click()
    dialog.get_by_role("button", name="Resume").click()
    await_state(page, "running", STARTS_MS)
    until_episodes(script, run, stopped["episodes"] + 5, timeout_s=STARTS_MS / 1000)
    resumed = read(script, run)
    assert resumed["attempt"] == stopped["attempt"] + 1
    assert resumed["agent_steps"] > stopped["agent_steps"]

    agent = page.get_by_role("region", name="Agent")
    agent.get_by_role("radiogroup", name="Episode").get_by_text("Latest").click()
    agent.get_by_role("link", name="Open full replay").click()
    page.wait_for_url(re.compile(rf"/runs/{run}/episodes/"))
    player = page.get_by_role("group", name="Episode player")
    player.get_by_label(re.compile("^Video of the episode")).wait_for(timeout=PATIENCE_MS)
    player.get_by_label("Observation").wait_for(timeout=PATIENCE_MS)
    expect(player.get_by_role("list", name=re.compile("^Q value of each action"))).to_be_visible()
    position = player.get_by_role("slider", name="Position in the episode")
    position.press("Home")
    position.press("ArrowRight")
    expect(position).to_have_attribute("aria-valuenow", "1")
    end(script, run)
    page.goto(f"/runs/{run}")
    await_state(page, "stopped", PATIENCE_MS)
