"""Start sets in the browser: made of a script's recorded game, and evaluated from."""

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import start, until_state
from tests.browser.test_play import Stream
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.browser

BREAKOUT = "ALE/Breakout-v5"
NAME = "of-a-script"
PROTOCOL = f"agent_starts:{NAME}@1"
MIN_FRAMES = 240
"""Frames of the game: enough for starts before and after the first lost life."""
N_POINTS = 4
WORK_MS = 1000 * PATIENCE_S
"""Deadline for what an engine does that has to start."""


def _play(page: Page) -> None:
    """Play some of a game of Breakout by synthetic keys."""
    stream = Stream(page)
    page.goto(f"/play?environment={BREAKOUT}&scripted=true")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_text("Press a control to start")).to_be_visible()
    page.keyboard.down("Space")
    stream.until(page, lambda: stream.status.get("frames", 0) >= 24)
    page.keyboard.up("Space")
    page.keyboard.down("ArrowRight")
    stream.until(page, lambda: stream.status["frames"] >= MIN_FRAMES)
    page.keyboard.up("ArrowRight")
    page.get_by_role("button", name="End session").click()
    expect(page.get_by_text("The session has ended: its player ended it")).to_be_visible()


def _create_set(page: Page) -> None:
    """Create a set of the games of scripts, and wait until a worker has verified it."""
    page.goto("/storage")
    page.get_by_role("button", name="Create a start set").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(NAME)
    games = dialog.get_by_label("Games")
    expect(games.locator("optgroup[label='Games that people have played']")).to_have_count(0)
    of_scripts = games.locator("optgroup[label='Games that scripts have played'] option")
    games.select_option(value=of_scripts.filter(has_text="Breakout").get_attribute("value"))
    dialog.get_by_label("Points").fill(str(N_POINTS))
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog).to_have_count(0)
    row = page.get_by_role("row").filter(has_text=f"{NAME} v1")
    expect(row).to_contain_text("ready", timeout=WORK_MS)
    expect(row).to_contain_text("a script")
    assert re.search("person|people|human", row.evaluate("row => row.outerHTML")) is None


def _evaluate(page: Page, run_id: str, n_before: int) -> None:
    """Evaluate the run's latest checkpoint from the set with seed 7, and wait for the score."""
    page.goto(f"/runs/{run_id}?tab=evaluations")
    page.get_by_role("button", name="Evaluate a checkpoint").click()
    dialog = page.get_by_role("dialog")
    protocol = dialog.get_by_label("Protocol")
    offered = protocol.locator("option").filter(has_text=NAME)
    titles = [f"agent starts, {NAME} v1", f"agent starts, greedy, {NAME} v1"]
    expect(offered).to_have_text(titles)
    protocol.select_option(value=PROTOCOL)
    expect(dialog.get_by_label("Episodes")).to_have_value(str(N_POINTS))
    dialog.get_by_label("Seed of the starts").fill("7")
    dialog.get_by_role("button", name="Evaluate").click()
    expect(dialog).to_have_count(0)
    rows = page.get_by_role("region", name="Evaluations").get_by_role("row").filter(has_text=titles[0])
    expect(rows.filter(has_text="done")).to_have_count(n_before + 1, timeout=WORK_MS)


@pytest.mark.long
def test_score_from_a_scripts_game_is_no_persons_and_is_reproduced_bit_for_bit(
    page: Page, script: httpx.Client
) -> None:
    run = start(
        script,
        name="evaluated",
        environment=BREAKOUT,
        stop={"agent_steps": 100},
        config={"n_e": 2, "n_w": 1, "evaluation_episodes": 0},
    )
    _play(page)
    _create_set(page)
    [start_set] = [row for row in script.get("/api/v1/start-sets").json()["items"] if row["name"] == NAME]
    assert (start_set["source"], start_set["n_people"]) == ("scripted", 0)
    assert start_set["protocols"] == [PROTOCOL, f"agent_starts_greedy:{NAME}@1"]
    until_state(script, run["id"], "finished")
    as_people = {"protocol": f"human_starts:{NAME}"}
    refused = script.post(f"/api/v1/runs/{run['id']}/evaluations", json=as_people)
    assert refused.status_code == 422
    assert "was not played by people" in refused.text

    for n_before in range(2):
        _evaluate(page, run["id"], n_before)
    evaluations = script.get(f"/api/v1/runs/{run['id']}/evaluations").json()["items"]
    assert [evaluation["protocol"] for evaluation in evaluations] == [PROTOCOL] * 2
    first, second = (
        {name: evaluation[name] for name in ("seed", "mean_return", "returns", "lengths_frames")}
        for evaluation in evaluations
    )
    assert first == second
    assert first["seed"] == 7
    assert len(first["returns"]) == len(first["lengths_frames"]) == N_POINTS
