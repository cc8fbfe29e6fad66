"""`callboard experiments run`, with real scripts."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import callboard as client
from tests.support.service import RunningService
from tests.support.waiting import until

pytestmark = [pytest.mark.service, pytest.mark.long]

Callboard = Callable[..., Result]
SCRIPT = """
import argparse, sys, time
from pathlib import Path
import callboard

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--seed", type=int)
options = parser.parse_args()
with callboard.init(config=options) as run:
    run.episode(return_=10 * options.lr, length=5)
    if Path("waits").exists():
        run.flush()
        Path("ready").touch()
        time.sleep(600)
if options.lr == 0.3:
    sys.exit(3)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(client.__file__).parents[1]), os.getcwd()]))
    return folder


def sweep_of(callboard: Callboard, rates: str, *options: str) -> str:
    start = ("sweeps", "start", "--script", "--algorithm", "mine", "--environment", "CartPole-v1")
    answer = callboard(*start, "--vary", f"lr={rates}", *options)
    assert answer.exit_code == 0, answer.output
    return answer.output.strip()


def sweep_row(service: RunningService, sweep: str) -> dict[str, Any]:
    return dict(service.client.get(f"/api/v1/sweeps/{sweep}").json())


def test_every_configuration_is_run_until_none_is_left(
    callboard: Callboard, sqlite_service: RunningService, folder: Path
) -> None:
    sweep = sweep_of(callboard, "0.1,0.2,0.3", "--max-seeds", "2", "--no-racing")
    done = callboard("experiments", "run", sweep, "--", sys.executable, "train.py")
    assert done.exit_code == 0, done.output
    row = sweep_row(sqlite_service, sweep)
    assert (row["state"], row["runs"]) == ("finished", {"finished": 4, "failed": 2})
    assert row["best"]["settings"] == {"config.lr": 0.2}
    runs = sqlite_service.client.get("/api/v1/runs").json()["items"]
    assert {run["seed"] for run in runs} == {0, 1}
    assert sorted({run["score"] for run in runs}) == [1.0, 2.0, 3.0]
    failed = next(run for run in runs if run["state"] == "failed")
    assert failed["state_reason"] == "its script exited with status 3"


def test_interrupted_script_is_stopped_and_its_configuration_free_again(
    callboard: Callboard, sqlite_service: RunningService, folder: Path
) -> None:
    sweep = sweep_of(callboard, "0.1,0.2", "--max-seeds", "1", "--no-racing")
    (folder / "waits").touch()
    settings = sqlite_service.settings
    environment = os.environ | {
        "CALLBOARD_HOME": str(settings.home_dir),
        "CALLBOARD_DATABASE_URL": settings.database,
        "CALLBOARD_PORT": sqlite_service.url.rpartition(":")[2],
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ["PYTHONPATH"]]),
    }
    command = [sys.executable, "-m", "callboard_cli.main", "experiments", "run", sweep]
    runner = subprocess.Popen([*command, "--", sys.executable, "train.py"], env=environment)
    until((folder / "ready").exists)
    runner.send_signal(signal.SIGINT)
    assert runner.wait() == 130
    assert sweep_row(sqlite_service, sweep)["runs"] == {}
    [run] = sqlite_service.client.get("/api/v1/runs").json()["items"]
    assert (run["state"], run["state_reason"]) == ("stopped", "ended by SIGTERM")  # as the client reports it
    (folder / "waits").unlink()
    done = callboard("experiments", "run", sweep, "--", sys.executable, "train.py")
    assert done.exit_code == 0, done.output
    assert sweep_row(sqlite_service, sweep)["runs"] == {"finished": 2}


def test_what_a_script_could_not_send_is_sent_before_its_end_is_reported(
    callboard: Callboard, sqlite_service: RunningService, folder: Path
) -> None:
    away = "import callboard.transport, callboard.errors\ndef away(*_, **__):\n"
    away += "    raise callboard.errors.Unreachable('away')\ncallboard.transport.Transport.request = away\n"
    (folder / "train.py").write_text(away + SCRIPT)
    sweep = sweep_of(callboard, "0.1,0.2", "--max-seeds", "1", "--no-racing")
    done = callboard("experiments", "run", sweep, "--", sys.executable, "train.py")
    assert done.exit_code == 0, done.output
    assert sweep_row(sqlite_service, sweep)["best"]["settings"] == {"config.lr": 0.2}


def test_scripts_that_all_fail_end_it(
    callboard: Callboard, sqlite_service: RunningService, folder: Path
) -> None:
    (folder / "train.py").write_text("import sys; sys.exit('no such data')")
    sweep = sweep_of(callboard, "0.1,0.2,0.3,0.4", "--max-seeds", "1", "--no-racing")
    done = callboard("experiments", "run", sweep, "--", sys.executable, "train.py")
    assert done.exit_code == 1
    assert "the last 3 scripts have failed" in done.output
    assert sweep_row(sqlite_service, sweep)["runs"] == {"failed": 3}


def test_what_cannot_be_run_is_refused_before_anything_is(
    callboard: Callboard, sqlite_service: RunningService, folder: Path
) -> None:
    unknown = callboard("experiments", "run", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--", sys.executable, "train.py")
    assert (unknown.exit_code, unknown.output) == (
        2, "callboard: sweep 01ARZ3NDEKTSV4RRFFQ69G5FAV does not exist or has been deleted\n",
    )  # fmt: skip
    sweep = sweep_of(callboard, "0.1,0.2")
    missing = callboard("experiments", "run", sweep, "--", "no-such-program", "train.py")
    assert (missing.exit_code, missing.output) == (2, "callboard: no-such-program: no such program\n")
    plain = ("sweeps", "start", "--algorithm", "paac", "--environment", "CartPole-v1", "--agent-steps", "9")
    of_workers = callboard(*plain, "--vary", "learning_rate=0.1,0.2").output.strip()
    refused = callboard("experiments", "run", of_workers, "--", sys.executable, "train.py")
    assert refused.exit_code == 2
    assert "workers start its runs" in refused.output
    named = callboard(
        "sweeps", "start", "--script", "--algorithm", "m", "--environment", "e", "--vary", "-lr=1,2"
    )
    assert named.exit_code == 2
    assert "the name must be a letter" in named.output
    assert sweep_row(sqlite_service, sweep)["runs"] == {}
