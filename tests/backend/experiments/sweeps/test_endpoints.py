from pathlib import Path
from typing import Any

import pytest
from httpx import Client
from sqlalchemy import Engine, select

from backend.db import ExperimentCell, Run
from backend.db.engine import reading, writing
from backend.experiments.experiments import service as experiments
from backend.runs.runs import service as runs
from backend.specs.environments.custom import read_custom_environments
from backend.specs.states import ENDED, RunState
from tests.support import custom_environment
from tests.support.rows import CARTPOLE, PATHS, add_host, evaluation_row
from tests.support.service import RunningService

pytestmark = pytest.mark.service

SWEEPS = "/api/v1/sweeps"
RATES = {"config.learning_rate": {"values": [0.001, 0.01]}}


def request(**changes: Any) -> dict[str, Any]:
    return {"name": "rates", "run": CARTPOLE, "space": RATES, "max_seeds": 4} | changes


def created(client: Client, **changes: Any) -> dict[str, Any]:
    answer = client.post(SWEEPS, json=request(**changes))
    assert answer.status_code == 201, answer.text
    sweep: dict[str, Any] = answer.json()
    return sweep


def detail(client: Client, sweep: dict[str, Any]) -> dict[str, Any]:
    answer = client.get(f"{SWEEPS}/{sweep['id']}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def members(engine: Engine) -> list[tuple[Any, ...]]:
    with reading(engine) as session:
        query = select(ExperimentCell.arm, ExperimentCell.seed, Run.state).join(Run)
        return [
            tuple(row) for row in session.execute(query.order_by(ExperimentCell.seed, ExperimentCell.arm))
        ]


def end_runs(engine: Engine, scores: dict[float, float], state: RunState = RunState.FINISHED) -> None:
    """End every run that has not; its score is that of its learning rate, and a tenth of its seed."""
    with writing(engine) as session:
        for run in session.scalars(select(Run).where(Run.state.not_in(ENDED))).all():
            for after in PATHS[state][len(PATHS[RunState(run.state)]) :]:
                runs.transition(session, run, after, "for the test")
            run.score = scores[run.spec["config"]["learning_rate"]] + run.seed / 10
            run.agent_steps = 10_000 if state == RunState.FINISHED else 0


def reconcile(engine: Engine, sweep: dict[str, Any]) -> None:
    while True:
        with writing(engine) as session:
            if not experiments.reconcile(session, sweep["id"]):
                return


def test_sweep_starts_its_first_runs_immediately(service: RunningService, client: Client) -> None:
    sweep = created(client, concurrency=5, run=CARTPOLE | {"project": "rates of June"})
    assert (sweep["state"], sweep["n_configurations"], sweep["runs"]) == ("running", 2, {"queued": 5})
    assert members(service.engine) == [
        (0, 0, "queued"), (1, 0, "queued"), (0, 1, "queued"), (1, 1, "queued"), (0, 2, "queued")
    ]  # fmt: skip
    started = client.get("/api/v1/runs", params={"spec": True}).json()["items"]
    assert {(member["group"], member["project"]) for member in started} == {("rates", "rates of June")}
    assert {(member["spec"]["config"]["learning_rate"], member["seed"]) for member in started} == {
        (0.001, 0), (0.01, 0), (0.001, 1), (0.01, 1), (0.001, 2)
    }  # fmt: skip
    assert len({member["name"] for member in started}) == 5
    assert all("learning_rate=" in member["name"] for member in started)


def test_race_ends_with_the_best_configuration(service: RunningService, client: Client) -> None:
    sweep = created(client, max_seeds=8)
    scores = {0.001: 10.0, 0.01: 200.0}
    for _ in range(8):
        end_runs(service.engine, scores)
        reconcile(service.engine, sweep)
    sweep_detail = detail(client, sweep)
    assert (sweep_detail["state"], sweep_detail["state_reason"]) == (
        "finished",
        "all other configurations are eliminated",
    )
    assert sweep_detail["ended_at"] is not None
    assert (sweep_detail["best"]["number"], sweep_detail["best"]["settings"]) == (
        1,
        {"config.learning_rate": 0.01},
    )
    lost, best = sweep_detail["configurations"]
    assert lost["eliminated"].startswith("worse than another after ")
    assert best["eliminated"] is None
    assert lost["n"] == best["n"] < 8
    assert best["iqm"] == pytest.approx(200 + (best["n"] - 1) / 20)
    assert [run["score"] for run in best["runs"]] == [200 + seed / 10 for seed in range(best["n"])]
    assert (sweep_detail["n_planned"], sweep_detail["n_not_needed"]) == (16, 8 - lost["n"])
    (listed,) = client.get(SWEEPS).json()["items"]
    assert (listed["n_active"], listed["runs"]) == (1, {"finished": 2 * best["n"]})
    assert listed["n_not_needed"] == sweep_detail["n_not_needed"]


def test_sweep_reconciled_by_two_processes_starts_each_run_once(
    service: RunningService, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = created(client, concurrency=3)
    before = members(service.engine)
    for _ in range(3):
        reconcile(service.engine, sweep)
    assert members(service.engine) == before
    with reading(service.engine) as session:
        assert experiments.running(session) == [sweep["id"]]
        assert not experiments.is_due(session, sweep["id"])
    end_runs(service.engine, {0.001: 1.0, 0.01: 1.0})
    with reading(service.engine) as session:
        assert experiments.is_due(session, sweep["id"])
        monkeypatch.setattr(experiments, "ALGORITHMS", {})  # as if it were of a distribution that is not here
        assert not experiments.is_due(session, sweep["id"])


def test_scores_of_evaluations_can_be_the_objective(service: RunningService, client: Client) -> None:
    sweep = created(client, objective="evaluation", racing=None, max_seeds=1)
    end_runs(service.engine, {0.001: 1.0, 0.01: 1.0})
    with writing(service.engine) as session:
        for at, run in enumerate(session.scalars(select(Run).order_by(Run.id)).all()):
            session.add(evaluation_row(run.id, 100, 3.0))
            session.add(evaluation_row(run.id, 200, 50.0 + at))
            session.flush()
            session.add(evaluation_row(run.id, 200, 90.0))  # of the best parameters
            session.add(evaluation_row(run.id, 300, 99.0, superseded=True))
            session.add(evaluation_row(run.id, 400, None))
    reconcile(service.engine, sweep)
    sweep_detail = detail(client, sweep)
    assert [configuration["iqm"] for configuration in sweep_detail["configurations"]] == [50.0, 51.0]
    assert sweep_detail["state"] == "finished"


def test_running_member_of_a_stopped_sweep_gets_a_stop_command(
    service: RunningService, client: Client
) -> None:
    sweep = created(client, concurrency=1)
    with writing(service.engine) as session:
        (run,) = session.scalars(select(Run)).all()
        runs.transition(session, run, RunState.STARTING, "for the test")
        runs.transition(session, run, RunState.RUNNING, "for the test")
    stopped = client.post(f"{SWEEPS}/{sweep['id']}/stop").json()
    assert stopped["runs"] == {"stopping": 1}


def test_failed_and_deleted_members_are_retried(service: RunningService, client: Client) -> None:
    sweep = created(client, max_seeds=3, racing=None)
    end_runs(service.engine, {0.001: 1.0, 0.01: 2.0}, RunState.FAILED)
    reconcile(service.engine, sweep)
    assert detail(client, sweep)["state_reason"] == "no configuration has a score"
    first = detail(client, sweep)["configurations"][0]["runs"][0]["run"]
    assert client.delete(f"/api/v1/runs/{first}").status_code == 204
    assert detail(client, sweep)["configurations"][0]["runs"][0] == {
        "run": None, "seed": 0, "state": "deleted", "score": None
    }  # fmt: skip
    retried = client.post(f"{SWEEPS}/{sweep['id']}/retry").json()
    assert (retried["state"], retried["n_active"], retried["runs"]) == ("running", 2, {"queued": 5})
    reconcile(service.engine, sweep)
    assert [state for _, _, state in members(service.engine)] == ["queued"] * 6
    end_runs(service.engine, {0.001: 1.0, 0.01: 2.0})
    reconcile(service.engine, sweep)
    assert detail(client, sweep)["best"]["iqm"] == pytest.approx(2.1)
    assert client.post(f"{SWEEPS}/{sweep['id']}/retry").status_code == 409


def test_member_that_was_resumed_with_another_limit_has_no_score_and_is_trained_again(
    service: RunningService, client: Client
) -> None:
    sweep = created(client, max_seeds=2, racing=None)
    end_runs(service.engine, {0.001: 1.0, 0.01: 2.0})
    reconcile(service.engine, sweep)
    assert client.post(f"{SWEEPS}/{sweep['id']}/retry").status_code == 409
    with writing(service.engine) as session:
        query = select(Run).join(ExperimentCell).where(ExperimentCell.arm == 0, ExperimentCell.seed == 1)
        (run,) = session.scalars(query)
        run.attempt, run.score = 2, 500.0
        run.spec = run.spec | {"stop": run.spec["stop"] | {"agent_steps": 999_999}}
    changed = detail(client, sweep)
    assert changed["runs"] == {"finished": 3, "changed": 1}
    assert changed["configurations"][0]["runs"][1] | {"run": ""} == {
        "run": "", "seed": 1, "state": "changed", "score": None
    }  # fmt: skip
    assert changed["best"]["number"] == 1
    retried = client.post(f"{SWEEPS}/{sweep['id']}/retry").json()
    assert (retried["state"], retried["runs"]) == ("running", {"finished": 3})
    reconcile(service.engine, sweep)
    assert detail(client, sweep)["runs"] == {"finished": 3, "queued": 1}
    assert client.get(f"/api/v1/runs/{run.id}").json()["score"] == 500.0


def test_member_of_a_varied_limit_keeps_its_score_after_a_second_attempt(
    service: RunningService, client: Client
) -> None:
    run = CARTPOLE | {
        "config": CARTPOLE.get("config", {}) | {"learning_rate": 0.001},
        "stop": {"wall_time_s": 3600},
    }
    space = {"stop.agent_steps": {"values": [1000, 2000]}}
    sweep = created(client, run=run, space=space, max_seeds=2, racing=None)
    with writing(service.engine) as session:
        for member in session.scalars(select(Run)):
            member.attempt = 2
    end_runs(service.engine, {0.001: 1.0})
    reconcile(service.engine, sweep)
    assert detail(client, sweep)["runs"] == {"finished": 4}
    assert client.post(f"{SWEEPS}/{sweep['id']}/retry").status_code == 409


def test_retry_resumes_a_member_that_was_stopped_at_its_limit(
    service: RunningService, client: Client
) -> None:
    sweep = created(client, concurrency=1, max_seeds=1, racing=None)
    with writing(service.engine) as session:
        (run,) = session.scalars(select(Run)).all()
        for after in PATHS[RunState.STOPPED]:
            runs.transition(session, run, after, "for the test")
        run.agent_steps = run.spec["stop"]["agent_steps"]
    client.post(f"{SWEEPS}/{sweep['id']}/stop")
    retried = client.post(f"{SWEEPS}/{sweep['id']}/retry").json()
    assert (retried["state"], retried["runs"]) == ("running", {"queued": 1})


def test_extended_sweep_gets_seeds_and_values(service: RunningService, client: Client) -> None:
    sweep = created(client, max_seeds=2, racing=None)
    end_runs(service.engine, {0.001: 1.0, 0.01: 2.0})
    reconcile(service.engine, sweep)
    assert detail(client, sweep)["state"] == "finished"
    body = {"max_seeds": 3, "values": {"config.learning_rate": [0.1]}}
    extended = client.post(f"{SWEEPS}/{sweep['id']}/extend", json=body).json()
    assert (extended["state"], extended["n_configurations"]) == ("running", 3)
    assert extended["spec"]["space"]["config.learning_rate"]["values"] == [0.001, 0.01, 0.1]
    reconcile(service.engine, sweep)
    new = [(number, seed) for number, seed, state in members(service.engine) if state == "queued"]
    assert sorted(new) == [(0, 2), (1, 2), (2, 0), (2, 1), (2, 2)]


def test_sweep_in_a_custom_environment_is_extended(
    service: RunningService, client: Client, tmp_path: Path
) -> None:
    custom = read_custom_environments(custom_environment.write(tmp_path))
    rows = [entry.describe().model_dump(mode="json") for entry in custom.values()]
    add_host(service.engine, "a", environments=[*custom], custom_environments=rows)
    sweep = created(client, run=CARTPOLE | {"environment": "Custom/Line-v0"})
    answer = client.post(f"{SWEEPS}/{sweep['id']}/extend", json={"max_seeds": 5})
    assert answer.status_code == 200, answer.text
    assert answer.json()["environment"] == "Custom/Line-v0"


def test_sweeps_are_listed_page_by_page_latest_first(service: RunningService, client: Client) -> None:
    ids = [created(client, name=f"sweep {at}", concurrency=1)["id"] for at in range(3)]
    first = client.get(SWEEPS, params={"limit": 2}).json()
    rest = client.get(SWEEPS, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [item["id"] for item in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next_cursor"] is None


def test_random_sweep_is_extended_by_further_configurations(service: RunningService, client: Client) -> None:
    space = {"config.learning_rate": {"distribution": "log_uniform", "low": 1e-4, "high": 1e-1}}
    sweep = created(client, space=space, sampler="random", n_configurations=3)
    before = [configuration["settings"] for configuration in detail(client, sweep)["configurations"]]
    path = f"{SWEEPS}/{sweep['id']}/extend"
    assert client.post(path, json={"n_configurations": 5}).json()["n_configurations"] == 5
    assert [configuration["settings"] for configuration in detail(client, sweep)["configurations"]][
        :3
    ] == before
    answer = client.post(path, json={"n_configurations": 4})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "n_configurations", "message": "must be at least 5, as now"}]


def test_name_notes_and_concurrency_can_change(service: RunningService, client: Client) -> None:
    sweep = created(client, concurrency=1)
    changes = {"name": "new", "notes": "**why**", "concurrency": 2}
    changed = client.patch(f"{SWEEPS}/{sweep['id']}", json=changes).json()
    assert (changed["name"], changed["notes"], changed["spec"]["concurrency"]) == ("new", "**why**", 2)
    assert changed["revision"] > sweep["revision"]
    reconcile(service.engine, sweep)
    assert len(members(service.engine)) == 2
    assert {item["group"] for item in client.get("/api/v1/runs").json()["items"]} == {"rates"}
    assert client.patch(f"{SWEEPS}/{sweep['id']}", json={"concurrency": 0}).status_code == 422
    assert client.patch(f"/api/v1/studies/{sweep['id']}", json=changes).status_code == 404


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"space": {"config.learning_rate": {"low": 2.0, "high": 1.0, "n": 3}}},
         "space.config.learning_rate", "low must be below high, got 2 and 1"),
        ({"space": {"config.nothing": {"values": [1]}}}, "space.config.nothing", "no such field"),
        ({"space": {"config.n_e": {"distribution": "integer", "low": 1, "high": 10**6}},
          "sampler": "random", "n_configurations": 10**6}, "n_configurations", "at most 1000"),
        ({"space": {"config.gamma": {"low": 0.1, "high": 0.9, "n": 1000},
                    "config.beta": {"low": 0.1, "high": 0.9, "n": 1000}}},
         "space", "has 1,000,000 combinations; at most 1,000 are allowed"),
        ({"space": {"config.gamma": {"low": 0.1, "high": 0.9, "n": 1000}}, "max_seeds": 11},
         "max_seeds", "1,000 configurations with 11 seeds are more than 10,000 runs"),
        ({"space": {"config.beta": {"distribution": "log_uniform", "low": 0.0, "high": 1.0, "n": 3}}},
         "space.config.beta", "a logarithmic range must be above 0, got low = 0"),
        ({"space": {"config.gamma": {"low": 0.5, "high": 3.0, "n": 3}}}, "space.config.gamma", "at most 1"),
        ({"space": {"config.gamma": {"low": 0.5, "high": 0.9}}}, "space.config.gamma.n", "how many values"),
        ({"space": {"learning_rate": {"values": [1]}}}, "space.learning_rate", "config.learning_rate"),
        ({"space": {"config.gamma": {"values": [0.9, 0.9]}}}, "space.config.gamma", "a value twice"),
        ({"space": {"config.gamma": {"values": []}}}, "space.config.gamma.values", "must not be empty"),
        ({"space": {"config.gamma": {"values": [[0.9]]}}}, "space.config.gamma", "words or booleans"),
        ({"space": {}}, "space", "must not be empty"),
        ({"sampler": "random"}, "n_configurations", "is required"),
        ({"n_configurations": 3}, "n_configurations", "a grid has all combinations"),
        ({"run": CARTPOLE | {"seeds": [1]}}, "run.seeds", "a sweep chooses it"),
        ({"run": CARTPOLE | {"config": {"learning_rate": 0.1}}},
         "space.config.learning_rate", "give it once"),
        ({"run": CARTPOLE | {"algorithm": "none"}}, "run.algorithm", "unknown algorithm"),
        ({"run": CARTPOLE | {"stop": {}}}, "run.stop", "set at least one limit"),
        ({"run": CARTPOLE | {"custom": {}}}, "run.custom", "no such field"),
        ({"run": CARTPOLE | {"package": "mine==1.0"}}, "run.package", "no such field"),
        ({"run": CARTPOLE | {"config": 3}}, "run.config", "must be an object"),
        ({"run": CARTPOLE | {"environment": "callboard/none"}}, "run.environment", "unknown environment"),
        ({"racing": {"initial_seeds": 9}}, "max_seeds", "must be at least racing.initial_seeds, 9"),
        ({"racing": {"initial_seeds": 2}}, "racing.initial_seeds", "at least 3"),
        ({"protocol": "plain"}, "protocol", "set objective to evaluation"),
        ({"objective": "evaluation", "protocol": "noop_starts"}, "protocol", "noop_starts"),
        ({"objective": "evaluation", "run": CARTPOLE | {"config": {"evaluation_episodes": 0}}},
         "objective", "evaluation_episodes is 0"),
        ({"objective": "evaluation", "space": {"config.evaluation_episodes": {"values": [30, 0]}}},
         "objective", "evaluation_episodes is 0"),
        ({"objective": "evaluation", "run": CARTPOLE | {"environment": "ALE/Pong-v5"},
          "space": {"environment_config.sticky_actions": {"values": [0.0, 0.25]}}},
         "objective", "different protocols: noop_starts, sticky_actions_5min"),
        ({"space": {"config.n_e": {"distribution": "integer", "low": 0, "high": 1e30, "n": 3}}},
         "space.config.n_e", "must be within"),
        ({"name": ""}, "name", "must not be empty"),
        ({"name": "a\x00b"}, "name", "null characters"),
        ({"run": CARTPOLE | {"tags": ["\x00"]}}, "run.tags.0", "must not contain null characters"),
        ({"concurrency": True}, "concurrency", "an integer"),
        ({"else": 1}, "else", "no such field"),
    ],
)  # fmt: skip
def test_wrong_input_names_the_field_and_starts_nothing(
    sqlite_service: RunningService, changes: dict[str, Any], field: str, words: str
) -> None:
    answer = sqlite_service.client.post(SWEEPS, json=request(**changes))
    assert answer.status_code == 422, answer.text
    named = {error["field"]: error["message"] for error in answer.json()["errors"]}
    assert words in named[field], named
    assert sqlite_service.client.get(SWEEPS).json() == {"items": [], "next_cursor": None}
    assert members(sqlite_service.engine) == []


def test_wrong_extension_changes_nothing(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    sweep = created(client)
    before = detail(client, sweep)
    for body, field in (
        ({}, "body"),
        ({"max_seeds": 3}, "max_seeds"),
        ({"n_configurations": 9}, "n_configurations"),
        ({"values": {"config.gamma": [0.9]}}, "values.config.gamma"),
        ({"values": {"config.learning_rate": [0.001]}}, "space.config.learning_rate"),
        ({"values": {"config.learning_rate": [-1]}}, "space.config.learning_rate"),
        ({"budget": {"runs": 0}}, "budget.runs"),
    ):
        answer = client.post(f"{SWEEPS}/{sweep['id']}/extend", json=body)
        assert answer.status_code == 422, body
        assert answer.json()["errors"][0]["field"] == field, answer.text
    assert detail(client, sweep) == before
