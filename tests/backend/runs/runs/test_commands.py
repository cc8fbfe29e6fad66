"""Runs of hosts' commands, up to their start."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backend.db import Host
from backend.db.engine import writing
from backend.platform.principals import Role
from tests.support import commands
from tests.support.rows import add_host
from tests.support.service import RunningService, created_run
from tests.workers.support import claim

pytestmark = pytest.mark.service

RUNS, SWEEPS = "/api/v1/runs", "/api/v1/sweeps"


@pytest.fixture
def service(service: RunningService, tmp_path: Path) -> RunningService:
    """A service with a host that has the command `train`, and one that has none."""
    add_host(service.engine, "a", commands=commands.published(tmp_path))
    add_host(service.engine, "b")
    return service


def problems(answer: Any) -> dict[str, str]:
    assert answer.status_code == 422, answer.text
    return {error["field"]: error["message"] for error in answer.json()["errors"]}


def test_commands_are_listed_with_their_schema_and_hosts(service: RunningService) -> None:
    [command] = service.client_as(Role.VIEWER).get("/api/v1/commands").json()["items"]
    assert (command["name"], command["hosts"], command["has_seed"]) == ("train", ["a"], True)
    assert command["config_schema"]["properties"]["lr"]["maximum"] == 1
    assert command["defaults"]["optimizer"] == "adam"


def test_runs_of_a_grid_are_queued_and_claimed_by_the_host_of_the_command_alone(
    service: RunningService,
) -> None:
    body = {"command": "train", "grid": {"config.lr": [0.1, 0.2]}, "seeds": [0, 1], "tags": ["mine"]}
    runs = service.client.post(RUNS, json=body).json()["items"]
    assert [run["name"] for run in runs] == [
        "train lr=0.1 seed 0", "train lr=0.1 seed 1", "train lr=0.2 seed 0", "train lr=0.2 seed 1",
    ]  # fmt: skip
    assert {(run["state"], run["origin"], run["command"]) for run in runs} == {
        ("queued", "external", "train")
    }
    assert claim(service.engine, "b") is None
    claimed = claim(service.engine, "a")
    assert claimed is not None
    assert (claimed.run_id, claimed.is_command, claimed.may_use_gpu) == (runs[0]["id"], True, False)


def test_more_seeds_of_a_command_are_queued_while_a_host_has_it_as_it_was(
    service: RunningService, tmp_path: Path
) -> None:
    client, body = (
        service.client,
        {"command": "train", "config": {"lr": 0.1}, "project": "p", "tags": ["mine"]},
    )
    run = created_run(client.post(RUNS, json=body))
    request = {"items": [{"run": run["id"], "n": 2}]}
    for seeds in ([1, 2], [3, 4]):
        more = client.post("/api/v1/comparisons/seeds", json=request).json()["items"]
        assert [other["seed"] for other in more] == seeds
        for other in more:
            same = ("command", "project", "tags", "algorithm", "state", "origin")
            assert {name: other[name] for name in same} == {name: run[name] for name in same}
            assert other["name"] == f"train lr=0.1 seed {other['seed']}"
    claimed = [claim(service.engine, "a") for _ in range(5)]
    assert all(claimed)
    (tmp_path / "other").mkdir()
    with writing(service.engine) as session:
        session.get_one(Host, "a").commands = commands.published(tmp_path / "other")
    answer = client.post("/api/v1/comparisons/seeds", json=request)
    assert (answer.status_code, "as it was" in answer.json()["detail"]) == (409, True)


def test_run_of_another_definition_waits_and_says_for_what(service: RunningService, tmp_path: Path) -> None:
    run = created_run(service.client.post(RUNS, json={"command": "train"}))
    (tmp_path / "other").mkdir()
    with writing(service.engine) as session:
        session.get_one(Host, "a").commands = commands.published(tmp_path / "other")
    assert claim(service.engine, "a") is None
    reason = service.client.get(f"{RUNS}/{run['id']}/queue").json()["reason"]
    assert reason.startswith(
        "no host that may claim it has the command train as it was when the run was created"
        " (a now: otherwise)"
    )


def test_of_two_definitions_that_of_live_hosts_counts_or_that_of_the_requested_host(
    service: RunningService, tmp_path: Path
) -> None:
    """Whichever host was heard of last."""
    (tmp_path / "other").mkdir()
    [here], [elsewhere] = commands.published(tmp_path), commands.published(tmp_path / "other")
    gone = datetime.now(UTC) + timedelta(seconds=5)
    add_host(service.engine, "A", commands=[elsewhere], stopped_at=gone, last_seen_at=gone)
    [command] = service.client.get("/api/v1/commands").json()["items"]
    assert (command["hosts"], command["other_hosts"]) == (["a"], ["A"])
    assert command["definition"] == here["definition"]
    run = created_run(service.client.post(RUNS, json={"command": "train"}))
    pinned = created_run(service.client.post(RUNS, json={"command": "train", "host": "A"}))
    assert run["spec"]["package"].endswith(here["definition"])
    assert pinned["spec"]["package"].endswith(elsewhere["definition"])
    claimed = claim(service.engine, "A")
    assert claimed is not None
    assert claimed.run_id == pinned["id"]
    assert claim(service.engine, "A") is None


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"command": "trian"}, "command", 'no host has the command "trian"; hosts have train'),
        ({"command": None}, "command", "no host has the command null; hosts have train"),
        ({"command": ["train"]}, "command", "no host has the command"),
        ({"config": {"lr": 2}}, "config.lr", "must be at most 1, got 2"),
        ({"config": {"mode": "a\n--resume=true"}}, "config.mode", "must match pattern"),
        ({"config": []}, "config", "must be an object"),
        ({"definition": {}}, "definition", "no such field"),
        ({"environment": "CartPole-v1"}, "environment", "a command has none"),
        ({"arguments": ["sh"]}, "arguments", "no such field"),
        ({"grid": {"config.lr": [0.1, 2]}}, "config.lr", "must be at most 1"),
        ({"seeds": [0, "x"]}, "seeds.1", "must be an integer"),
        ({"priority": 1_000}, "priority", "must be at most 100"),
    ],
)
def test_invalid_request_names_the_field(
    service: RunningService, changes: dict[str, Any], field: str, message: str
) -> None:
    named = problems(service.client.post(RUNS, json={"command": "train"} | changes))
    assert message in named[field]
    assert service.client.get(RUNS).json()["total"] == 0


def test_viewers_start_no_command(service: RunningService) -> None:
    assert service.client_as(Role.VIEWER).post(RUNS, json={"command": "train"}).status_code == 403


def test_command_without_seed_takes_none(sqlite_service: RunningService, tmp_path: Path) -> None:
    plain = '\n[plain]\narguments = ["true"]\nfolder = "/"\n'
    plain += 'parameters.lr = { type = "number", default = 0.1, minimum = 0, maximum = 1 }\n'
    add_host(sqlite_service.engine, "a", commands=commands.published(tmp_path, plain))
    post = sqlite_service.client.post
    for field, value in (("seed", 3), ("seeds", [1, 2])):
        assert "takes no seed" in problems(post(RUNS, json={"command": "plain", field: value}))[field]
    sweep = {"name": "s", "run": {"command": "plain"}, "space": {"config.lr": {"values": [0.1, 0.2]}}}
    assert "must be 1" in problems(post(SWEEPS, json=sweep | {"max_seeds": 5}))["max_seeds"]
    answer = post(SWEEPS, json=sweep | {"max_seeds": 1, "racing": None})
    assert answer.status_code == 201, answer.text


def test_sweep_starts_runs_of_a_command(service: RunningService) -> None:
    body = {
        "name": "rates",
        "run": {"command": "train", "config": {"layers": 3}},
        "space": {"config.lr": {"distribution": "log_uniform", "low": 0.01, "high": 1.0}},
        "sampler": "random",
        "n_configurations": 4,
        "max_seeds": 3,
    }
    answer = service.client.post(SWEEPS, json=body)
    assert answer.status_code == 201, answer.text
    sweep = answer.json()
    assert (sweep["algorithm"], sweep["environment"], sweep["n_configurations"]) == ("train", "unknown", 4)
    assert service.client.get(f"{SWEEPS}/{sweep['id']}").status_code == 200
    runs = service.client.get(RUNS).json()["items"]
    assert {run["group"] for run in runs} == {"rates"}
    assert len(runs) == 10
    assert {run["seed"] for run in runs} == {0, 1, 2}
    wrong = body | {"space": {"config.lr": {"values": [0.1, 3]}}, "sampler": "grid", "n_configurations": None}
    assert "must be at most 1" in problems(service.client.post(SWEEPS, json=wrong))["space.config.lr"]
    wrong = body | {"objective": "evaluation"}
    assert "are not evaluated" in problems(service.client.post(SWEEPS, json=wrong))["objective"]


def test_queued_run_of_a_command_is_stopped_and_resumed(service: RunningService) -> None:
    run = created_run(service.client.post(RUNS, json={"command": "train"}))
    path = f"{RUNS}/{run['id']}"
    assert service.client.post(f"{path}/stop").json()["state"] == "stopped"
    assert service.client.post(f"{path}/resume").json()["state"] == "queued"
    assert service.client.post(f"{path}/fork", json={}).status_code in (409, 422)
    assert service.client.delete(path).status_code == 204
