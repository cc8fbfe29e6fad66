"""Time from *Play from here* to the first painted frame, as a table for `docs/measurements/service.md`.

    python -m tests.campaigns.play_pacing.moments [--rounds 3]

Starts an installation in an empty home, stores an episode of Breakout of 27,600 emulator frames for a
feed-forward and for a recurrent agent, has its video rendered, and with it the emulator states, and presses
*Play from here* in Chromium at moments near and far from those states. For an idle machine only.
"""

import argparse
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from playwright.sync_api import Page

from backend.db.engine import make_engine, writing
from backend.platform.artifacts import ArtifactStore
from backend.platform.settings import Settings
from backend.specs.environments.atari import AtariConfig
from tests.campaigns.play_pacing.__main__ import environments_of, script_of, write
from tests.support.chromium import chromium
from tests.support.installation import Installation, installation
from tests.support.rows import episode_row
from tests.support.waiting import PATIENCE_S, until
from workers.engine.envs.atari import AtariEnv
from workers.engine.methods.recording import EpisodeRecorder

BREAKOUT = "ALE/Breakout-v5"
SEED, N = 4, 6_900
AGENTS: dict[str, dict[str, Any]] = {
    "feed-forward": {
        "algorithm": "paac",
        "config": {"network": "nips", "n_e": 2, "n_w": 1, "evaluation_episodes": 0},
    },
    "recurrent": {
        "algorithm": "a3c",
        "config": {"network": "nips", "recurrent": True, "n_actors": 1, "evaluation_episodes": 0},
    },
}
DECISIONS = (20, 2_260, 4_500, 6_750)
"""Soon after a state of the emulator, or the episode's beginning, and about 2,250 frames after one."""

OBSERVE = """
() => {
  window.moment = { clicked: null, painted: null };
  addEventListener('click', () => { moment.clicked = performance.now(); moment.painted = null; }, true);
  const draw = CanvasRenderingContext2D.prototype.drawImage;
  CanvasRenderingContext2D.prototype.drawImage = function (...given) {
    if (moment.painted === null)
      requestAnimationFrame(() => setTimeout(() => { moment.painted ??= performance.now(); }));
    return draw.call(this, ...given);
  };
}
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.play_pacing.moments")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="moments-") as name,
        installation(Path(name) / "home") as running,
        chromium() as browser,
    ):
        client = script_of(running)
        until(lambda: BREAKOUT in environments_of(client))
        replay = Path(name) / "a1-s100.npz"
        _record(replay)
        episodes = {agent: _store(running, client, body, replay) for agent, body in AGENTS.items()}
        page = browser.new_page(base_url=running.url, viewport={"width": 1280, "height": 800})
        page.add_init_script(f"({OBSERVE})()")
        page.goto(running.login_url)
        write(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        write("\n| agent | decision | from the click to the frame, each round (ms) |")
        write("|---|--:|--:|")
        for agent, (run_id, episode_id) in episodes.items():
            for decision in DECISIONS:
                address = f"/runs/{run_id}/episodes/{episode_id}?at={decision}"
                delays = [_delay(page, address) for _ in range(given.rounds)]
                write(f"| {agent} | {decision:,} | {', '.join(f'{delay:.0f}' for delay in delays)} |")


def _record(path: Path) -> None:
    """An episode of random actions, without FIRE, so that it does not end."""
    env = AtariEnv(BREAKOUT, AtariConfig())
    out = np.empty(env.observation_shape, np.uint8)
    env.reset(SEED, out)
    moves = [index for index, name in enumerate(env.action_names) if "FIRE" not in name]
    recorder = EpisodeRecorder()
    for action in np.random.default_rng(0).choice(moves, N).tolist():
        step = env.step(action, out)
        recorder.add(action, step.reward, 0.0, np.zeros(len(env.action_names)), env.lives())
    recorder.save(path, seed=SEED, protocol=None, frames_per_step=4, action_names=env.action_names)


def _store(
    running: Installation, client: httpx.Client, body: dict[str, Any], replay: Path
) -> tuple[str, str]:
    """Train a run for a moment, give it the episode, and have its video rendered; return their ids."""
    request = body | {"environment": BREAKOUT, "stop": {"agent_steps": 200}}
    answer = client.post("/api/v1/runs", json=request)
    assert answer.is_success, answer.text
    run_id = answer.json()["items"][0]["id"]
    until(lambda: client.get(f"/api/v1/runs/{run_id}").json()["state"] == "finished")
    settings = Settings(home=running.home)
    ArtifactStore(settings.artifacts).put(replay, run_id, "replays")
    sha256 = hashlib.sha256(replay.read_bytes()).hexdigest()
    engine = make_engine(settings.database)
    with writing(engine) as session:
        episode = episode_row(
            run_id, replay=replay.name, replay_sha256=sha256, length_steps=N, length_frames=4 * N, seed=SEED
        )
        session.add(episode)
    engine.dispose()
    until(lambda: client.get(f"/api/v1/episodes/{episode.id}/video").status_code == 200, every_s=0.5)
    return run_id, episode.id


def _delay(page: Page, address: str) -> float:
    """Play from the moment that an address shows; return the delay of its first frame, in milliseconds."""
    page.goto(address)
    page.wait_for_function("() => document.querySelector('video[aria-label^=Video]')?.readyState >= 2")
    page.get_by_role("button", name="Play from here").click()
    page.wait_for_function("() => moment.painted !== null", timeout=1000 * PATIENCE_S)
    delay: float = page.evaluate("moment.painted - moment.clicked")
    page.get_by_text("Press a control to go on").wait_for()
    page.get_by_role("button", name="End session").click()
    page.get_by_text("The session has ended").wait_for(timeout=1000 * PATIENCE_S)
    return delay


if __name__ == "__main__":
    main()
