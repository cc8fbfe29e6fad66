from typing import Any

import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from backend.specs.states import RunState
from tests.backend.experiments.studies.test_endpoints import STUDIES, cells, end_runs, n_runs
from tests.support.rows import external_request, make_fork, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

SWEEPS = "/api/v1/sweeps"
SWEEP: dict[str, Any] = {
    "name": "rates",
    "run": {"algorithm": "paac", "environment": "CartPole-v1", "stop": {"agent_steps": 10_000}},
    "space": {"config.learning_rate": {"values": [0.001, 0.003, 0.01]}},
    "max_seeds": 2,
    "racing": None,
    "concurrency": 100,
}


def drafted(client: Client, **source: Any) -> dict[str, Any]:
    answer = client.post(f"{STUDIES}/draft", json=source)
    assert answer.status_code == 200, answer.text
    draft: dict[str, Any] = answer.json()
    return draft


def problem(client: Client, **source: Any) -> tuple[str, str]:
    answer = client.post(f"{STUDIES}/draft", json=source)
    assert answer.status_code == 422, answer.text
    error = answer.json()["errors"][0]
    return error["field"], error["message"]


def started(client: Client, draft: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(STUDIES, json={"study": draft["study"]})
    assert answer.status_code == 201, answer.text
    study: dict[str, Any] = answer.json()
    return study


def counts(draft: dict[str, Any]) -> tuple[int, int]:
    return draft["estimate"]["n_runs"], draft["estimate"]["n_reused"]


def finished(engine: Engine, **changes: Any) -> str:
    run = make_run(engine, **changes)
    end_runs(engine)
    return run.id


def test_runs_fill_the_cells_of_a_study_of_their_configurations_environments_and_seeds(
    service: RunningService,
) -> None:
    engine, client = service.engine, service.client
    ids = [
        make_run(engine, algorithm=algorithm, environment=environment, config=config, stop=stop, seed=seed).id
        for algorithm, config, stop in (
            ("paac", {"n_e": 4}, {"agent_steps": 10_000}),
            ("paac", {}, {"agent_steps": 10_000}),
            ("a3c", {}, {"agent_steps": 20_000, "score": 400.0}),
        )
        for environment in ("CartPole-v1", "ALE/Pong-v5")
        for seed in (5, 6)
    ]
    end_runs(engine)
    draft = drafted(client, runs=ids[:-1])
    study = draft["study"]
    assert [(arm["label"], arm["config"], arm["stop"]) for arm in study["arms"]] == [
        ("PAAC · nₑ 4", {"n_e": 4}, {"agent_steps": 10_000}),
        ("PAAC", {}, {"agent_steps": 10_000}),
        ("A3C", {}, {"agent_steps": 20_000, "score": 400.0}),
    ]
    assert study["environments"] == ["CartPole-v1", "ALE/Pong-v5"]
    assert (study["draws"]["n"], study["draws"]["first_seed"], study["draws"]["seeds"]) == (2, 5, [])
    assert study["name"] == "PAAC, A3C on 2 environments"
    assert [figure["kind"] for figure in study["figures"]] == ["curves", "table"]
    assert (counts(draft), draft["n_runs"], draft["unused"]) == ((12, 12), 11, [])
    before = n_runs(engine)
    filled = cells(client, started(client, drafted(client, runs=ids)))
    assert {cell["run"] for cell in filled} == set(ids)
    assert n_runs(engine) == before


def test_seeds_that_do_not_follow_each_other_are_kept_and_extended_after_the_last(
    service: RunningService,
) -> None:
    ids = [finished(service.engine, seed=seed) for seed in (900, 3)]
    draft = drafted(service.client, runs=ids)
    assert draft["study"]["draws"]["seeds"] == [3, 900]
    assert counts(draft) == (2, 2)
    study = started(service.client, draft)
    service.client.post(f"{STUDIES}/{study['id']}/extend", json={"draws": 4})
    assert [cell["seed"] for cell in cells(service.client, study)] == [3, 900, 901, 902]


def test_run_that_fills_no_cell_has_a_reason(service: RunningService) -> None:
    engine, client = service.engine, service.client
    used = [finished(engine, seed=seed) for seed in (0, 1)]
    twin = finished(engine, seed=0)
    other = finished(engine, seed=0, device="cpu")
    fork = make_fork(engine, used[0], 5_000, seed=1).id
    end_runs(engine)
    old = make_run(engine, seed=7).id
    end_runs(engine, version="0.0.1")
    demo = finished(engine, seed=8)
    with writing(engine) as session:
        session.get_one(Run, demo).demo = True
    failed = make_run(engine, RunState.FAILED, seed=9).id
    external = client.post("/api/v1/runs", json=external_request()).json()["items"][0]["id"]
    draft = drafted(client, runs=[*used, twin, other, fork, old, demo, failed, external])
    assert draft["n_runs"] == 9
    assert {run["run"]: run["reason"] for run in draft["unused"]} == {
        twin: "another run has its settings and its seed",
        other: "its device is cpu, that of the study auto",
        fork: "it was forked from another run",
        old: "its settings were changed while it trained, or another version of Callboard trained it",
        demo: "it came with the installation",
        failed: "it is not finished: failed",
        external: "it was trained elsewhere",
    }


def test_configurations_of_a_sweep_are_arms(service: RunningService) -> None:
    sweep = service.client.post(SWEEPS, json=SWEEP).json()
    end_runs(service.engine)
    draft = drafted(service.client, sweep=sweep["id"])
    labels = [f"lr {rate}" for rate in (0.001, 0.003, 0.01)]
    assert [arm["label"] for arm in draft["study"]["arms"]] == labels
    assert draft["study"]["name"] == "rates"
    assert [figure["kind"] for figure in draft["study"]["figures"]] == ["curves", "scatter", "table"]
    assert draft["study"]["figures"][1]["setting"] == "config.learning_rate"
    assert (counts(draft), draft["unused"]) == ((6, 6), [])
    assert n_runs(service.engine) == 6


def test_random_configurations_with_a_seed_each_are_the_draws_of_one_arm(service: RunningService) -> None:
    space = {"config.learning_rate": {"distribution": "log_uniform", "low": 1e-4, "high": 1e-2}}
    body = SWEEP | {"space": space, "sampler": "random", "n_configurations": 4, "distinct_seeds": True}
    sweep = service.client.post(SWEEPS, json=body | {"max_seeds": 1}).json()
    end_runs(service.engine)
    draft = drafted(service.client, sweep=sweep["id"])
    assert [arm["label"] for arm in draft["study"]["arms"]] == ["PAAC"]
    assert draft["study"]["draws"]["seeds"] == [0, 100, 200, 300]
    assert (counts(draft), draft["unused"]) == ((4, 4), [])
    study = started(service.client, draft)
    assert {cell["reused"] for cell in cells(service.client, study)} == {True}
    figure = service.client.get(f"{STUDIES}/{study['id']}/figures/scatter-1").json()
    assert figure["n_in"] == 4


def test_what_cannot_become_a_study_is_named(sqlite_service: RunningService) -> None:
    engine, client = sqlite_service.engine, sqlite_service.client
    unknown = "01JD3QZ6W9K0Y5T8H2V4B7N1XC"
    run = finished(engine)
    assert problem(client)[0] == "body"
    assert problem(client, runs=[run], sweep=unknown)[0] == "body"
    assert problem(client, runs=["x"])[0] == "runs.0"
    assert problem(client, runs=[run, unknown]) == (
        "runs.1",
        f"run {unknown} does not exist or has been deleted",
    )
    assert problem(client, sweep=unknown)[0] == "sweep"
    external = client.post("/api/v1/runs", json=external_request()).json()["items"][0]["id"]
    field, message = problem(client, runs=[external])
    assert (field, "it was trained elsewhere" in message) == ("runs", True)
    pong = finished(engine, environment="ALE/Pong-v5", environment_config={"life_loss_terminal": True})
    field, message = problem(client, runs=[run, pong])
    assert (field, "arms.1.environment_config.life_loss_terminal" in message) == ("runs", True)
    several = [make_run(engine, config={"n_e": n}).id for n in range(4, 105)]
    field, message = problem(client, runs=several)
    assert (field, message) == ("runs", "there are 101 configurations; a study has at most 100 arms")
    assert client.get(STUDIES).json()["items"] == []


def test_studies_of_ones_own_are_listed_apart(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    own = started(client, drafted(client, runs=[finished(sqlite_service.engine)]))
    paper = client.post(STUDIES, json={"item": "a3c-figure-2"}).json()
    listed = {
        custom: [item["id"] for item in client.get(STUDIES, params={"custom": custom}).json()["items"]]
        for custom in (True, False)
    }
    assert listed == {True: [own["id"]], False: [paper["id"]]}
