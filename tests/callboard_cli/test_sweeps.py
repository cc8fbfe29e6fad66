import json
from collections.abc import Callable

import pytest
from sqlalchemy import select
from typer.testing import Result

from backend.db import Experiment, ExperimentCell, Run
from backend.db.engine import reading
from tests.support.service import RunningService
from tests.support.waiting import until
from workers.host_agent import HostAgent

pytestmark = pytest.mark.service

Callboard = Callable[..., Result]
START = [
    *("sweeps", "start", "--algorithm", "paac", "--environment", "CartPole-v1"),
    *("--agent-steps", "3", "--concurrency", "4"),
]
NOTES = json.dumps({"step_s": 0, "score": "learning_rate"})


def state_of(service: RunningService, sweep_id: str) -> str | None:
    with reading(service.engine) as session:
        sweep = session.get(Experiment, sweep_id)
        return sweep.state if sweep else None


@pytest.mark.long
def test_sweep_is_raced_to_its_end_by_a_worker(
    callboard: Callboard, worker: HostAgent, sqlite_service: RunningService
) -> None:
    """The fake engine's score is the learning rate and a thousandth of the seed."""
    body = {
        "name": "rates",
        "run": {
            "algorithm": "paac", "environment": "CartPole-v1", "stop": {"agent_steps": 3}, "notes": NOTES
        },
        "space": {"config.learning_rate": {"values": [0.001, 0.002, 0.5]}},
        "max_seeds": 5,
        "concurrency": 4,
    }  # fmt: skip
    sweep_id = sqlite_service.client.post("/api/v1/sweeps", json=body).json()["id"]
    refused = callboard("sweeps", "retry", sweep_id)
    assert (refused.exit_code, refused.output) == (
        2, "callboard: none of its runs has failed, was stopped, deleted or changed\n"
    )  # fmt: skip
    until(lambda: state_of(sqlite_service, sweep_id) == "finished")
    shown = json.loads(callboard("sweeps", "show", sweep_id, "--json").output)
    assert shown["best"]["settings"] == {"config.learning_rate": 0.5}
    first, second, best = shown["configurations"]
    reason = "worse than another after 3 seeds, with 95% confidence"
    assert first["eliminated"] == second["eliminated"] == reason
    assert (best["n"], shown["state_reason"]) == (3, "all other configurations are eliminated")
    assert shown["n_not_needed"] == 4
    with reading(sqlite_service.engine) as session:
        with_run = select(ExperimentCell).where(ExperimentCell.run_id.is_not(None))
        started = [(cell.arm, cell.seed) for cell in session.scalars(with_run)]
        assert sorted(started) == [(number, seed) for number in range(3) for seed in range(3)]
        assert len(session.scalars(select(Run)).all()) == 9
    table = callboard("sweeps", "show", sweep_id).output
    assert "finished, all other configurations are eliminated" in table
    assert "4 of 15 not needed" in table
    assert table.splitlines()[-1].startswith("highest interquartile mean: learning_rate 0.5, with ")
    assert table.splitlines()[-1].endswith("; all others are eliminated")
    assert sweep_id in callboard("sweeps", "list").output


def test_ranges_random_configurations_and_limits_are_sent(callboard: Callboard) -> None:
    vary = ("--vary", "learning_rate=log_uniform:1e-4:1e-2", "--vary", "environment_config.x=1")
    wrong = callboard(*START, *vary, "--configurations", "4")
    assert (wrong.exit_code, wrong.output.count("\n")) == (2, 1)
    message = "no such field; use max_episode_agent_steps"
    assert wrong.output == f"callboard: space.environment_config.x: {message}\n"
    started = callboard(
        *START,
        *vary[:2],
        "--configurations",
        "4",
        "--max-runs",
        "3",
        "--no-racing",
        "--max-seeds",
        "2",
        "--json",
    )
    sweep = json.loads(started.output)
    assert (sweep["name"], sweep["n_configurations"]) == ("paac on CartPole-v1", 4)
    spec = sweep["spec"]
    assert (spec["racing"], spec["budget"]["runs"], spec["max_seeds"]) == (None, 3, 2)
    assert spec["space"]["config.learning_rate"]["distribution"] == "log_uniform"
    assert sweep["runs"] == {"queued": 3}
    assert callboard("experiments", "show", sweep["id"]).output.startswith("paac on CartPole-v1: running")
    stopped = json.loads(callboard("experiments", "stop", sweep["id"], "--json").output)
    assert (stopped["state"], stopped["runs"]) == ("stopped", {"stopped": 3})
    again = callboard("sweeps", "extend", sweep["id"], "--configurations", "5", "--max-runs", "9", "--json")
    extended = json.loads(again.output)
    assert (extended["n_configurations"], extended["spec"]["budget"]["runs"]) == (5, 9)


def test_grid_of_values_and_ranges_is_extended_by_values(callboard: Callboard) -> None:
    vary = ("--vary", "gamma=uniform:0.9:0.99:2", "--vary", "learning_rate=0.001,0.01")
    sweep_id = callboard(*START, *vary, "--name", "grid").output.strip()
    extended = callboard("sweeps", "extend", sweep_id, "--add", "learning_rate=0.1", "--json")
    assert json.loads(extended.output)["n_configurations"] == 6


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("learning_rate", "expected name=value,value or name=uniform:low:high"),
        ("gamma=uniform:0.9", "expected gamma=uniform:low:high:n, the number of values"),
        ("gamma=uniform:0.9:0.99", "expected gamma=uniform:low:high:n, the number of values"),
        ("gamma=uniform:a:b:3", "expected gamma=uniform:low:high:n, the number of values"),
    ],
)
def test_wrong_range_is_refused_in_one_line(callboard: Callboard, vary: str, message: str) -> None:
    refused = callboard(*START, "--vary", vary)
    assert (refused.exit_code, refused.output) == (2, f"callboard: {vary}: {message}\n")
