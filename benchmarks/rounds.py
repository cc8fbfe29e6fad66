"""Measures the engine benchmark's rows in turn, each in its own process, and kills what it leaves behind."""

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

from benchmarks.rows import Row
from benchmarks.turn import MISSING
from workers.engine_process import kill_tree

START_TIMEOUT_S = 300.0
"""How long a row may take in addition to its measurement."""
PEERS = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
"""The virtual environment that `make peers` creates."""

INSTALL = "`make peers` installs it"

_PR_SET_CHILD_SUBREAPER = 36


class RoundSpread(NamedTuple):
    """Median, minimum and maximum of all rounds."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "RoundSpread":
        """From one value per round."""
        return cls(statistics.median(values), min(values), max(values))


@dataclass
class RoundResults:
    """Results of all rounds."""

    agent_steps_per_s: dict[str, list[float]] = field(default_factory=dict)
    """Row -> its rate in each round."""
    time: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """Row -> in each round, part -> share of the cores' time, if known."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Row -> why it was not measured."""

    def rate(self, row: str) -> RoundSpread:
        """Agent steps per second."""
        return RoundSpread.of(self.agent_steps_per_s[row])

    def share(self, row: str, of: Sequence[str]) -> RoundSpread | None:
        """A row's rate as a multiple of the best other's, round by round; None if either is missing.

        The best is the one with the highest median over the rounds: the fastest of each round would, among
        similar rows, be the luckiest.
        """
        known = [row for row in of if row in self.agent_steps_per_s]
        if row not in self.agent_steps_per_s or not known:
            return None
        best = max(known, key=lambda row: self.rate(row).median)
        mine, best_rates = self.agent_steps_per_s[row], self.agent_steps_per_s[best]
        return RoundSpread.of([a / b for a, b in zip(mine, best_rates, strict=True)])

    def time_of(self, row: str) -> dict[str, float] | None:
        """Median share of each part, if known."""
        rounds = self.time.get(row)
        if not rounds:
            return None
        return {part: statistics.median(parts[part] for parts in rounds) for part in rounds[0]}


def measure(
    rows: Sequence[Row],
    environment: str,
    *,
    rounds: int,
    seconds: float,
    on_progress: Callable[[str], None] = lambda line: None,
) -> RoundResults:
    """Measure every row once per round, in alternating order.

    A row that fails, or that needs a package that is not installed, is left out, with what was measured.

    Args:
        rows: the rows to measure.
        environment: an Atari game.
        rounds: number of measurements of each row.
        seconds: the seconds of each measurement, without the start and a second of warm-up.
        on_progress: called with a line before each measurement.
    """
    results = RoundResults()
    cores = len(os.sched_getaffinity(0))
    with _adopting_orphans():
        for k in range(rounds):
            for row in rows if k % 2 == 0 else reversed(rows):
                if row.id in results.left_out:
                    continue
                on_progress(f"round {k + 1} of {rounds}: {row.title}")
                _turn(results, row, environment, seconds, cores)
    return results


def _turn(results: RoundResults, row: Row, environment: str, seconds: float, cores: int) -> None:
    python = str(PEERS) if row.foreign and PEERS.exists() else sys.executable
    command = [python, "-m", "benchmarks.turn", row.id, environment]
    command += ["--seconds", str(seconds), "--cores", str(cores), "--parent", str(os.getpid())]
    before = {child.pid for child in psutil.Process().children()}
    out, error = b"", f"took longer than {seconds + START_TIMEOUT_S:.0f} s"
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is handled by this process
        ) as process:
            try:
                out, err = process.communicate(timeout=seconds + START_TIMEOUT_S)
                lines = err.decode(errors="replace").strip().splitlines()
                error = lines[-1] if lines else f"exit status {process.returncode}"
            except subprocess.TimeoutExpired:
                pass
            finally:
                if process.poll() is None:
                    kill_tree(process.pid)
    finally:
        _kill_orphans(before)
    if process.returncode == 0:
        report = json.loads(out.splitlines()[-1])
        results.agent_steps_per_s.setdefault(row.id, []).append(report["agent_steps_per_s"])
        if "time" in report:
            results.time.setdefault(row.id, []).append(report["time"])
        return
    missing = process.returncode == MISSING
    results.left_out[row.id] = f"{error}; {INSTALL}" if missing else error
    results.agent_steps_per_s.pop(row.id, None)
    results.time.pop(row.id, None)


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Become the parent of what a turn leaves behind, so that it can be killed."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _kill_orphans(before: set[int]) -> None:
    """Kill every child that is not in `before`, and those it orphans in turn.

    Only turns start processes during a measurement, so new children belong to a turn.
    """
    while orphans := [child for child in psutil.Process().children() if child.pid not in before]:
        for orphan in orphans:
            with suppress(psutil.Error):
                orphan.kill()
                orphan.wait()
