"""Sweeps whose runs are of a script that somebody starts in a terminal."""

from typing import Any

import pytest

from backend.experiments.cells import tpe
from tests.support.service import RunningService
from tests.workers.support import expire_lease

pytestmark = pytest.mark.service

SWEEPS = "/api/v1/sweeps"
BODY: dict[str, Any] = {
    "name": "rates",
    "run": {"origin": "external", "algorithm": "mine", "environment": "CartPole-v1", "config": {"n": 3}},
    "space": {"config.lr": {"values": [0.1, 0.2]}},
    "max_seeds": 1,
    "racing": None,
}


@pytest.fixture
def sweep(sqlite_service: RunningService) -> str:
    """Path of a sweep of two configurations with one seed each."""
    answer = sqlite_service.client.post(SWEEPS, json=BODY)
    assert answer.status_code == 201, answer.text
    assert answer.json()["runs"] == {}
    return f"{SWEEPS}/{answer.json()['id']}"


def take(service: RunningService, sweep: str) -> dict[str, Any]:
    answer = service.client.post(f"{sweep}/next")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def report(service: RunningService, sweep: str, run: str, state: str, **more: Any) -> Any:
    return service.client.post(f"{sweep}/report", json={"run": run, "state": state} | more)


def log_score(service: RunningService, due: dict[str, Any], score: float) -> None:
    script = service.client_with(due["token"])
    body = {"source": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "sequence": 1, "episodes": [
        {"agent_steps": 10, "wall_time_s": 1.0, "return": score, "length": 10}]}  # fmt: skip
    answer = script.post(f"/api/v1/runs/{due['run']}/episodes", json=body)
    assert answer.status_code == 200, answer.text


def test_configurations_are_taken_one_by_one_until_none_is_left(
    sqlite_service: RunningService, sweep: str
) -> None:
    first, second = take(sqlite_service, sweep), take(sqlite_service, sweep)
    assert [due["config"] for due in (first, second)] == [{"n": 3, "lr": 0.1}, {"n": 3, "lr": 0.2}]
    assert (first["seed"], first["state"]) == (None, "running")
    waiting = take(sqlite_service, sweep)
    assert (waiting["run"], waiting["token"]) == (None, None)
    run = sqlite_service.client.get(f"/api/v1/runs/{first['run']}").json()
    assert (run["name"], run["group"], run["state"]) == ("mine CartPole-v1 lr=0.1", "rates", "running")
    for due, score in ((first, 5.0), (second, 7.0)):
        log_score(sqlite_service, due, score)
        assert report(sqlite_service, sweep, due["run"], "finished").json()["state"] == "finished"
    last = take(sqlite_service, sweep)
    assert (last["run"], last["state"]) == (None, "finished")
    assert sqlite_service.client.get(sweep).json()["best"]["settings"] == {"config.lr": 0.2}


def test_token_writes_its_run_alone_and_ends_with_it(sqlite_service: RunningService, sweep: str) -> None:
    first, second = take(sqlite_service, sweep), take(sqlite_service, sweep)
    script = sqlite_service.client_with(first["token"])
    path = f"/api/v1/runs/{first['run']}/heartbeat"
    assert script.post(path, json={}).status_code == 200
    assert script.post(f"/api/v1/runs/{second['run']}/heartbeat", json={}).status_code == 403
    assert script.post(f"{sweep}/next").status_code == 403
    report(sqlite_service, sweep, first["run"], "failed", reason="it broke")
    assert script.post(path, json={}).status_code == 401


def test_freed_configuration_and_that_of_a_lost_run_are_taken_again(
    sqlite_service: RunningService, sweep: str
) -> None:
    first, second = take(sqlite_service, sweep), take(sqlite_service, sweep)
    assert report(sqlite_service, sweep, first["run"], "stopped", free=True).json()["state"] == "stopped"
    again = take(sqlite_service, sweep)
    assert again["config"] == first["config"]
    assert again["run"] != first["run"]
    assert report(sqlite_service, sweep, first["run"], "running").status_code == 404
    expire_lease(sqlite_service.engine, second["run"])
    assert sqlite_service.app_state is not None
    from backend.coordination import claims
    from backend.db.engine import writing

    with writing(sqlite_service.engine) as session:
        assert claims.expire(session) == [second["run"]]
    assert take(sqlite_service, sweep)["config"] == second["config"]


def test_script_that_was_to_stop_has_not_finished(sqlite_service: RunningService, sweep: str) -> None:
    due = take(sqlite_service, sweep)
    sqlite_service.client.post(f"/api/v1/runs/{due['run']}/stop")
    assert report(sqlite_service, sweep, due["run"], "running").json()["stop_requested"] is True
    assert report(sqlite_service, sweep, due["run"], "finished").json()["state"] == "stopped"


def test_workers_start_none_of_its_runs_and_retry_frees_the_failed(
    sqlite_service: RunningService, sweep: str
) -> None:
    due = take(sqlite_service, sweep)
    report(sqlite_service, sweep, due["run"], "failed")
    assert sqlite_service.client.post(f"{sweep}/retry").status_code == 200
    assert take(sqlite_service, sweep)["config"] == due["config"]
    plain = BODY | {
        "run": {"algorithm": "paac", "environment": "CartPole-v1", "stop": {"agent_steps": 9}},
        "space": {"config.learning_rate": {"values": [0.1, 0.2]}},
    }
    other = sqlite_service.client.post(SWEEPS, json=plain).json()["id"]
    assert sqlite_service.client.post(f"{SWEEPS}/{other}/next").status_code == 409


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"space": {"config.--lr": {"values": [1, 2]}}}, "space.config.--lr", "the name must be a letter"),
        ({"space": {"config.lr": {"values": ["a\nb", "c"]}}}, "space.config.lr", "must be one line"),
        ({"run": BODY["run"] | {"config": {"-x": 1}}}, "run.config.-x", "the name must be a letter"),
        ({"run": BODY["run"] | {"config": {"x": [1]}}}, "run.config.x", "must be a boolean, a finite number"),
        ({"space": {"stop.agent_steps": {"values": [1, 2]}}}, "space.stop.agent_steps", "config only"),
        ({"objective": "evaluation"}, "objective", "are not evaluated"),
        ({"run": BODY["run"] | {"origin": "callboard"}}, "run.origin", "must be external"),
        ({"run": {"origin": "external", "algorithm": "mine"}}, "run.environment", "is required"),
    ],
)
def test_invalid_request_names_the_field(
    sqlite_service: RunningService, changes: dict[str, Any], field: str, message: str
) -> None:
    answer = sqlite_service.client.post(SWEEPS, json=BODY | changes)
    assert answer.status_code == 422, answer.text
    assert message in {error["field"]: error["message"] for error in answer.json()["errors"]}[field]
    assert sqlite_service.client.get(SWEEPS).json()["items"] == []


def test_scores_choose_further_configurations(sqlite_service: RunningService) -> None:
    """What is chosen is made of the runs alone: nothing else is stored."""
    pytest.importorskip("optuna")
    space = {"config.lr": {"distribution": "log_uniform", "low": 1e-4, "high": 1.0}}
    body = BODY | {"space": space, "sampler": "tpe", "n_configurations": 14, "concurrency": 1}
    sweep = f"{SWEEPS}/{sqlite_service.client.post(SWEEPS, json=body).json()['id']}"
    assert len(sqlite_service.client.get(sweep).json()["configurations"]) == 10
    n_taken = 0
    while (due := take(sqlite_service, sweep))["run"] is not None:
        n_taken += 1
        log_score(sqlite_service, due, due["config"]["lr"])
        report(sqlite_service, sweep, due["run"], "finished")
    row = sqlite_service.client.get(sweep).json()
    assert (n_taken, row["state"], len(row["configurations"])) == (14, "finished", 14)
    rates = [configuration["settings"]["config.lr"] for configuration in row["configurations"]]
    assert min(rates[11:]) > max(rates[:10])
    further = sqlite_service.client.post(f"{sweep}/extend", json={"n_configurations": 15})
    assert (further.status_code, further.json()["state"]) == (200, "running")
    assert take(sqlite_service, sweep)["run"] is not None


def test_sampler_without_its_extra_is_refused(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpe, "is_installed", lambda: False)
    body = BODY | {"sampler": "tpe", "n_configurations": 12}
    [error] = sqlite_service.client.post(SWEEPS, json=body).json()["errors"]
    assert error["field"] == "sampler"
    assert error["message"] == "needs Optuna, which the server lacks: pip install 'callboard[optuna]'"


def test_sampler_that_compares_configurations_itself_takes_no_race(sqlite_service: RunningService) -> None:
    body = BODY | {"sampler": "tpe", "n_configurations": 12, "racing": {}, "max_seeds": 3}
    errors = sqlite_service.client.post(SWEEPS, json=body).json()["errors"]
    assert "racing" in {error["field"] for error in errors}
