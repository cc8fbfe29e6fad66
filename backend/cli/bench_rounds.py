"""Rows of the engine's bench in turns: each turn a process of its own, of which nothing is left behind."""

import ctypes
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import psutil

from workers.engine.bench.rows import Row
from workers.engine.bench.turn import MISSING
from workers.engine_process import kill_tree

START_TIMEOUT_S = 300.0
"""How long a row may take beyond what it is measured for."""
PEERS = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"
"""What `make peers` sets up."""

INSTALL = "`make peers` installs it"

_PR_SET_CHILD_SUBREAPER = 36


class Spread(NamedTuple):
    """Median of all rounds, the least and the most."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of one value a round."""
        return cls(statistics.median(values), min(values), max(values))


@dataclass
class Found:
    """What the rounds have seen."""

    agent_steps_per_s: dict[str, list[float]] = field(default_factory=dict)
    """Row -> its rate in each round."""
    time: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """Row -> part -> share of the cores' time, where it is known, in each round."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Row -> why it has no rate."""

    def rate(self, row: str) -> Spread:
        """Agent steps a second."""
        return Spread.of(self.agent_steps_per_s[row])

    def share(self, row: str, of: Sequence[str]) -> Spread | None:
        """A row's rate as a multiple of the best of others', round by round; none where these are missing.

        The best is the one with the highest median: what was fastest in each round by itself would, of many
        that are alike, be the luckiest.
        """
        known = [one for one in of if one in self.agent_steps_per_s]
        if row not in self.agent_steps_per_s or not known:
            return None
        best = max(known, key=lambda one: self.rate(one).median)
        mine, its = self.agent_steps_per_s[row], self.agent_steps_per_s[best]
        return Spread.of([a / b for a, b in zip(mine, its, strict=True)])

    def time_of(self, row: str) -> dict[str, float] | None:
        """Median share of each part, where it is known."""
        rounds = self.time.get(row)
        if not rounds:
            return None
        return {part: statistics.median(one[part] for one in rounds) for part in rounds[0]}


def measure(
    asked: Sequence[Row],
    environment: str,
    *,
    rounds: int,
    seconds: float,
    say: Callable[[str], None] = lambda line: None,
) -> Found:
    """Measure every row once a round, each other round in the opposite order.

    A row that fails is left out from then on; so is what needs a package that is installed nowhere.

    Args:
        asked: the rows.
        environment: an Atari game.
        rounds: how often.
        seconds: for each row in each round, beside its start and a second of warming up.
        say: told of each turn.
    """
    found = Found()
    cores = len(os.sched_getaffinity(0))
    with _adopting_orphans():
        for k in range(rounds):
            for row in asked if k % 2 == 0 else reversed(asked):
                if row.id in found.left_out:
                    continue
                say(f"round {k + 1} of {rounds}: {row.title}")
                _turn(found, row, environment, seconds, cores)
    return found


def _turn(found: Found, row: Row, environment: str, seconds: float, cores: int) -> None:
    python = str(PEERS) if row.foreign and PEERS.exists() else sys.executable
    command = [python, "-m", "workers.engine.bench.turn", row.id, environment]
    command += ["--seconds", str(seconds), "--cores", str(cores), "--parent", str(os.getpid())]
    before = {child.pid for child in psutil.Process().children()}
    out, trouble = b"", f"took longer than {seconds + START_TIMEOUT_S:.0f} s"
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours to answer
        ) as process:
            try:
                out, err = process.communicate(timeout=seconds + START_TIMEOUT_S)
                lines = err.decode(errors="replace").strip().splitlines()
                trouble = lines[-1] if lines else f"exit status {process.returncode}"
            except subprocess.TimeoutExpired:
                pass
            finally:
                if process.poll() is None:
                    kill_tree(process.pid)
    finally:
        _end_orphans(before)
    if process.returncode == 0:
        told = json.loads(out.splitlines()[-1])
        found.agent_steps_per_s.setdefault(row.id, []).append(told["agent_steps_per_s"])
        if "time" in told:
            found.time.setdefault(row.id, []).append(told["time"])
        return
    missing = process.returncode == MISSING
    found.left_out[row.id] = f"{trouble}; {INSTALL}" if missing else trouble
    found.agent_steps_per_s.pop(row.id, None)
    found.time.pop(row.id, None)


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Become the parent of what a turn leaves behind, so that it can be found."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _end_orphans(before: set[int]) -> None:
    """Kill every child that this process did not have then, whoever began it, and those it leaves to us.

    Only a turn begins processes while it is measured: what is new is its, or what it left behind.
    """
    while orphans := [child for child in psutil.Process().children() if child.pid not in before]:
        for orphan in orphans:
            with suppress(psutil.Error):
                orphan.kill()
                orphan.wait()
