"""Playing in the browser: keys to the emulator on the worker, frames back, and the recording of the game."""

import json
import re
from collections.abc import Callable
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from playwright.sync_api import Page, WebSocket, expect

from backend.specs.environments.atari import AtariConfig
from tests.browser.axe import serious_violations
from tests.support.waiting import Patience, until
from workers.engine.envs.atari import AtariEnv

pytestmark = pytest.mark.browser

BREAKOUT = "ALE/Breakout-v5"
JPEG = [
    cv2.IMWRITE_JPEG_QUALITY,
    92,
    cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
    cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
]


class Stream:
    """The messages that a page has received."""

    def __init__(self, page: Page) -> None:
        self.status: dict[str, Any] = {}
        self.jpeg = b""
        page.on("websocket", self._listen)

    def until(self, page: Page, is_true: Callable[[], bool]) -> None:
        """Wait for a message; the page's events arrive only while Playwright runs."""
        patience = Patience(detail=lambda: f"the last status is {self.status}")
        while patience.lasts() and not is_true():
            page.wait_for_timeout(20)
        assert is_true()

    def _listen(self, socket: WebSocket) -> None:
        if "/play/" in socket.url:
            socket.on("framereceived", self._keep)

    def _keep(self, message: str | bytes) -> None:
        if isinstance(message, str):
            return
        length = int.from_bytes(message[:2], "little")
        status = json.loads(message[2 : 2 + length])
        if "ended" not in status:
            self.status, self.jpeg = status, message[2 + length :]


def _await(page: Page, stream: Stream, frames: int) -> None:
    stream.until(page, lambda: stream.status.get("frames", 0) >= frames)


def _simulated_again(seed: int, actions: list[int], config: dict[str, object]) -> tuple[bytes, bytes]:
    """The last screen as the worker encodes it, and the console's memory then."""
    env = AtariEnv(BREAKOUT, AtariConfig.model_validate(config))
    out = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(seed, out)
    for action in actions:
        env.step(action, out)
    screen = cv2.cvtColor(env.ale.getScreenRGB(), cv2.COLOR_RGB2BGR)
    return cv2.imencode(".jpg", screen, JPEG)[1].tobytes(), env.ale.getRAM().tobytes()


def test_breakout_played_by_keys_is_recorded_and_simulated_again_to_the_same_screen(
    page: Page, script: httpx.Client
) -> None:
    stream = Stream(page)
    page.goto(f"/play?environment={BREAKOUT}&scripted=true")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_text("Press a control to start")).to_be_visible()
    game = page.get_by_test_id("game")
    assert game.evaluate("game => game.clientHeight <= game.parentElement.clientHeight"), "all of it is shown"
    session = re.sub(r".*/play/", "", page.url)
    page.keyboard.down("Space")
    _await(page, stream, 24)
    page.keyboard.up("Space")
    for key, frames in (("ArrowRight", 90), ("ArrowLeft", 150), ("d", 180)):
        page.keyboard.down(key)
        control = "Left" if key == "ArrowLeft" else "Right"
        held = page.get_by_role("button", name=re.compile(f"^{control}, "))
        expect(held).to_have_attribute("aria-pressed", "true")
        _await(page, stream, frames)
        page.keyboard.up(key)
    page.keyboard.press("p")
    expect(page.get_by_text("Paused. Press a control to go on.")).to_be_visible()
    n_frames, jpeg = stream.status["frames"], stream.jpeg
    page.get_by_role("button", name="End session").click()
    expect(page.get_by_text("The session has ended: its player ended it")).to_be_visible()

    recordings = script.get("/api/v1/recordings", params={"environment": BREAKOUT}).json()["items"]
    [recording] = [recording for recording in recordings if recording["session_id"] == session]
    assert recording["protocol"] == "scripted"
    assert recording["length_frames"] == n_frames
    trace = script.get(f"/api/v1/recordings/{recording['id']}/trace").json()
    pressed = {trace["action_names"][action] for _, _, action in trace["inputs"] if action >= 0}
    assert pressed == {"FIRE", "LEFT", "RIGHT"}
    played = (trace["seed"], trace["actions"], recording["environment_config"])
    assert _simulated_again(*played) == _simulated_again(*played)
    assert _simulated_again(*played)[0] == jpeg

    page.get_by_role("link", name="All games").click()
    row = page.get_by_role("row").filter(has_text=BREAKOUT).first
    expect(row).to_contain_text("stopped before the end")
    row.get_by_role("link", name="Replay").click()
    expect(page.get_by_role("heading", name="Game of Breakout")).to_be_visible()
    expect(page.get_by_label(re.compile("^Video of the game of "))).to_be_visible()
    position = page.get_by_role("slider", name="Position in the episode")
    expect(position).to_have_attribute("aria-valuemax", str(len(trace["actions"]) - 1))
    position.press("End")
    expect(
        page.get_by_role("list", name="Action").get_by_role("listitem").filter(has_text="(selected)")
    ).to_be_visible()
    assert serious_violations(page) == {}
    page.get_by_role("link", name="All games").click()
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    until(lambda: script.get(f"/api/v1/recordings/{recording['id']}").status_code == 404)


@pytest.mark.long
def test_space_fires_after_a_button_was_clicked_and_presses_one_that_the_keyboard_has_focused(
    page: Page,
) -> None:
    stream = Stream(page)
    page.goto(f"/play?environment={BREAKOUT}&scripted=true")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_text("Press a control to start")).to_be_visible()
    page.get_by_role("button", name="New game").click()
    stream.until(page, lambda: stream.status.get("game") == 2)
    page.keyboard.down("Space")
    stream.until(page, lambda: stream.status.get("action") == 1)
    page.keyboard.up("Space")
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("Paused. Press a control to go on.")).to_be_visible()
    page.get_by_role("button", name="End session").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("The session has ended")).to_be_visible()


@pytest.mark.long
def test_pages_of_play_are_accessible_and_the_controls_work_by_touch(
    page: Page, script: httpx.Client
) -> None:
    stream = Stream(page)
    page.goto("/play?environment=Catch-v0&scripted=true")
    expect(page.get_by_role("heading", name="Recorded games")).to_be_visible()
    assert serious_violations(page) == {}
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_text("Press a control to start")).to_be_visible()
    assert serious_violations(page) == {}
    page.set_viewport_size({"width": 390, "height": 844})
    left = page.get_by_role("button", name=re.compile("^Left, "))
    left.scroll_into_view_if_needed()
    box = left.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    stream.until(page, lambda: stream.status.get("action") == 0)
    page.mouse.up()
    expect(page.get_by_text("The game is over. Press New game, or N.")).to_be_visible()
    page.get_by_role("button", name="End session").click()
    expect(page.get_by_text("The session has ended")).to_be_visible()


@pytest.mark.long
def test_scores_and_the_form_of_a_new_run_lead_to_play_with_their_environment(page: Page) -> None:
    for address in ("/scores?q=ALE/Breakout-v5&family=atari", f"/new?environment={BREAKOUT}"):
        page.goto(address)
        page.get_by_role("link", name="Play Breakout yourself").click()
        expect(page.get_by_role("combobox", name="Environment")).to_have_value(BREAKOUT)
