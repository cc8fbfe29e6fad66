"""Pace of as many sessions at once as a host takes, as a table for `docs/measurements/service.md`.

    python -m tests.campaigns.play_pacing.sessions [--seconds 20] [--environment ALE/Breakout-v5]

Starts an installation in an empty home, opens a session more than its host takes, and plays all others by a
script. Prints the interval between two frames as they arrive over the WebSocket, the processor time of each
session's engine, and why the last session waits. For an idle machine only.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

import httpx
import numpy as np
import psutil

from tests.campaigns.play_pacing.__main__ import environments_of, script_of, write
from tests.support.installation import installation
from tests.support.playing import Player, Shown, open_session, playing
from tests.support.waiting import until

SESSIONS = 10
"""`CALLBOARD_PLAY_SESSIONS` by default."""
WARM_UP_S = 3.0
PRESS_S = 0.5
ACTIONS = 4
"""Actions 0 to 3 are pressed in turn: every playable environment has them."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.play_pacing.sessions")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--environment", default="ALE/Breakout-v5")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="sessions-") as name,
        installation(Path(name) / "home") as running,
        ThreadPoolExecutor(SESSIONS) as threads,
    ):
        client = script_of(running)
        until(lambda: given.environment in environments_of(client))
        sessions = [open_session(client, given.environment)["id"] for _ in range(SESSIONS + 1)]
        until(lambda: _states(client).count("running") == SESSIONS)
        waiting = client.get(f"/api/v1/play/{sessions[-1]}").json()
        played = [
            threads.submit(_play, client, session_id, given.seconds) for session_id in sessions[:SESSIONS]
        ]
        started = perf_counter()
        engines = _engines(running.process.pid)
        before = [sum(engine.cpu_times()[:2]) for engine in engines]
        intervals = [game.result() for game in played]
        seconds = perf_counter() - started
        used = [
            100 * (sum(engine.cpu_times()[:2]) - cpu_s) / seconds
            for engine, cpu_s in zip(engines, before, strict=True)
        ]
        write(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.environment}")
        write("\n| sessions | frames/s | interval p50, p95, max (ms) | worst p95 of a session (ms) |")
        write("|--:|--:|--:|--:|")
        every = np.concatenate(intervals)
        worst = max(np.percentile(game, 95) for game in intervals)
        write(f"| {SESSIONS} | {1000 / every.mean():.1f} | {_percentiles(every)} | {worst:.0f} |")
        write(
            f"\nProcessor of an engine: {np.mean(used):.1f} % of a core on average, at most {max(used):.1f} %"
        )
        write(f"Session {SESSIONS + 1} is {waiting['state']}: {waiting['waiting_reason']}")
        for session_id in sessions:
            client.delete(f"/api/v1/play/{session_id}")


def _states(client: httpx.Client) -> list[str]:
    return [session["state"] for session in client.get("/api/v1/play").json()["items"]]


def _play(client: httpx.Client, session_id: str, seconds: float) -> list[float]:
    """Play by a script; return the intervals between frames, in milliseconds."""
    with playing(client, session_id) as player:
        _frames(player, WARM_UP_S)
        return list(1000 * np.diff(_frames(player, seconds)))


def _frames(player: Player, seconds: float) -> list[float]:
    """When frames arrive while actions are pressed one after the other; a game that is over starts anew."""
    arrived: list[float] = []
    ends_at, pressed_at, presses, ended = perf_counter() + seconds, 0.0, 0, 0
    while (now := perf_counter()) < ends_at:
        if now - pressed_at >= PRESS_S:
            pressed_at, presses = now, presses + 1
            player.hold(presses % ACTIONS, presses)
        shown = player.next()
        if isinstance(shown, Shown):
            arrived.append(perf_counter())
            if shown.status.get("over") and shown.status["game"] != ended:
                ended = shown.status["game"]
                player.send(type="new_game")
    return arrived


def _engines(pid: int) -> list[psutil.Process]:
    """The processes that play: children of the worker that run an engine."""
    return [
        process
        for process in psutil.Process(pid).children(recursive=True)
        if "workers.engine" in " ".join(process.cmdline())
    ]


def _percentiles(values: Sequence[float] | np.ndarray) -> str:
    return ", ".join(f"{value:.0f}" for value in (*np.percentile(values, (50, 95)), max(values)))


if __name__ == "__main__":
    main()
