"""`callboard bench engine`: what it makes of what it measured, what it leaves behind, and a moment of it."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from backend.cli import bench_engine, bench_rounds
from backend.cli.bench_rounds import INSTALL, Found, Spread
from backend.cli.main import app
from tests.workers.support import processes_with, until
from workers.engine.bench import methods
from workers.engine.bench.made import Made
from workers.engine.bench.rows import Row, goals, rows
from workers.engine.bench.turn import measure

ROW = Row("fake", "a fake row", "methods", "none:none")
SLEEP = "sleep 98765"


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has turns run this shell script."""

    def become(script: str) -> None:
        file = tmp_path / "python"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(file))

    return become


def test_a_ratio_is_of_one_rounds_rates_with_the_best_of_the_others() -> None:
    found = Found(
        {"ours": [300.0, 240.0, 330.0], "slow": [500.0, 100.0, 100.0], "fast": [200.0, 120.0, 220.0]}
    )
    assert found.rate("ours") == Spread(300.0, 240.0, 330.0)
    # fast has the higher median; of the rates' own medians it would be 1.5 alike, of each round's best 0.6.
    assert found.share("ours", ["slow", "fast"]) == Spread(1.5, 1.5, 2.0)
    assert found.share("ours", ["slow", "not measured"]) == Spread(2.4, 0.6, 3.3)
    assert found.share("ours", ["not measured"]) is None
    assert found.share("not measured", ["fast"]) is None


def test_time_is_the_median_of_each_part() -> None:
    found = Found(time={"ours": [{"environment": e, "rest": 1 - e} for e in (0.5, 0.75, 0.25)]})
    assert found.time_of("ours") == {"environment": 0.5, "rest": 0.5}
    assert found.time_of("theirs") is None


def test_a_turn_counts_after_its_warm_up_and_tells_the_share_of_all_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    # Began at 0; warm until 1 has passed, then from 2 on: at 3 and 4 it goes on, at 5 it ends.
    turns = (Made(steps, {"environment": 2.0, "choosing": 1.0}) for steps in (10_000, 20, 25))
    told = measure(turns, seconds=3, cores=4)
    assert told["agent_steps_per_s"] == pytest.approx((20 + 25) / 3)
    assert told["time"] == pytest.approx(
        {"environment": 4 / 12, "choosing": 2 / 12, "learning": 0.0, "rest": 6 / 12}
    )


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_every_goal_stands_on_rows_that_there_are(cores: int) -> None:
    known = [row.id for row in rows(cores)]
    assert len(known) == len(set(known))
    named = {name for goal in goals(cores) for name in (goal.row, *goal.of)}
    assert named <= set(known)
    assert {row.id for row in bench_engine._asked(rows(cores), goals(cores), ["goals"])} == named


def test_a_row_or_a_game_that_is_not_there_is_named() -> None:
    done = CliRunner().invoke(app, ["bench", "engine", "--only", "paac"])
    assert done.exit_code == 2
    assert "--only: no row or group 'paac'; there are " in done.stderr
    done = CliRunner().invoke(app, ["bench", "engine", "CartPole-v1"])
    assert done.exit_code == 2
    assert "environment: 'CartPole-v1' is no Atari game" in done.stderr


def test_what_a_turn_leaves_behind_is_ended(python: Callable[[str], None]) -> None:
    python(f"setsid {SLEEP} >/dev/null 2>&1 &\n" + "echo '{\"agent_steps_per_s\": 5.0}'")
    mine = {child.pid for child in psutil.Process().children()}
    found = bench_rounds.measure([ROW], "ALE/Pong-v5", rounds=2, seconds=1)
    assert found.agent_steps_per_s == {"fake": [5.0, 5.0]}
    assert processes_with(SLEEP) == []
    assert {child.pid for child in psutil.Process().children()} == mine


def test_a_turn_that_does_not_end_is_ended(
    python: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_rounds, "START_TIMEOUT_S", 0.2)
    python(SLEEP)
    found = bench_rounds.measure([ROW], "ALE/Pong-v5", rounds=1, seconds=0.2)
    assert found.left_out == {"fake": "took longer than 0 s"}
    assert processes_with(SLEEP) == []


def test_a_row_that_fails_is_left_out_with_its_reason(python: Callable[[str], None]) -> None:
    python("echo first >&2; echo RuntimeError: no luck >&2; exit 1")
    found = bench_rounds.measure([ROW], "ALE/Pong-v5", rounds=3, seconds=1)
    assert found.left_out == {"fake": "RuntimeError: no luck"}
    assert found.agent_steps_per_s == {}
    python("echo envpool is not installed >&2; exit 3")
    found = bench_rounds.measure([ROW], "ALE/Pong-v5", rounds=1, seconds=1)
    assert found.left_out == {"fake": f"envpool is not installed; {INSTALL}"}


@pytest.mark.long
def test_an_interrupt_ends_it_and_all_that_it_started() -> None:
    row = "emulators-scalar"
    command = [sys.executable, "-m", "backend.cli.main", "bench", "engine", "--only", row, "--seconds", "600"]
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Whatever started these tests may have them ignore it, as a shell does in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as bench:
        turn = f"bench.turn {row} "
        until(lambda: len(processes_with(turn)) > 1)  # the turn and its players
        bench.send_signal(signal.SIGINT)
        assert bench.wait(30) == 130
    assert processes_with(turn) == []


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_measures_every_kind_of_row_and_leaves_nothing_behind() -> None:
    ids = ["emulators-vector-16", "emulators-scalar", "paac-nips", "a3c-nips", "ga3c-nips", "dqn-nips"]
    ids += [
        "plain-a2c-nips-32",
        "plain-a3c",
        "envpool-a2c-nips",
        "sb3-a2c",
        "sb3-a2c-subprocesses",
        "sb3-dqn",
    ]
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    only = [word for row in ids for word in ("--only", row)]
    options = ["--rounds", "1", "--seconds", "0.5", "--json", *only]
    done = CliRunner().invoke(app, ["bench", "engine", *options])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert {child.pid for child in psutil.Process().children(recursive=True)} == before
    found = {row["row"]: row for row in told["rows"]}
    missing = {row for row, why in told["left_out"].items() if INSTALL in why}
    assert set(found) == set(ids) - missing
    assert all(row["agent_steps_per_s"]["median"] > 0 for row in found.values())
    ceiling = max(found[row]["rounds"][0] for row in ids[:2])
    assert found["paac-nips"]["of_ceiling"]["median"] == pytest.approx(
        found["paac-nips"]["rounds"][0] / ceiling
    )
    for row in ("paac-nips", "a3c-nips", "ga3c-nips", "dqn-nips"):
        spent = found[row]["time"]
        assert all(spent[part] > 0 for part in ("environment", "choosing", "learning")), row
        assert sum(spent.values()) <= 1.2, row
    beside = {goal["row"]: goal for goal in told["goals"]}
    assert {"paac-nips", "a3c-nips", "ga3c-nips"} <= set(beside)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_rows_settings_are_those_that_a_run_takes(cores: int) -> None:
    for row in rows(cores):
        if row.function == "methods:trained":
            given = dict(row.arguments)
            spec = methods._spec("ALE/Breakout-v5", given.pop("algorithm"), given.pop("preset", None), given)
            assert spec.device == "cpu"
