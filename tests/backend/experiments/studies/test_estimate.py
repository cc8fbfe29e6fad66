from datetime import UTC, datetime, timedelta

import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.db import deadline
from backend.db.deadline import RequestEnded
from backend.db.engine import reading
from backend.experiments.specs.study import StudySpec
from backend.experiments.studies import estimate
from tests.backend.experiments.studies.test_endpoints import (
    STUDIES,
    created,
    detail,
    end_runs,
    n_runs,
    reconcile,
    study_body,
)
from tests.support.rows import add_host
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_estimate_counts_reused_runs_and_uses_measured_rates(service: RunningService, client: Client) -> None:
    body = {"study": study_body(environments=["CartPole-v1"])}
    first = client.post(f"{STUDIES}/estimate", json=body).json()
    assert (first["n_runs"], first["n_reused"], first["time_s"]) == (4, 0, None)
    assert {combination["algorithm"] for combination in first["unmeasured"]} == {"paac", "a3c"}
    assert first["agent_steps"] == 40_000
    study = created(client, environments=["CartPole-v1"], draws={"n": 1})
    end_runs(service.engine)
    reconcile(service.engine, study)
    second = client.post(f"{STUDIES}/estimate", json=body).json()
    assert (second["n_reused"], second["agent_steps"], second["unmeasured"]) == (2, 20_000, [])
    assert second["time_s"] == pytest.approx(2 * (10_000 / 500 + 5))
    assert n_runs(service.engine) == 2


def test_estimate_counts_the_slots_of_hosts_that_can_train_the_runs(sqlite_service: RunningService) -> None:
    client, engine = sqlite_service.client, sqlite_service.engine
    add_host(engine, "a", slots=1)
    add_host(engine, "other-queue", slots=8, queues=["gpu"])
    add_host(engine, "away", slots=8, last_seen_at=datetime.now(UTC) - timedelta(days=7))
    body = study_body(environments=["CartPole-v1"])
    for run, n_slots in (({}, 1), ({"queue": "gpu"}, 8), ({"host": "a"}, 1)):
        study = body | {"run": body["run"] | run}
        assert client.post(f"{STUDIES}/estimate", json={"study": study}).json()["slots"] == n_slots, run


def test_time_left_of_runs_that_a_time_limits_needs_no_rate(sqlite_service: RunningService) -> None:
    run = {"stop": {"wall_time_s": 30}}
    study = created(sqlite_service.client, environments=["CartPole-v1"], draws={"n": 1}, run=run)
    assert detail(sqlite_service.client, study)["time_left_s"] == pytest.approx(2 * (30 + 5))


def test_time_left_is_by_the_limit_that_each_run_has_drawn(sqlite_service: RunningService) -> None:
    draws = {"n": 2, "space": {"stop.wall_time_s": {"values": [30, 90]}}}
    study = created(sqlite_service.client, environments=["CartPole-v1"], draws=draws)
    assert detail(sqlite_service.client, study)["time_left_s"] == pytest.approx(2 * (30 + 90 + 2 * 5))


def test_estimate_has_memory_and_processes_and_warns_as_the_runs_would(
    sqlite_service: RunningService,
) -> None:
    add_host(sqlite_service.engine, "small", memory_bytes=8 * 2**30, cpu_count=2)
    body = {"item": "gorila-table-4", "scale": "paper"}
    cost = sqlite_service.client.post(f"{STUDIES}/estimate", json=body).json()
    assert (cost["n_runs"], cost["processes"]) == (490, 131)
    assert cost["memory_bytes"] > 100 * 2**30
    gorila = [warning for warning in cost["warnings"] if warning.startswith("Gorila DQN: ")]
    assert ["GiB of memory" in gorila[0], "131 processes on 2 cores" in gorila[1]] == [True, True]


def test_estimate_ends_with_its_request(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def end() -> None:
        raise RequestEnded

    monkeypatch.setattr(deadline, "check", end)
    spec = StudySpec.model_validate(study_body(environments=["CartPole-v1"]))
    with reading(engine) as session, pytest.raises(RequestEnded):
        estimate.estimate(session, spec, 60.0)
