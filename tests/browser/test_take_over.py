"""Taking over from a replay, handing the controls to the agent and back, and the recording of who acted."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import serious_violations
from tests.browser.stage import start, until_state
from tests.browser.test_play import Stream
from tests.support.installation import Installation

pytestmark = [pytest.mark.browser, pytest.mark.long]

DECISION = 20


@pytest.fixture(scope="module")
def run(installed: Installation) -> dict[str, Any]:
    """A run that has ended, with a checkpoint and an episode."""
    run = start(
        installed.client,
        name="player",
        environment="ALE/Breakout-v5",
        stop={"agent_steps": 1_000},
        config={"n_e": 2, "n_w": 1, "evaluation_episodes": 0},
    )
    return until_state(installed.client, run["id"], "finished")


def test_agent_of_a_runs_checkpoint_plays_in_a_session_that_its_page_leads_to(
    page: Page, script: httpx.Client, run: dict[str, Any]
) -> None:
    stream = Stream(page)
    page.goto(f"/runs/{run['id']}?tab=checkpoints")
    page.get_by_role("link", name="Play with this agent").click()
    expect(page.get_by_role("combobox", name="Environment")).to_have_value("ALE/Breakout-v5")
    agent = page.get_by_role("combobox", name="Agent that can act in the session")
    expect(agent).to_have_value(run["id"])
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_text("Press a control to start, or T to hand over to the agent.")).to_be_visible()
    page.keyboard.press("t")
    stream.until(page, lambda: stream.status.get("frames", 0) > 40)
    assert stream.status["acting"] == "agent"
    session = re.sub(r".*/play/", "", page.url)
    page.get_by_role("button", name="End session").click()
    expect(page.get_by_text("The session has ended: its player ended it")).to_be_visible()
    recordings = script.get("/api/v1/recordings", params={"protocol": "joint"}).json()["items"]
    [recording] = [recording for recording in recordings if recording["session_id"] == session]
    trace = script.get(f"/api/v1/recordings/{recording['id']}/trace").json()
    assert trace["turns"] == [[1, recording["length_steps"]]]
    assert trace["actors"][1]["run_id"] == run["id"]


def test_take_over_from_a_replay_and_back_is_recorded_with_who_acted(
    page: Page, script: httpx.Client, run: dict[str, Any]
) -> None:
    episode = script.get(f"/api/v1/runs/{run['id']}/episodes").json()["items"][0]
    stream = Stream(page)
    page.goto(f"/runs/{run['id']}/episodes/{episode['id']}?at={DECISION}")
    page.get_by_role("button", name="Play from here").click()
    expect(page.get_by_text("Press a control to go on, or T to hand over to the agent.")).to_be_visible()
    expect(page.get_by_role("link", name=f"decision {DECISION + 1} of an episode")).to_be_visible()
    assert serious_violations(page) == {}
    session = re.sub(r".*/play/", "", page.url)
    begun = stream.status["frames"]
    assert begun == 4 * DECISION

    page.keyboard.press("t")
    expect(page.get_by_role("button", name="Take over")).to_be_visible()
    stream.until(page, lambda: stream.status["frames"] > begun + 40)
    assert stream.status["acting"] == "agent"
    page.keyboard.press("p")
    expect(page.get_by_text("Paused. Press P to let the agent go on, or T to take over.")).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press("t")
    expect(page.get_by_role("button", name="Hand over to the agent")).to_be_visible()
    taken = stream.status["frames"]
    page.keyboard.down("ArrowLeft")
    stream.until(page, lambda: stream.status["frames"] > taken + 40)
    page.keyboard.up("ArrowLeft")
    page.get_by_role("button", name="End session").click()
    expect(page.get_by_text("The session has ended: its player ended it")).to_be_visible()

    recordings = script.get("/api/v1/recordings", params={"protocol": "joint"}).json()["items"]
    [recording] = [recording for recording in recordings if recording["session_id"] == session]
    trace = script.get(f"/api/v1/recordings/{recording['id']}/trace").json()
    before = script.get(f"/api/v1/episodes/{episode['id']}/trace").json()
    assert trace["seed"] == before["seed"]
    assert trace["actions"][:DECISION] == before["actions"][:DECISION]
    assert [actor for actor, _ in trace["turns"]] == [1, 2, 0]
    assert trace["turns"][0] == [1, DECISION]
    assert [actor["kind"] for actor in trace["actors"]] == ["person", "agent", "agent"]

    page.get_by_role("link", name="All games").click()
    row = page.get_by_role("row").filter(has_text="joint").first
    row.get_by_role("link", name="Replay").click()
    legend = page.get_by_role("list", name="Who acted")
    expect(legend.get_by_role("listitem")).to_have_count(3)
    position = page.get_by_role("slider", name="Position in the episode")
    position.press("Home")
    expect(legend.get_by_role("listitem").filter(has_text="(acts at this step)")).to_contain_text("player")
    expect(page.get_by_label(re.compile("^Video of the game of "))).to_be_visible()
    position.press("End")
    expect(legend.get_by_role("listitem").filter(has_text="(acts at this step)")).not_to_contain_text(
        "player"
    )
    assert serious_violations(page) == {}
