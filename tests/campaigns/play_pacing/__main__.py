"""Pace of played games in a real browser, as a table for `docs/measurements/service.md`.

    python -m tests.campaigns.play_pacing [--seconds 20] [--without-training] [--every-frame]

Starts an installation in an empty home, with a training run beside the games unless it is left out, and plays
each environment by key presses in Chromium. Prints the interval between two drawn frames, and the time from a
key press to the painted frame of the first decision that has read it. Only frames within a game count, as one
that is over shows two a second; the next game starts at once. Actions are read every four frames, as agents'
are, or at every frame. For an idle machine only.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from playwright.sync_api import Page

from backend.specs.environments import ENVIRONMENTS
from tests.support.chromium import chromium
from tests.support.installation import CALLBOARD, Installation, environment, installation
from tests.support.waiting import PATIENCE_S, until

HELD_KEY = {"ALE/Breakout-v5": "Space", "Labyrinth-Small-v0": "ArrowUp", "Racing-Slow-v0": "ArrowUp"}
"""Environment -> a key that is held all the time, so that the game goes on."""
PRESSED_KEYS = ("ArrowLeft", "ArrowRight")
PRESS_MS, BETWEEN_MS = 170, 330
WARM_UP_MS = 2_000
TRAINING = {"algorithm": "paac", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 100_000_000}}

OBSERVE = """
() => {
  const drawn = [], presses = [], painted = [];
  const clear = () => { drawn.length = presses.length = painted.length = 0; };
  const isOver = () => latest.over;
  window.pacing = { drawn, presses, painted, clear, isOver };
  let pressedAt = null, latest = { seq: 0, game: 0, over: false };
  addEventListener('keydown', (event) => { if (!event.repeat) pressedAt = event.timeStamp; }, true);
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) {
    const message = JSON.parse(text);
    if (message.type === 'action' && pressedAt !== null) {
      if (!latest.over) presses.push({ seq: message.seq, at: pressedAt });
      pressedAt = null;
    }
    return send.call(this, text);
  };
  const Socket = WebSocket;
  window.WebSocket = class extends Socket {
    constructor(...given) {
      super(...given);
      this.addEventListener('message', ({ data }) => {
        if (typeof data === 'string') return;
        const length = new DataView(data).getUint16(0, true);
        const status = JSON.parse(new TextDecoder().decode(data.slice(2, 2 + length)));
        if ('seq' in status) latest = status;
      });
    }
  };
  const Original = Blob;
  window.Blob = class extends Original {
    constructor(...given) { super(...given); this.status = latest; }
  };
  const decode = window.createImageBitmap;
  window.createImageBitmap = async (blob) => {
    const bitmap = await decode(blob);
    bitmap.status = blob.status;
    return bitmap;
  };
  const draw = CanvasRenderingContext2D.prototype.drawImage;
  CanvasRenderingContext2D.prototype.drawImage = function (image, ...given) {
    const { seq, game, over } = image.status;
    drawn.push({ at: performance.now(), game, over });
    requestAnimationFrame(() => setTimeout(() => painted.push({ seq, at: performance.now() })));
    return draw.call(this, image, ...given);
  };
}
"""
"""Records when frames are drawn, keys pressed, and the frames that answer them painted."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.play_pacing")
    parser.add_argument("--seconds", type=int, default=20, help="of each game")
    parser.add_argument("--without-training", action="store_true", help="start no run beside the games")
    parser.add_argument("--every-frame", action="store_true", help="have actions read at every frame")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="pacing-") as name,
        installation(Path(name) / "home", engine_niceness=10) as running,
        chromium() as browser,
    ):
        client = script_of(running)
        until(lambda: set(HELD_KEY) <= environments_of(client))
        if not given.without_training:
            _start_training(client)
        page = browser.new_page(base_url=running.url, viewport={"width": 1280, "height": 800})
        page.add_init_script(f"({OBSERVE})()")
        page.goto(running.login_url)
        write(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        write(
            "\n| environment | frames/s | interval p50, p95, max (ms) | key to frame p50, p95, max (ms) "
            "| keys |"
        )
        write("|---|--:|--:|--:|--:|")
        for environment_id, held_key in HELD_KEY.items():
            intervals, delays = _play(
                page, environment_id, held_key, given.seconds, every_frame=given.every_frame
            )
            write(
                f"| {ENVIRONMENTS[environment_id].title} | {1000 / np.mean(intervals):.1f} | "
                f"{_percentiles(intervals)} | {_percentiles(delays)} | {len(delays)} |"
            )


def write(line: str) -> None:
    """Print a line and flush it."""
    print(line, flush=True)  # noqa: T201


def environments_of(client: httpx.Client) -> set[str]:
    """The environments of all hosts."""
    hosts = client.get("/api/v1/hosts").json()["items"]
    return {environment for host in hosts for environment in host["environments"]}


def _start_training(client: httpx.Client) -> None:
    [run] = client.post("/api/v1/runs", json=TRAINING).json()["items"]

    def has_learnt() -> bool:
        return bool(client.get(f"/api/v1/runs/{run['id']}").json()["agent_steps"])

    until(has_learnt)


def script_of(running: Installation) -> httpx.Client:
    """A client with a token of its own: the browser uses the login link."""
    command = [*CALLBOARD, "token", "create", "pacing"]
    token = subprocess.run(
        command, env=environment(running.home), check=True, capture_output=True, text=True
    ).stdout.strip()
    return httpx.Client(base_url=running.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def _play(
    page: Page, environment_id: str, held_key: str, seconds: int, *, every_frame: bool
) -> tuple[list[float], list[float]]:
    """Play a game; return the intervals between frames and the delays of key presses, in milliseconds."""
    page.goto(f"/play?environment={environment_id}&scripted=true")
    page.get_by_label("Read actions at every frame").set_checked(every_frame)
    page.get_by_role("button", name="Play", exact=True).click()
    page.get_by_text("Press a control to start").wait_for(timeout=1000 * PATIENCE_S)
    page.keyboard.down(held_key)
    page.wait_for_timeout(WARM_UP_MS)
    page.evaluate("pacing.clear()")
    for press in range(1000 * seconds // (PRESS_MS + BETWEEN_MS)):
        if page.evaluate("pacing.isOver()"):
            page.keyboard.press("n")
        key = PRESSED_KEYS[press % 2]
        page.keyboard.down(key)
        page.wait_for_timeout(PRESS_MS)
        page.keyboard.up(key)
        page.wait_for_timeout(BETWEEN_MS)
    measured: dict[str, Any] = page.evaluate(
        "({ drawn: pacing.drawn, presses: pacing.presses, painted: pacing.painted })"
    )
    page.keyboard.up(held_key)
    page.get_by_role("button", name="End session").click()
    page.get_by_text("The session has ended").wait_for()
    painted = measured["painted"]
    delays = [
        next((frame["at"] - press["at"] for frame in painted if frame["seq"] >= press["seq"]), None)
        for press in measured["presses"]
    ]
    intervals = [
        after["at"] - before["at"]
        for before, after in pairwise(measured["drawn"])
        if before["game"] == after["game"] and not after["over"]
    ]
    return intervals, [delay for delay in delays if delay is not None]


def _percentiles(values: Sequence[float]) -> str:
    if not values:
        return "none measured"
    return ", ".join(f"{value:.0f}" for value in (*np.percentile(values, (50, 95)), max(values)))


if __name__ == "__main__":
    main()
