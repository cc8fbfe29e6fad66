import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from backend.auth.roles import Role
from backend.cli.main import app
from backend.db import Attempt
from backend.db.engine import reading
from backend.metrics import repository as metrics
from tests.support.runs import make_run
from tests.support.service import RunningService
from tests.workers.support import FAKE_ENGINE, fake_run, moves, run_row, stored_points, until_state
from workers.context import Context
from workers.engine.event_log import read_frames
from workers.host_agent import HostAgent

pytestmark = pytest.mark.service

Callboard = Callable[..., Result]
START = ["runs", "start", "--algorithm", "paac", "--environment", "CartPole-v1"]


@pytest.fixture
def callboard(sqlite_service: RunningService, tmp_path: Path) -> Callboard:
    """Runs a command against the service of this machine."""
    settings = sqlite_service.settings
    local = {
        "CALLBOARD_HOME": str(settings.home_dir),
        "CALLBOARD_DATABASE_URL": settings.database,
        "CALLBOARD_REDIS_URL": settings.redis,
        "CALLBOARD_PORT": sqlite_service.url.rpartition(":")[2],
    }

    def run(*arguments: str, **given: str | None) -> Result:
        return CliRunner().invoke(app, arguments, env=local | given)

    return run


@pytest.fixture
def worker(sqlite_service: RunningService) -> Iterator[HostAgent]:
    """A host agent with the fake engine."""
    settings = sqlite_service.settings.model_copy(update={"reconcile_interval_s": 0.2, "host_name": "a"})
    context = Context.of(settings)
    agent = HostAgent(context, engine=FAKE_ENGINE)
    agent.start()
    yield agent
    agent.stop(8)
    context.close()


def test_start_wait_show_list_export(
    callboard: Callboard, worker: HostAgent, sqlite_service: RunningService, tmp_path: Path
) -> None:
    started = callboard(*START, "--agent-steps", "30", "--name", "first", "--tag", "x", "--wait", "--json")
    assert started.exit_code == 0, started.output
    run = json.loads(started.output)
    assert (run["state"], run["name"], run["tags"], run["agent_steps"]) == ("finished", "first", ["x"], 30)
    shown = callboard("runs", "show", run["id"])
    assert "first" in shown.output
    assert json.loads(callboard("runs", "show", run["id"], "--json").output)["attempts"][0]["host"] == "a"
    assert "finished" in callboard("runs", "list").output
    listed = json.loads(callboard("runs", "list", "--filter", "tag:x", "--json").output)
    assert [item["id"] for item in listed] == [run["id"]]
    assert json.loads(callboard("runs", "list", "--state", "failed", "--json").output) == []
    target = tmp_path / "points.csv"
    assert callboard("runs", "export", run["id"], "--output", str(target)).exit_code == 0
    assert len(target.read_text().splitlines()) == 31


def test_stop_and_resume(callboard: Callboard, worker: HostAgent, sqlite_service: RunningService) -> None:
    run_id = callboard(*START, "--agent-steps", "100000").output.strip()
    until_state(sqlite_service.engine, run_id, "running")
    stopped = callboard("runs", "stop", run_id, "--wait")
    assert stopped.output == f"{run_id}  stopped: asked to stop\n"
    end = run_row(sqlite_service.engine, run_id).agent_steps + 20
    resumed = callboard("runs", "resume", run_id, "--agent-steps", str(end), "--wait")
    assert resumed.output == f"{run_id}  finished: reached {end} agent steps\n"


def test_one_run_a_seed(callboard: Callboard) -> None:
    seeds = ["--seed", "1", "--seed", "2", "--set", "n_e=4"]
    started = callboard(*START, "--agent-steps", "30", *seeds, "--json")
    made = json.loads(started.output)
    assert [(run["seed"], run["spec"]["config"]["n_e"]) for run in made] == [(1, 4), (2, 4)]


def test_a_failed_run_is_exit_code_1(
    callboard: Callboard, worker: HostAgent, sqlite_service: RunningService
) -> None:
    run = fake_run(sqlite_service.engine, agent_steps=10, die={"1": {"at": 5, "how": "raise"}})
    until_state(sqlite_service.engine, run.id, "failed")
    again = callboard("runs", "resume", run.id, "--wait")
    assert again.exit_code == 0, again.output
    other = fake_run(sqlite_service.engine, agent_steps=10, die={"2": {"at": 5, "how": "raise"}}, wait_at=3)
    until_state(sqlite_service.engine, other.id, "running")
    assert callboard("runs", "stop", other.id, "--kill", "--wait").exit_code == 0
    failed = callboard("runs", "resume", other.id, "--wait")
    assert (failed.exit_code, failed.output) == (1, f"{other.id}  failed: told to fail\n")


def test_what_is_wrong_is_one_line(callboard: Callboard, sqlite_service: RunningService) -> None:
    unknown = callboard(*START, "--agent-steps", "30", "--set", "n_e=1000000000")
    assert unknown.exit_code == 2
    assert unknown.output.startswith("callboard: config.n_e: ")
    assert unknown.output.count("\n") == 1
    missing = callboard("runs", "show", "01M7W7C9JWHJM9YNCV5T8SCRXZ")
    assert (missing.exit_code, missing.output.count("\n")) == (2, 1)
    assert json.loads(callboard("runs", "list", "--json").output) == []
    away = callboard("runs", "list", CALLBOARD_URL="http://127.0.0.1:1", CALLBOARD_TOKEN="x")
    assert (away.exit_code, away.output.count("\n")) == (1, 1)
    no_key = callboard("runs", "list", CALLBOARD_URL=sqlite_service.url)
    assert no_key.exit_code == 2
    assert "CALLBOARD_TOKEN" in no_key.output
    wrong_key = callboard("runs", "list", CALLBOARD_URL=sqlite_service.url, CALLBOARD_TOKEN="wrong")
    assert wrong_key.exit_code == 2


def test_another_machines_server(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    make_run(sqlite_service.engine)
    viewer, operator = (
        callboard("token", "create", role, "--role", role, "--days", "1").output.strip()
        for role in (Role.VIEWER, Role.OPERATOR)
    )
    # Nothing of the server's machine is at hand there.
    elsewhere: dict[str, str | None] = {
        "CALLBOARD_URL": sqlite_service.url,
        "CALLBOARD_HOME": str(tmp_path / "elsewhere"),
        "CALLBOARD_DATABASE_URL": None,
        "CALLBOARD_REDIS_URL": None,
    }
    may_look, may_act = ({**elsewhere, "CALLBOARD_TOKEN": token} for token in (viewer, operator))
    assert len(json.loads(callboard("runs", "list", "--json", **may_look).output)) == 1
    refused = callboard(*START, "--agent-steps", "30", **may_look)
    assert refused.exit_code == 2
    assert Role.VIEWER in refused.output
    run_id = callboard(*START, "--agent-steps", "30", **may_act).output.strip()
    assert callboard("runs", "stop", run_id, "--wait", **may_act).exit_code == 0
    assert json.loads(callboard("runs", "show", run_id, "--json", **may_look).output)["state"] == "stopped"
    target = tmp_path / "points.csv"
    assert callboard("runs", "export", run_id, "--output", str(target), **may_look).exit_code == 0
    assert target.read_text().startswith('"metric","source"')
    assert not (tmp_path / "elsewhere").exists()
    assert callboard("token", "create", "x", "--user", "nobody").exit_code == 2


def test_the_local_key_is_private_and_renewed(callboard: Callboard, sqlite_service: RunningService) -> None:
    assert callboard("runs", "list").exit_code == 0
    key = sqlite_service.settings.home_dir / "command-line-key"
    assert key.stat().st_mode & 0o777 == 0o600
    made = key.read_text()
    assert callboard("runs", "list").exit_code == 0
    assert key.read_text() == made
    key.write_text("cb_forgotten")
    assert callboard("runs", "list").exit_code == 0
    assert key.read_text() not in (made, "cb_forgotten")


def test_import_of_a_run_trained_in_a_terminal(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    folder = tmp_path / "trained"
    quick = ["--set", "n_e=4", "--set", "evaluation_episodes=2", "--run-directory", str(folder)]
    base = ["train", "--algorithm", "paac", "--environment", "CartPole-v1", *quick]
    for bound in ("1000", "2000"):
        trained = callboard(*base, "--agent-steps", bound)
        assert trained.exit_code == 0, trained.output
    imported = callboard("runs", "import", str(folder))
    assert imported.exit_code == 0, imported.output
    run_id = imported.output.strip()
    engine = sqlite_service.engine
    run = run_row(engine, run_id)
    assert (run.state, run.agent_steps, run.attempt) == ("finished", 2000, 2)
    assert moves(engine, run_id)[-1] == "finished"
    with reading(engine) as session:
        assert session.get_one(Attempt, (run_id, 2)).resumed_from_agent_steps == 1000
        (series,) = metrics.list_series(session, [run_id], ["rollout/episode_return"])
        values = np.concatenate([part["value"] for part in metrics.all_points(session, series.id)])
    logged = [
        value
        for number in (1, 2)
        for frame, _ in read_frames(folder / "attempts" / str(number) / "events.log")
        for event in frame
        if event.type == "points" and event.metric == "rollout/episode_return"
        for value in event.value
    ]
    assert values.tolist() == logged
    assert stored_points(engine, run_id, "eval/plain/mean_return") == [1000, 2000]
    assert len(os.listdir(sqlite_service.settings.runs_dir / run_id / "checkpoints")) >= 1


def test_import_of_what_is_no_run(callboard: Callboard, tmp_path: Path) -> None:
    assert callboard("runs", "import", str(tmp_path / "nowhere")).exit_code == 2
    (tmp_path / "spec.json").write_text("{}")
    assert callboard("runs", "import", str(tmp_path)).exit_code == 2
