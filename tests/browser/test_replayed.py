"""DQN and Gorila from the page: a preset chosen, watched, drawn from within, stopped, resumed, replayed."""

import re

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from backend.specs.algorithms import ALGORITHMS
from tests.browser.curves import await_points, await_state
from tests.browser.stage import end, read, until_episodes

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(1_800)]

PATIENCE_MS = 180_000
"""A busy machine takes its time."""
STARTS_MS = 400_000
"""Ray above all: seven processes, and where its server dies all of them again."""

TYPED = {"evaluation_episodes": 2, "replay_capacity": 2_000, "learning_starts_agent_steps": 500}


def test_dqn_from_preset_to_replay(page: Page, script: httpx.Client) -> None:
    run = _launch(page, script, "dqn", TYPED)
    page.get_by_role("tab", name="Internals").click()
    for panel in ("Epsilon", "Greatest Q", "Replay memory"):
        page.get_by_role("img", name=f"{panel} of dqn").wait_for(timeout=PATIENCE_MS)
    _stop_resume_replay(page, script, run)


def test_gorila_from_preset_to_replay(page: Page, script: httpx.Client) -> None:
    # Of two gradients that are sent together the second is an update late.
    run = _launch(page, script, "gorila_dqn", TYPED | {"max_gradient_staleness": 0})
    page.get_by_role("tab", name="Internals").click()
    figure = page.get_by_role("region", name="Gorila's parts")
    server = figure.get_by_role("region", name="Parameter server, 2 shards")
    learners = figure.get_by_role("region", name="2 learners")
    memories = figure.get_by_role("region", name="Replay memories")
    actors = figure.get_by_role("region", name="2 actors")
    expect(figure.get_by_text("2 bundles of one each")).to_be_visible(timeout=PATIENCE_MS)
    numbers = [
        _told(server, "Updates a second"),
        _told(server, "Stale gradients discarded"),
        _told(server, "Updates of each shard"),
        _told(learners, "Loss |y − Q|"),
        _told(learners, "Gradients by updates late"),
        _told(actors, "Random actions, ε"),
        _told(actors, "Updates in each one's θ"),
        _told(actors, "Episodes of each"),
    ]
    for number in numbers:
        expect(number).to_have_text(re.compile("[1-9]"), timeout=PATIENCE_MS)
    expect(_told(memories, "Filled")).to_have_text("100%", timeout=PATIENCE_MS)
    expect(_told(learners, "Staleness, mean and greatest")).to_have_text(
        re.compile(r"^0\.\d+, [1-9]"), timeout=PATIENCE_MS
    )
    for moving in (_told(server, "Updates of each shard"), _told(actors, "Episodes of each")):
        expect(moving).not_to_have_text(moving.inner_text(), timeout=PATIENCE_MS)
    page.set_viewport_size({"width": 1280, "height": 4_000})  # charts are drawn where they can be seen
    for panel in (
        "Staleness of gradients",
        "Staleness, shares",
        "Discarded and lost",
        "Replay memory",
        "Parameter shards",
        "Parameters the actors have",
        "Episodes of each actor",
    ):
        page.get_by_role("img", name=f"{panel} of gorila_dqn").wait_for(timeout=PATIENCE_MS)
    _stop_resume_replay(page, script, run)
    page.get_by_role("tab", name="Log").click()
    expect(page.get_by_role("log")).to_contain_text("filled again before learning goes on")


def _told(box: Locator, name: str) -> Locator:
    """The number that stands by this name."""
    return box.locator(f'dt:text-is("{name}") + dd')


def _launch(page: Page, script: httpx.Client, algorithm: str, typed: dict[str, int]) -> str:
    """Start a run with a preset and some settings of its own, and watch its first points come; its id."""
    [preset] = [one for one in ALGORITHMS[algorithm].presets if one.id == "quarter-hour"]
    page.goto(f"/new?environment=Catch-v0&algorithm={algorithm}")
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
    asked = preset.config | typed
    assert {name: spec["config"][name] for name in asked} == asked
    assert spec["stop"]["agent_steps"] == preset.stop["agent_steps"]
    await_state(page, "running", STARTS_MS)
    seen = await_points(page, timeout_ms=PATIENCE_MS)
    await_points(page, more_than=len(seen), timeout_ms=PATIENCE_MS)
    agent = page.get_by_role("region", name="The agent playing")
    agent.get_by_role("img", name="The agent playing in training, live").wait_for(timeout=PATIENCE_MS)
    return run


def _stop_resume_replay(page: Page, script: httpx.Client, run: str) -> None:
    """Stop and keep a checkpoint, go on from it, and look at an episode decision by decision."""
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

    agent = page.get_by_role("region", name="The agent playing")
    agent.get_by_role("radiogroup", name="Which episode").get_by_text("Newest").click()
    agent.get_by_role("link", name="Open large").click()
    page.wait_for_url(re.compile(rf"/runs/{run}/episodes/"))
    player = page.get_by_role("group", name="Episode player")
    player.get_by_label(re.compile("^Video of the episode")).wait_for(timeout=PATIENCE_MS)
    player.get_by_label("What the network saw").wait_for(timeout=PATIENCE_MS)
    expect(player.get_by_role("list", name=re.compile("^Q: what the agent expected"))).to_be_visible()
    position = player.get_by_role("slider", name="Position in the episode")
    position.press("Home")
    position.press("ArrowRight")
    expect(position).to_have_attribute("aria-valuenow", "1")
    end(script, run)
    page.goto(f"/runs/{run}")
    await_state(page, "stopped", PATIENCE_MS)
