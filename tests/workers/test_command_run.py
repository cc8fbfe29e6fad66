"""Runs of a host's command, by a real worker, a real server and a real script."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import callboard
from backend.coordination.context import Context
from backend.platform.settings import Settings
from callboard.manifest import count_rows_in
from tests.support import commands
from tests.support.service import RunningService, created_run
from tests.support.waiting import until
from tests.workers.support import expire_lease, moves, run_row, running, until_state
from workers import command_child
from workers.host_agent import HostAgent

pytestmark = [pytest.mark.service, pytest.mark.long]

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPT = """
import argparse, json, os, signal, subprocess, sys, time
from pathlib import Path
import callboard

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--mode")
parser.add_argument("--seed", type=int)
options, _ = parser.parse_known_args()
folder = Path.cwd()
(folder / "seen.json").write_text(json.dumps({"arguments": sys.argv[1:], "environment": dict(os.environ)}))
with callboard.init(config=options, environment="CartPole-v1") as run:
    for step in range(1, 11):
        run.log({"loss": options.lr / step}, agent_steps=step)
    run.flush()
    if options.mode == "fails":
        raise ValueError("it went wrong")
    if options.mode == "waits":
        left = "import os, time; os.setsid(); os.fork() and os._exit(0); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        daemon = subprocess.Popen([sys.executable, "-c", left])
        daemon.wait()
        (folder / "child").write_text(str(child.pid))
        (folder / "ready").touch()
        time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path(callboard.__file__).parents[1]))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    commands.write(folder)
    return folder


@pytest.fixture
def agent(sqlite_service: RunningService, tmp_path: Path, folder: Path) -> Iterator[Callable[..., HostAgent]]:
    started: list[HostAgent] = []

    def start(file: Path = folder / "commands.toml", *, is_away: bool = False) -> HostAgent:
        given = sqlite_service.settings.model_dump() | {"home": tmp_path / "worker", "host_name": "a"}
        url = sqlite_service.address if is_away else sqlite_service.url
        given |= {"url": url, "commands_file": file}
        given |= {"lease_s": 60.0, "reconcile_interval_s": 0.2}
        started.append(HostAgent(Context.from_settings(Settings(**given))))
        started[-1].start()
        return started[-1]

    yield start
    for running_agent in started:
        running_agent.stop(8)


def start(service: RunningService, mode: str, **more: Any) -> str:
    until(lambda: service.client.get("/api/v1/commands").json()["items"])
    body = {"command": "train", "config": {"mode": mode}, "seed": 3} | more
    return str(created_run(service.client.post("/api/v1/runs", json=body))["id"])


def series(service: RunningService, run_id: str) -> list[int]:
    answer = service.client.get("/api/v1/series", params={"run": run_id, "metric": "loss"})
    return [int(step) for part in answer.json()["series"] for step in part["x"]]


def test_command_writes_its_own_run_by_a_token_that_ends_with_it(
    sqlite_service: RunningService, agent: Callable[..., HostAgent], folder: Path
) -> None:
    agent()
    run_id = start(sqlite_service, "-plain")
    until_state(sqlite_service.engine, run_id, "finished", "failed")
    run = sqlite_service.client.get(f"/api/v1/runs/{run_id}").json()
    assert (run["error"], run["state"]) == (None, "finished")
    assert (run["algorithm"], run["environment"], run["seed"]) == ("train", "CartPole-v1", 3)
    assert run["agent_steps"] == 10
    assert series(sqlite_service, run_id) == [*range(1, 11)]
    assert moves(sqlite_service.engine, run_id) == ["queued", "starting", "running", "finished"]
    seen = json.loads((folder / "seen.json").read_text())
    assert seen["arguments"] == [
        "--lr=0.5", "--layers=2", "--mode=-plain", "--optimizer=adam", "--resume=false", "--seed=3",
    ]  # fmt: skip
    own = {"CALLBOARD_URL", "CALLBOARD_TOKEN", "CALLBOARD_RUN", "CALLBOARD_HOME", "CUDA_VISIBLE_DEVICES"}
    assert seen["environment"].keys() <= own | {"HOME", "LANG", "PATH", "PYTHONPATH", "NO_PROXY", "LC_CTYPE"}
    script = sqlite_service.client_with(seen["environment"]["CALLBOARD_TOKEN"])
    assert script.post(f"/api/v1/runs/{run_id}/heartbeat", json={}).status_code == 401


def test_token_of_a_command_writes_no_other_run_and_creates_none(
    sqlite_service: RunningService, agent: Callable[..., HostAgent], folder: Path
) -> None:
    agent()
    other = {"origin": "external", "algorithm": "x", "environment": "y"}
    other_id = created_run(sqlite_service.client.post("/api/v1/runs", json=other))["id"]
    run_id = start(sqlite_service, "waits")
    until((folder / "ready").exists)
    seen = json.loads((folder / "seen.json").read_text())
    script = sqlite_service.client_with(seen["environment"]["CALLBOARD_TOKEN"])
    assert script.post("/api/v1/runs", json=other).status_code == 403
    assert script.post(f"/api/v1/runs/{other_id}/heartbeat", json={}).status_code == 403
    assert script.get(f"/api/v1/runs/{run_id}").status_code == 403
    reported = script.post(f"/api/v1/runs/{run_id}/heartbeat", json={"state": "finished"}).json()
    assert reported["state"] == "running"
    assert sqlite_service.client.post(f"/api/v1/runs/{run_id}/heartbeat", json={}).status_code == 409
    sqlite_service.client.post(f"/api/v1/runs/{run_id}/kill")
    until_state(sqlite_service.engine, run_id, "stopped")


@pytest.mark.parametrize("request_", ["stop", "kill"])
def test_stop_and_kill_end_the_whole_tree(
    sqlite_service: RunningService, agent: Callable[..., HostAgent], folder: Path, request_: str
) -> None:
    agent()
    run_id = start(sqlite_service, "waits")
    until((folder / "ready").exists)
    assert len(left_by(folder)) >= 3
    assert sqlite_service.client.post(f"/api/v1/runs/{run_id}/{request_}").status_code == 200
    until_state(sqlite_service.engine, run_id, "stopped")
    assert run_row(sqlite_service.engine, run_id).error is None
    until(lambda: not left_by(folder))


def test_failed_command_shows_the_end_of_its_output_and_can_be_retried(
    sqlite_service: RunningService, agent: Callable[..., HostAgent], folder: Path
) -> None:
    agent()
    run_id = start(sqlite_service, "fails")
    until_state(sqlite_service.engine, run_id, "failed")
    run = sqlite_service.client.get(f"/api/v1/runs/{run_id}").json()
    assert run["state_reason"] == "its command exited with status 1"
    assert "ValueError: it went wrong" in run["error"]
    assert sqlite_service.client.post(f"/api/v1/runs/{run_id}/resume").status_code == 200
    until(lambda: moves(sqlite_service.engine, run_id).count("failed") == 2)
    assert series(sqlite_service, run_id) == [*range(1, 11)]


def test_command_of_a_lost_worker_starts_anew(
    sqlite_service: RunningService, agent: Callable[..., HostAgent], folder: Path
) -> None:
    agent()
    run_id = start(sqlite_service, "waits")
    until((folder / "ready").exists)
    before = json.loads((folder / "seen.json").read_text())["environment"]["CALLBOARD_TOKEN"]
    (folder / "ready").unlink()
    expire_lease(sqlite_service.engine, run_id)
    sqlite_service.client.post(f"/api/v1/runs/{run_id}/stop")
    until_state(sqlite_service.engine, run_id, "stopped")
    until(lambda: not left_by(folder))
    script = sqlite_service.client_with(before)
    assert script.post(f"/api/v1/runs/{run_id}/heartbeat", json={}).status_code == 401


def log_of(service: RunningService, run_id: str) -> str:
    return str(service.client.get(f"/api/v1/runs/{run_id}/log").json()["items"])


def test_what_a_script_could_not_send_is_sent_before_its_run_ends(
    sqlite_service: RunningService, agent: Callable[..., HostAgent], folder: Path
) -> None:
    agent(is_away=True)
    (folder / "train.py").write_text(SCRIPT.replace("run.flush()", ""))
    run_id = start(sqlite_service, "plain")
    until(lambda: "waiting to send what its script has logged" in log_of(sqlite_service, run_id))
    assert run_row(sqlite_service.engine, run_id).state == "running"
    assert sqlite_service.url
    until_state(sqlite_service.engine, run_id, "finished", "failed", "queued")
    assert run_row(sqlite_service.engine, run_id).state == "finished"
    assert series(sqlite_service, run_id) == [*range(1, 11)]


def test_what_an_attempt_could_not_send_is_not_mixed_with_the_next_one(
    sqlite_service: RunningService, agent: Callable[..., HostAgent], folder: Path
) -> None:
    agent(is_away=True)
    (folder / "train.py").write_text(
        SCRIPT.replace("range(1, 11)", "range(5, 99)").replace("run.flush()", "")
    )
    run_id = start(sqlite_service, "waits")
    until((folder / "ready").exists)
    home = Path(json.loads((folder / "seen.json").read_text())["environment"]["CALLBOARD_HOME"])
    until(lambda: sum(count_rows_in(spool) for spool in (home / "spool").iterdir()) >= 94)
    sqlite_service.client.post(f"/api/v1/runs/{run_id}/kill")
    until_state(sqlite_service.engine, run_id, "stopped")
    assert "not all that its script has logged is sent" in log_of(sqlite_service, run_id)
    assert sqlite_service.url
    (folder / "train.py").write_text(SCRIPT.replace('options.mode == "waits"', "False"))
    assert sqlite_service.client.post(f"/api/v1/runs/{run_id}/resume").status_code == 200
    until_state(sqlite_service.engine, run_id, "finished", "failed")
    assert series(sqlite_service, run_id) == [*range(1, 11)]


def test_command_that_ends_well_because_its_worker_stops_is_queued_again(
    sqlite_service: RunningService, agent: Callable[..., HostAgent], folder: Path
) -> None:
    running_agent = agent()
    polite = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    (folder / "train.py").write_text(polite + SCRIPT)
    run_id = start(sqlite_service, "waits")
    until((folder / "ready").exists)
    assert running_agent.stop(8)
    run = run_row(sqlite_service.engine, run_id)
    assert (run.state, run.state_reason) == ("queued", "its worker on a is shutting down")


def test_script_continues_its_run_from_where_it_rewinds_to(
    sqlite_service: RunningService, agent: Callable[..., HostAgent], folder: Path
) -> None:
    agent()
    run_id = start(sqlite_service, "fails")
    until_state(sqlite_service.engine, run_id, "failed")
    continued = SCRIPT.replace("range(1, 11)", "range(7, 9)").replace("init(", "init(rewind_to=6, ")
    (folder / "train.py").write_text(continued.replace('options.mode == "fails"', "False"))
    assert sqlite_service.client.post(f"/api/v1/runs/{run_id}/resume").status_code == 200
    until_state(sqlite_service.engine, run_id, "finished")
    assert series(sqlite_service, run_id) == [*range(1, 9)]
    attempts = sqlite_service.client.get(f"/api/v1/runs/{run_id}").json()["attempts"]
    assert [attempt["resumed_from_agent_steps"] for attempt in attempts] == [0, 6]


def test_example_is_a_command(
    sqlite_service: RunningService, agent: Callable[..., HostAgent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    agent(EXAMPLES / "commands" / "commands.toml")
    until(lambda: sqlite_service.client.get("/api/v1/commands").json()["items"])
    body = {"command": "cross-entropy", "config": {"generations": 3}, "seed": 5}
    run_id = created_run(sqlite_service.client.post("/api/v1/runs", json=body))["id"]
    until_state(sqlite_service.engine, run_id, "finished", "failed")
    run = sqlite_service.client.get(f"/api/v1/runs/{run_id}").json()
    assert (run["error"], run["state"]) == (None, "finished")
    assert (run["algorithm"], run["environment"], run["episodes"]) == ("cross-entropy", "CartPole-v1", 48)
    assert run["score"] > 5


def test_command_ends_with_its_worker(tmp_path: Path) -> None:
    """Also what it has started in another session, though the worker is killed at once."""
    what = tmp_path / "command.json"
    left = "import os, time; os.fork() and time.sleep(600); os.setsid()"
    left += "; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    arguments = [sys.executable, "-c", left]
    what.write_text(json.dumps({"arguments": arguments, "folder": str(tmp_path)}))
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    command = [sys.executable, "-I", command_child.__file__, str(what), "--parent", str(worker.pid)]
    parent = subprocess.Popen(command, start_new_session=True)
    pid = int(str(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())))
    assert running(pid)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert parent.wait() == -signal.SIGKILL
    until(lambda: not running(pid))


def left_by(folder: Path) -> list[int]:
    """The processes that run in a folder."""
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and os.readlink(entry / "cwd") == str(folder):
                pids.append(int(entry.name))
        except OSError:
            continue
    return pids
