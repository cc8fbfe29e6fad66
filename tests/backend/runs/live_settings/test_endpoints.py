from typing import Any

import pytest
import redis

from backend.db import Run
from backend.db.changes import host_queue
from backend.db.engine import reading, writing
from backend.fleet.hosts import service as hosts
from backend.runs.live_settings import repository
from backend.runs.live_settings import service as live_settings
from backend.runs.runs import service as runs
from backend.specs.events import SettingsChangedEvent
from backend.specs.states import RunState
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def _running(service: RunningService) -> str:
    run = make_run(service.engine, RunState.RUNNING)
    with writing(service.engine) as session:
        _locked(session, run.id).host = "here"
    return run.id


def _locked(session: Any, run_id: str) -> Run:
    run = runs.find(session, run_id, for_update=True)
    assert run is not None
    return run


def _apply(service: RunningService, run_id: str, version: int, refused: str | None = None) -> None:
    event = SettingsChangedEvent(
        version=version, agent_steps=500, frames=2_000, wall_time_s=9.0, changes={}, refused=refused
    )
    with writing(service.engine) as session:
        live_settings.settle(session, _locked(session, run_id), event)


def test_change_is_pending_until_engine_applies_it(service: RunningService, redis_url: str) -> None:
    run_id = _running(service)
    url = f"/api/v1/runs/{run_id}/settings"
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        pending = service.client.patch(url, json={"config": {"learning_rate": 0.1, "beta": 0}}).json()
        assert client.llen(host_queue("here")) == 1
    expected = {"version": 1, "state": "asked", "changes": {"learning_rate": 0.1, "beta": 0.0}}
    assert {name: pending[name] for name in expected} == expected
    before = service.client.get(f"/api/v1/runs/{run_id}").json()["spec"]["config"]
    assert before["learning_rate"] != 0.1
    with reading(service.engine) as session:
        assert [row.version for row in repository.pending(session, run_id)] == [1]
    for _ in range(2):
        _apply(service, run_id, 1)
    config = service.client.get(f"/api/v1/runs/{run_id}").json()["spec"]["config"]
    assert config == before | {"learning_rate": 0.1, "beta": 0.0}
    (row,) = service.client.get(url).json()["items"]
    assert (row["state"], row["agent_steps"], row["wall_time_s"]) == ("applied", 500, 9.0)
    log = service.client.get(f"/api/v1/runs/{run_id}/log", params={"search": "settings"}).json()["items"]
    assert len(log) == 1
    assert f"learning_rate {before['learning_rate']} → 0.1" in log[0]["message"]


def test_versions_are_numbered_and_refused_changes_are_listed(service: RunningService) -> None:
    run_id = _running(service)
    url = f"/api/v1/runs/{run_id}/settings"
    for rate in (0.1, 0.2, 0.3):
        service.client.patch(url, json={"config": {"learning_rate": rate}})
    _apply(service, run_id, 2, refused="too late")
    _apply(service, run_id, 1)
    _apply(service, run_id, 9)
    shown = [(row["version"], row["state"]) for row in service.client.get(url).json()["items"]]
    assert shown == [(3, "asked"), (2, "refused"), (1, "applied")]
    assert service.client.get(f"/api/v1/runs/{run_id}").json()["spec"]["config"]["learning_rate"] == 0.1


def test_change_of_queued_run_is_applied_immediately(service: RunningService) -> None:
    run = make_run(service.engine, RunState.QUEUED)
    url = f"/api/v1/runs/{run.id}"
    changed = service.client.patch(f"{url}/settings", json={"config": {"beta": 0.7}}).json()
    assert changed["state"] == "applied"
    after = service.client.get(url).json()
    assert after["spec"]["config"]["beta"] == 0.7
    assert after["revision"] == run.revision + 1


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.STOPPED, RunState.FAILED])
def test_settings_of_ended_run_are_not_changed(service: RunningService, state: RunState) -> None:
    run = make_run(service.engine, state)
    url = f"/api/v1/runs/{run.id}"
    refused = service.client.patch(f"{url}/settings", json={"config": {"beta": 0.7}})
    assert refused.status_code == 409
    assert f"the run is {state}" in refused.json()["detail"]
    assert service.client.get(url).json()["spec"] == run.spec
    assert service.client.get(f"{url}/settings").json()["items"] == []


def test_more_actors_than_host_memory_allows_are_rejected(service: RunningService) -> None:
    run = make_run(service.engine, RunState.RUNNING, algorithm="ga3c", environment="ALE/Pong-v5")
    url = f"/api/v1/runs/{run.id}/settings"
    with writing(service.engine) as session:
        _locked(session, run.id).host = "here"
        facts: dict[str, Any] = {"queues": ["cpu"], "slots": 1, "cpu_count": 2, "devices": ["cpu"]}
        facts |= {"environments": [], "versions": {}, "memory_bytes": 16 * 2**30}
        hosts.record_heartbeat(session, "here", **facts, load={"memory_used_bytes": 14 * 2**30})
    more: dict[str, Any] = {"n_actors": 256, "beta": 0.02}
    refused = service.client.patch(url, json={"config": more})
    assert refused.status_code == 422
    assert [e["field"] for e in refused.json()["errors"]] == ["config.n_actors"]
    assert service.client.get(url).json()["items"] == []
    assert service.client.patch(url, json={"config": {"n_actors": 34}}).status_code == 200
    _apply(service, run.id, 1)
    with reading(service.engine) as session:
        now = runs.find(session, run.id)
        assert now is not None
        assert now.memory_estimate_bytes > run.memory_estimate_bytes


def test_settings_that_cannot_change_live_are_rejected_with_field(
    service: RunningService, subtests: pytest.Subtests
) -> None:
    run_id = _running(service)
    url = f"/api/v1/runs/{run_id}/settings"
    for config, field in [
        ({"n_e": 8}, "config.n_e"),
        ({"network": "mlp"}, "config.network"),
        ({"colour": 1}, "config.colour"),
        ({"learning_rate": -1}, "config.learning_rate"),
        ({"learning_rate": "0.1"}, "config.learning_rate"),
        ({"learning_rate": None}, "config.learning_rate"),
        ({}, "config"),
        ([], "config"),
    ]:
        with subtests.test(config=str(config)):
            answer = service.client.patch(url, json={"config": config})
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert service.client.get(url).json()["items"] == []
    assert (
        service.client.patch(f"/api/v1/runs/{'0' * 26}/settings", json={"config": {"beta": 1}}).status_code
        == 404
    )
