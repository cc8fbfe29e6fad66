"""`python -m benchmarks engine`: its statistics, its clean-up, and a short run of it."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from typer.testing import CliRunner

from benchmarks import engine as bench_engine
from benchmarks import methods
from benchmarks import rounds as bench_rounds
from benchmarks.__main__ import app
from benchmarks.rounds import INSTALL, RoundResults, RoundSpread
from benchmarks.rows import Row, RowProgress, goals, rows
from benchmarks.turn import measure
from tests.support.algorithms import LEARNING
from tests.support.waiting import PATIENCE_S, until
from tests.workers.support import running

pytestmark = pytest.mark.long

ROW = Row("fake", "a fake row", "methods", "none:none")
SLEEP = "sh -c 'echo $$ >>pids; exec sleep 10000000'"
"""Sleeps, and leaves its PID for `sleepers`."""


def sleepers(folder: Path) -> list[psutil.Process]:
    pids = [int(pid) for path in folder.glob("pids") for pid in path.read_text().split()]
    return [process for pid in pids if (process := running(pid)) and "sleep" in process.cmdline()]


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes turns run a shell script in `tmp_path` instead of Python."""

    def replace_python(script: str) -> None:
        file = tmp_path / "python"
        file.write_text(f"#!/bin/sh\ncd '{tmp_path}'\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(file))

    return replace_python


def test_share_divides_rate_by_best_other_rate_of_same_round() -> None:
    results = RoundResults(
        {"ours": [300.0, 240.0, 330.0], "slow": [500.0, 100.0, 100.0], "fast": [200.0, 120.0, 220.0]}
    )
    assert results.rate("ours") == RoundSpread(300.0, 240.0, 330.0)
    # "fast" has the higher median. The ratio of medians would be 1.5 too, that to each round's best 0.6.
    assert results.share("ours", ["slow", "fast"]) == RoundSpread(1.5, 1.5, 2.0)
    assert results.share("ours", ["slow", "not measured"]) == RoundSpread(2.4, 0.6, 3.3)
    assert results.share("ours", ["not measured"]) is None
    assert results.share("not measured", ["fast"]) is None


def test_time_of_returns_median_of_each_part() -> None:
    results = RoundResults(time={"ours": [{"environment": e, "rest": 1 - e} for e in (0.5, 0.75, 0.25)]})
    assert results.time_of("ours") == {"environment": 0.5, "rest": 0.5}
    assert results.time_of("theirs") is None


def test_measure_counts_after_warm_up_and_returns_share_of_all_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(100))
    # Not of the whole process: other threads look at it too.
    monkeypatch.setattr("benchmarks.turn.time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    # Starts at 0, warms up until 2, measures at 3 and 4, and ends at 5.
    turns = (RowProgress(steps, {"environment": 2.0, "choosing": 1.0}) for steps in (10_000, 20, 25))
    measured = measure(turns, seconds=3, cores=4)
    assert measured["agent_steps_per_s"] == pytest.approx((20 + 25) / 3)
    assert measured["time"] == pytest.approx(
        {"environment": 4 / 12, "choosing": 2 / 12, "learning": 0.0, "rest": 6 / 12}
    )


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_every_goal_names_existing_rows(cores: int) -> None:
    known = [row.id for row in rows(cores)]
    assert len(known) == len(set(known))
    named = {name for goal in goals(cores) for name in (goal.row, *goal.of)}
    assert named <= set(known)
    assert {row.id for row in bench_engine.chosen_rows(rows(cores), goals(cores), ["goals"])} == named


def test_every_algorithm_is_measured() -> None:
    measured = {row.arguments["algorithm"] for row in rows(2) if row.group == "methods"}
    assert measured == set(LEARNING)


def test_bench_engine_names_unknown_row_or_environment() -> None:
    done = CliRunner().invoke(app, ["engine", "--only", "paac"])
    assert done.exit_code == 2
    assert '--only: no row or group "paac"; choose from ' in done.stderr
    done = CliRunner().invoke(app, ["engine", "CartPole-v1"])
    assert done.exit_code == 2
    assert 'environment: "CartPole-v1" is not an Atari game' in done.stderr


@pytest.mark.service
def test_measure_kills_processes_left_by_a_turn(python: Callable[[str], None], tmp_path: Path) -> None:
    python(
        f"setsid {SLEEP} >/dev/null 2>&1 &\nuntil [ -s pids ]; do :; done\n"
        + "echo '{\"agent_steps_per_s\": 5.0}'"
    )
    mine = {child.pid for child in psutil.Process().children()}
    results = bench_rounds.measure([ROW], "ALE/Pong-v5", rounds=2, seconds=1)
    assert results.agent_steps_per_s == {"fake": [5.0, 5.0]}
    assert sleepers(tmp_path) == []
    assert {child.pid for child in psutil.Process().children()} <= mine


@pytest.mark.service
def test_measure_kills_turn_that_exceeds_its_time(
    python: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_rounds, "START_TIMEOUT_S", 0.2)
    python(SLEEP)
    results = bench_rounds.measure([ROW], "ALE/Pong-v5", rounds=1, seconds=0.2)
    assert results.left_out == {"fake": "took longer than 0 s"}
    assert sleepers(tmp_path) == []


@pytest.mark.service
def test_measure_omits_failing_row_with_reason(python: Callable[[str], None]) -> None:
    python("echo first >&2; echo RuntimeError: no luck >&2; exit 1")
    results = bench_rounds.measure([ROW], "ALE/Pong-v5", rounds=3, seconds=1)
    assert results.left_out == {"fake": "RuntimeError: no luck"}
    assert results.agent_steps_per_s == {}
    python("echo envpool is not installed >&2; exit 3")
    results = bench_rounds.measure([ROW], "ALE/Pong-v5", rounds=1, seconds=1)
    assert results.left_out == {"fake": f"envpool is not installed; {INSTALL}"}


def turns(pid: int, row: str, least: int) -> list[psutil.Process]:
    """The processes of a row below this one, once there are so many. Other tests may measure the row, too."""
    started = []
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                if f"benchmarks.turn {row} " in " ".join(process.cmdline()):
                    started.append(process)
    return started if len(started) >= least else []


def test_interrupt_ends_bench_and_its_processes() -> None:
    row = "emulators-scalar"
    command = [sys.executable, "-m", "benchmarks", "engine", "--only", row, "--seconds", "600"]
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # The parent of the tests may ignore SIGINT, as a shell does for background jobs.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as bench:
        started = until(lambda: turns(bench.pid, row, 2))  # the turn and its actors
        bench.send_signal(signal.SIGINT)
        assert bench.wait(timeout=PATIENCE_S) == 130
    assert psutil.wait_procs(started, timeout=PATIENCE_S)[1] == []


@pytest.mark.timeout(3_600)
def test_bench_engine_measures_every_kind_of_row_and_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench_rounds, "START_TIMEOUT_S", 1_800.0)  # of a slow machine
    ids = ["emulators-vector-16", "emulators-scalar", "paac-nips", "a3c-nips", "ga3c-nips", "dqn-nips"]
    ids += [
        "plain-a2c-nips-32",
        "plain-a3c",
        "envpool-a2c-nips",
        "sb3-a2c",
        "sb3-a2c-subprocesses",
    ]  # sb3-dqn learns 1,800 steps before it is measured: minutes of a slow machine
    before = {child.pid for child in psutil.Process().children()}
    only = [word for row in ids for word in ("--only", row)]
    options = ["--rounds", "1", "--seconds", "2", "--json", *only]
    done = CliRunner().invoke(app, ["engine", *options])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert {child.pid for child in psutil.Process().children()} <= before
    by_row = {row["row"]: row for row in document["rows"]}
    missing = {row for row, why in document["left_out"].items() if INSTALL in why}
    assert set(by_row) == set(ids) - missing
    assert all(row["agent_steps_per_s"]["median"] > 0 for row in by_row.values())
    ceiling = max(by_row[row]["rounds"][0] for row in ids[:2])
    assert by_row["paac-nips"]["of_ceiling"]["median"] == pytest.approx(
        by_row["paac-nips"]["rounds"][0] / ceiling
    )
    for row in ("paac-nips", "a3c-nips", "ga3c-nips", "dqn-nips"):
        spent = by_row[row]["time"]
        assert all(spent[part] > 0 for part in ("environment", "choosing", "learning")), row
        assert sum(spent.values()) <= 1.2, row
    beside = {goal["row"]: goal for goal in document["goals"]}
    assert {"paac-nips", "a3c-nips", "ga3c-nips"} <= set(beside)


@pytest.mark.parametrize("cores", [1, 2])
def test_row_arguments_are_valid_run_settings(cores: int) -> None:
    for row in rows(cores):
        if row.function == "methods:trained":
            given = dict(row.arguments)
            algorithm, preset = given.pop("algorithm"), given.pop("preset", None)
            spec = methods.spec_of("ALE/Breakout-v5", algorithm, preset, given)
            assert spec.device == "cpu"
