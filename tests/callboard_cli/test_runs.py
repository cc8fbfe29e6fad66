import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner, Result

from backend.analysis.metrics import repository as metrics
from backend.db import Attempt
from backend.db.engine import reading
from backend.platform.principals import Role
from backend.specs.states import RunState
from callboard_cli import demo
from callboard_cli.main import app
from tests.backend.analysis.comparisons.test_endpoints import two_rates
from tests.support.rows import add_host, make_checkpoint, make_run
from tests.support.service import RunningService
from tests.workers.support import fake_run, moves, run_row, stored_points, until_state
from workers.engine.training.event_log import read_frames
from workers.host_agent import HostAgent
from workers.host_files import is_of_worker

pytestmark = pytest.mark.service

Callboard = Callable[..., Result]
START = ["runs", "start", "--algorithm", "paac", "--environment", "CartPole-v1"]


@pytest.mark.long
def test_run_is_started_shown_listed_and_exported(
    callboard: Callboard, worker: HostAgent, sqlite_service: RunningService, tmp_path: Path
) -> None:
    name = "first of several runs, which together fill the width of the terminal"
    started = callboard(*START, "--agent-steps", "30", "--name", name, "--tag", "x", "--wait", "--json")
    assert started.exit_code == 0, started.output
    run = json.loads(started.output)
    assert (run["state"], run["name"], run["tags"], run["agent_steps"]) == ("finished", name, ["x"], 30)
    shown = callboard("runs", "show", run["id"])
    assert "first" in shown.output
    assert json.loads(callboard("runs", "show", run["id"], "--json").output)["attempts"][0]["host"] == "a"
    in_a_table = callboard("runs", "list").output
    assert "finished" in in_a_table
    assert [line for line in in_a_table.splitlines() if run["id"] in line and name in line]
    listed = json.loads(callboard("runs", "list", "--filter", "tag:x", "--json").output)
    assert [item["id"] for item in listed] == [run["id"]]
    assert json.loads(callboard("runs", "list", "--state", "failed", "--json").output) == []
    target = tmp_path / "points.csv"
    assert callboard("runs", "export", run["id"], "--output", str(target)).exit_code == 0
    assert len(target.read_text().splitlines()) == 31


def test_names_reach_the_terminal_without_control_characters_and_markup(
    callboard: Callboard, sqlite_service: RunningService
) -> None:
    run_id = make_run(sqlite_service.engine, name="[/b]\x1b[2J").id
    for command in (("list",), ("show", run_id)):
        printed = callboard("runs", *command)
        assert printed.exit_code == 0, printed.output
        assert r"[/b]\x1b[2J" in printed.output


@pytest.mark.long
def test_run_is_stopped_and_resumed(
    callboard: Callboard, worker: HostAgent, sqlite_service: RunningService
) -> None:
    linear = ("--set", "learning_rate_schedule=linear")
    run_id = callboard(*START, *linear, "--agent-steps", "100000").output.strip()
    until_state(sqlite_service.engine, run_id, "running")
    stopped = callboard("runs", "stop", run_id, "--wait")
    assert stopped.output == f"{run_id}  stopped: stop requested\n"
    end = run_row(sqlite_service.engine, run_id).agent_steps + 20
    resumed = callboard("runs", "resume", run_id, "--agent-steps", str(end), "--wait")
    assert resumed.stdout == f"{run_id}  finished: reached {end} agent steps\n"
    assert f"falls to 0 over {end:,} agent steps instead of 100,000" in resumed.stderr
    again = callboard(
        "runs", "resume", run_id, "--agent-steps", str(end + 5), "--annealing", "keep", "--wait"
    )
    assert (again.exit_code, again.stderr) == (0, "")
    assert run_row(sqlite_service.engine, run_id).spec["annealing_agent_steps"] == end


def test_resume_prints_the_resumed_runs_although_another_one_is_refused(
    callboard: Callboard, sqlite_service: RunningService
) -> None:
    states = (RunState.STOPPED, RunState.QUEUED, RunState.STOPPED)
    first, queued, last = (make_run(sqlite_service.engine, state).id for state in states)
    resumed = callboard("runs", "resume", first, queued, last)
    assert (resumed.exit_code, resumed.stdout) == (2, f"{first}\n{last}\n")
    assert resumed.stderr.count("\n") == 1
    assert run_row(sqlite_service.engine, last).state == RunState.QUEUED


def test_run_is_forked_tagged_archived_and_deleted_and_its_log_is_printed(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine, RunState.STOPPED)
    checkpoint = make_checkpoint(sqlite_service.engine, run)
    (tmp_path / checkpoint.file).write_bytes(b"weights")
    sqlite_service.artifacts.put(tmp_path / checkpoint.file, run.id, "checkpoints")
    options = ["--set", "beta=0.5", "--agent-steps", "2e4", "--seed", "3", "--tag", "b", "--json"]
    fork = json.loads(callboard("runs", "fork", run.id, *options).output)
    assert (fork["parent_id"], fork["seed"], fork["tags"]) == (run.id, 3, ["b"])
    assert (fork["spec"]["config"]["beta"], fork["spec"]["stop"]["agent_steps"]) == (0.5, 20_000)
    refused = callboard("runs", "fork", run.id, "--set", "nonsense=1")
    assert (refused.exit_code, refused.stderr.startswith("callboard: config.nonsense: ")) == (2, True)
    logged = callboard("runs", "log", run.id, "--follow")
    assert logged.exit_code == 0
    assert logged.output == callboard("runs", "log", run.id, "--last", "1000").output
    assert callboard("runs", "log", run.id, "--search", "no such text").output == ""
    tagged = callboard("runs", "tag", run.id, "--add", "x", "--add", "y")
    assert tagged.output == f"{run.id}  x, y\n"
    assert callboard("runs", "tag", run.id, "--remove", "x").output == f"{run.id}  y\n"
    assert callboard("runs", "tag", run.id).exit_code == 2
    assert callboard("runs", "archive", run.id).output == f"{run.id}\n"
    assert run.id not in callboard("runs", "list").output
    assert callboard("runs", "archive", "--undo", run.id).exit_code == 0
    running = make_run(sqlite_service.engine, RunState.RUNNING)
    deleted = callboard("runs", "delete", running.id, run.id)
    assert (deleted.exit_code, deleted.stdout) == (2, f"{run.id}\n")
    assert callboard("runs", "show", run.id).exit_code == 2


def test_hosts_are_listed_with_errors_of_their_packages(
    callboard: Callboard, sqlite_service: RunningService
) -> None:
    load = {"package_problems": {"mine==1.0": "ImportError: no licence"}}
    add_host(sqlite_service.engine, "a", load=load)
    [host] = json.loads(callboard("hosts", "--json").output)
    assert host["id"] == "a"
    assert callboard("hosts").output.endswith("a: mine==1.0: ImportError: no licence\n")


def test_start_with_several_seeds_creates_one_run_per_seed(callboard: Callboard) -> None:
    seeds = ["--seed", "1", "--seed", "2", "--set", "n_e=4"]
    started = callboard(*START, "--agent-steps", "30", *seeds, "--json")
    created = json.loads(started.output)
    assert [(run["seed"], run["spec"]["config"]["n_e"]) for run in created] == [(1, 4), (2, 4)]


def test_start_on_a_host_that_does_not_exist_warns(callboard: Callboard) -> None:
    started = callboard(*START, "--agent-steps", "30", "--host", "nowhere")
    assert started.exit_code == 0
    warning, run_id = started.output.splitlines()
    assert warning == 'callboard: there is no host "nowhere": the run waits until there is one'
    assert len(run_id) == 26


@pytest.mark.long
def test_wait_exits_1_when_run_fails(
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
    assert (failed.exit_code, failed.output) == (1, f"{other.id}  failed: failure requested by the test\n")


def test_compare_prints_groups_and_whether_they_differ(
    callboard: Callboard, sqlite_service: RunningService
) -> None:
    good, bad = two_rates(sqlite_service.engine, seeds=5)
    compared = callboard("runs", "compare", *good, *bad)
    assert compared.exit_code == 0, compared.output
    _, first, second, _, _, pair, _, method = compared.output.splitlines()
    # Two of the 252 ways to divide ten scores into two groups of five separate them.
    assert first.split()[-6:] == ["5", "202.0", "202.0", "[200.0,", "204.0]", "2,000"]
    assert second.split()[-6:] == ["5", "52.0", "52.0", "[50.0,", "54.0]", "2,000"]
    assert "1.00" in pair
    assert "A better (p = 0.008)" in pair
    assert method.startswith("Intervals: ")
    one_each = callboard("runs", "compare", good[0], bad[0])
    assert one_each.output.splitlines()[-1].startswith(
        "A comparison needs two configs in the same environment"
    )
    by_filter = json.loads(callboard("runs", "compare", "--filter", "algorithm:paac", "--json").output)
    assert by_filter["improvements"][0]["p_value"] == pytest.approx(2 / 252)
    for arguments in ((), (good[0], "--filter", "algorithm:paac"), ("--filter", "tag:none"), ("nonsense",)):
        refused = callboard("runs", "compare", *arguments)
        assert (refused.exit_code, refused.output.count("\n")) == (2, 1)


def test_errors_are_printed_in_one_line(callboard: Callboard, sqlite_service: RunningService) -> None:
    unknown = callboard(*START, "--agent-steps", "30", "--set", "n_e=1000000000")
    assert unknown.exit_code == 2
    assert unknown.output.startswith("callboard: config.n_e: ")
    assert unknown.output.count("\n") == 1
    not_a_number = callboard(*START, "--wall-time-s", "nan")
    assert (not_a_number.exit_code, not_a_number.output.count("\n")) == (2, 1)
    assert "finite" in not_a_number.output
    missing = callboard("runs", "show", "01M7W7C9JWHJM9YNCV5T8SCRXZ")
    assert (missing.exit_code, missing.output.count("\n")) == (2, 1)
    assert json.loads(callboard("runs", "list", "--json").output) == []
    unreachable = callboard("runs", "list", CALLBOARD_URL="http://127.0.0.1:1", CALLBOARD_TOKEN="x")
    assert (unreachable.exit_code, unreachable.output.count("\n")) == (1, 1)
    no_certificates = {"SSL_CERT_FILE": "/none", "CALLBOARD_TOKEN": "x"}
    elsewhere = callboard("runs", "list", CALLBOARD_URL="https://callboard.example", **no_certificates)
    assert (elsewhere.exit_code, elsewhere.output.count("\n")) == (2, 1)
    assert "SSL_CERT_FILE: cannot be used" in elsewhere.output
    here = callboard("runs", "list", CALLBOARD_URL="http://127.0.0.1:1", **no_certificates)
    assert here.output == unreachable.output, "which needs none"
    no_url = callboard("runs", "list", CALLBOARD_URL="nonsense", CALLBOARD_TOKEN="x")
    assert no_url.exit_code == 2
    assert no_url.output.startswith("callboard: CALLBOARD_URL: must be a URL")
    no_token = callboard("runs", "list", CALLBOARD_URL=sqlite_service.url)
    assert no_token.exit_code == 2
    assert "CALLBOARD_TOKEN" in no_token.output
    wrong_token = callboard("runs", "list", CALLBOARD_URL=sqlite_service.url, CALLBOARD_TOKEN="wrong")
    assert wrong_token.exit_code == 2
    assert wrong_token.output.startswith("callboard: CALLBOARD_TOKEN: unknown, revoked or expired; ")


def test_commands_use_remote_server_with_token_role(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    make_run(sqlite_service.engine)
    viewer, operator = (
        callboard("token", "create", role, "--role", role, "--days", "1").output.strip()
        for role in (Role.VIEWER, Role.OPERATOR)
    )
    # The client's machine has no access to the server's files, database or Redis.
    elsewhere: dict[str, str | None] = {
        "CALLBOARD_URL": sqlite_service.url,
        "CALLBOARD_HOME": str(tmp_path / "elsewhere"),
        "CALLBOARD_DATABASE_URL": None,
        "CALLBOARD_REDIS_URL": None,
    }
    as_viewer, as_operator = ({**elsewhere, "CALLBOARD_TOKEN": token} for token in (viewer, operator))
    assert len(json.loads(callboard("runs", "list", "--json", **as_viewer).output)) == 1
    refused = callboard(*START, "--agent-steps", "30", **as_viewer)
    assert refused.exit_code == 2
    assert Role.VIEWER in refused.output
    run_id = callboard(*START, "--agent-steps", "30", **as_operator).output.strip()
    assert callboard("runs", "stop", run_id, "--wait", **as_operator).exit_code == 0
    assert json.loads(callboard("runs", "show", run_id, "--json", **as_viewer).output)["state"] == "stopped"
    target = tmp_path / "points.csv"
    assert callboard("runs", "export", run_id, "--output", str(target), **as_viewer).exit_code == 0
    assert target.read_text().startswith('"metric","source"')
    nowhere = callboard(
        "runs", "export", run_id, "--output", str(tmp_path / "none" / "points.csv"), **as_viewer
    )
    assert nowhere.exit_code == 2
    assert nowhere.output.endswith("points.csv: No such file or directory; name another file with --output\n")
    assert not (tmp_path / "elsewhere").exists()
    assert callboard("token", "create", "x", "--user", "nobody").exit_code == 2


def test_token_create_with_scope_limits_token_to_external_runs(
    callboard: Callboard, sqlite_service: RunningService
) -> None:
    limited = callboard("token", "create", "script", "--scope", "external_runs").output.strip()
    [token] = sqlite_service.client.get("/api/v1/tokens").json()["items"]
    assert (token["name"], token["scope"]) == ("script", "external_runs")
    refused = callboard("runs", "list", CALLBOARD_URL=sqlite_service.url, CALLBOARD_TOKEN=limited)
    assert refused.exit_code == 2
    assert "external runs" in refused.output
    as_viewer = callboard("token", "create", "x", "--scope", "external_runs", "--role", "viewer")
    assert as_viewer.exit_code == 2
    assert "--scope" in as_viewer.output


def test_local_token_file_is_private_and_renewed(
    callboard: Callboard, sqlite_service: RunningService
) -> None:
    assert callboard("runs", "list").exit_code == 0
    token_file = sqlite_service.settings.home_dir / "command-line-key"
    assert token_file.stat().st_mode & 0o777 == 0o600
    token = token_file.read_text()
    assert callboard("runs", "list").exit_code == 0
    assert token_file.read_text() == token
    token_file.write_text("cb_forgotten")
    assert callboard("runs", "list").exit_code == 0
    assert token_file.read_text() not in (token, "cb_forgotten")


@pytest.mark.long
def test_import_stores_run_trained_by_callboard_train(
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
        attempts = [session.get_one(Attempt, (run_id, number)) for number in (1, 2)]
        assert attempts[1].resumed_from_agent_steps == 1000
        for attempt in attempts:
            assert attempt.provenance is not None
            assert attempt.provenance["packages"]["numpy"] == np.__version__
            assert attempt.provenance["device"] == "cpu"
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
    _check_import_without_first_checkpoints(callboard, engine, folder, logged)
    os.mkfifo(folder / "pipe")
    torn = callboard("runs", "import", str(folder))
    assert (torn.exit_code, "is a named pipe" in torn.output) == (1, True)
    [other] = [item["id"] for item in sqlite_service.client.get("/api/v1/runs").json()["items"]][:1]
    assert other != run_id
    assert run_row(engine, other).state == "failed", "else a worker would train it once its lease has expired"


def _check_import_without_first_checkpoints(
    callboard: Callboard, engine: Engine, folder: Path, logged: list[float]
) -> None:
    for path in sorted((folder / "checkpoints").iterdir(), key=lambda path: path.stat().st_mtime)[:-1]:
        path.unlink()
    (folder / "attempts" / "3").mkdir()
    (folder / "attempts" / "3" / "events.log").touch()
    imported = callboard("runs", "import", str(folder))
    assert imported.exit_code == 0, imported.output
    run_id = imported.output.strip()
    assert (run_row(engine, run_id).attempt, run_row(engine, run_id).agent_steps) == (3, 2000)
    with reading(engine) as session:
        (series,) = metrics.list_series(session, [run_id], ["rollout/episode_return"])
        values = np.concatenate([part["value"] for part in metrics.all_points(session, series.id)])
        assert session.get_one(Attempt, (run_id, 2)).resumed_from_agent_steps == 1000
    assert values.tolist() == logged


def test_workers_clean_up_the_copy_of_an_imported_run(
    callboard: Callboard, sqlite_service: RunningService
) -> None:
    imported = callboard("runs", "import", str(demo.FOLDER))
    assert imported.exit_code == 0, imported.output
    assert not is_of_worker(demo.FOLDER)
    assert is_of_worker(sqlite_service.settings.runs_dir / imported.output.strip())


def test_import_of_folder_without_run_exits_2(callboard: Callboard, tmp_path: Path) -> None:
    assert callboard("runs", "import", str(tmp_path / "nowhere")).exit_code == 2
    for text in ("{}", "[]"):
        (tmp_path / "spec.json").write_text(text)
        assert callboard("runs", "import", str(tmp_path)).exit_code == 2


@pytest.mark.parametrize("command", ["show", "stop", "export"])
def test_text_that_is_no_id_is_refused_by_name(command: str) -> None:
    result = CliRunner().invoke(app, ["runs", command, "nope"])
    message = 'callboard: run: "nope" is not the id of a run; `callboard runs list` shows the ids\n'
    assert (result.exit_code, result.stderr) == (2, message)
