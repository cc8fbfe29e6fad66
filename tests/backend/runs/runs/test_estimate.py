from typing import Any

import pytest
from sqlalchemy import func, select

from backend.db import AuditEntry, Run
from backend.db.engine import reading
from backend.platform.principals import Role
from backend.specs.run import parse_run_spec
from tests.support.rows import CARTPOLE, add_host, external_request
from tests.support.service import RunningService

pytestmark = pytest.mark.service

ESTIMATE = "/api/v1/runs/estimate"
GIB = 2**30
GORILA: dict[str, Any] = {
    "algorithm": "gorila_dqn",
    "environment": "ALE/Pong-v5",
    "stop": {"agent_steps": 1000},
}


def warnings(service: RunningService, body: dict[str, Any]) -> list[str]:
    """Of the estimate; a start names the same ones."""
    answer = service.client.post(ESTIMATE, json=body)
    assert answer.status_code == 200, answer.text
    listed: list[str] = answer.json()["warnings"]
    created = service.client.post("/api/v1/runs", json=body)
    assert created.status_code == 201, created.text
    assert created.json()["warnings"] == listed
    return listed


def test_defaults_of_gorila_on_a_small_host_are_warned_about_before_the_start(
    service: RunningService,
) -> None:
    add_host(service.engine, "small")  # 2 cores, 8 GiB
    memory, processes = warnings(service, GORILA)
    needed = parse_run_spec(GORILA).memory_estimate_bytes / GIB
    advice = "the preset 15 minutes (quarter-hour) or 2 CPU cores (two-cpu-cores) fits"
    assert memory == (
        f"it may need {needed:.1f} GiB of memory, and the largest host that may claim it has 8.0 GiB: "
        f"{advice}"
    )
    # 100 bundled actors and 31 parameter shards.
    assert processes == f"131 processes on 2 cores start and train slowly: {advice}"


@pytest.mark.parametrize(
    ("changes", "field", "command"),
    [
        ({"algorithm": "gorila_dqn"}, "algorithm", "pip install 'callboard[gorila]'"),
        ({"environment": "Racing-Slow-v0"}, "environment", "pip install 'callboard[racing]'"),
    ],
)
def test_what_every_host_lacks_is_refused_with_the_extra(
    service: RunningService, changes: dict[str, str], field: str, command: str
) -> None:
    add_host(service.engine, "a", versions={"torch": "2"})
    add_host(service.engine, "b", versions={"torch": "2", "pyarrow": "1"})
    for path in (ESTIMATE, "/api/v1/runs"):
        refused = service.client.post(path, json=CARTPOLE | changes)
        assert refused.status_code == 422, refused.text
        [problem] = refused.json()["errors"]
        assert (problem["field"], problem["message"].endswith(command)) == (field, True)
    listed = service.client.get("/api/v1/hosts").json()["items"]
    assert [host["missing_extras"] for host in listed] == [
        ["envpool", "gorila", "parquet", "racing"],
        ["envpool", "gorila", "racing"],
    ]
    add_host(service.engine, "c", versions={"torch": "2", "ray": "2", "Box2D": "2"})
    assert service.client.post("/api/v1/runs", json=CARTPOLE | changes).status_code == 201


def test_annealing_of_a_constant_learning_rate_is_warned_about(service: RunningService) -> None:
    body = CARTPOLE | {"annealing_agent_steps": 500}
    constant, linear = ({"config": {"learning_rate_schedule": name}} for name in ("constant", "linear"))
    expected = "annealing_agent_steps has no effect on runs with a constant learning rate: leave it out"
    assert warnings(service, body | constant | {"seeds": [0, 1]}) == [expected]
    assert warnings(service, body | linear) == []


def test_host_with_memory_and_cores_ends_the_warnings_if_it_may_claim_the_run(
    service: RunningService,
) -> None:
    add_host(service.engine, "small")
    large: dict[str, Any] = {"memory_bytes": 2**50, "cpu_count": 128}
    add_host(service.engine, "gpu", queues=["gpu"], **large)
    add_host(service.engine, "no-atari", environments=["CartPole-v1"], **large)
    assert len(warnings(service, GORILA)) == 2
    assert len(warnings(service, GORILA | {"host": "small"})) == 2
    assert warnings(service, GORILA | {"queue": "gpu"}) == []
    add_host(service.engine, "large", **large)
    assert warnings(service, GORILA) == []


def test_run_that_waits_for_a_gpu_is_not_warned_about_memory(service: RunningService) -> None:
    add_host(service.engine, "small", memory_bytes=1)
    assert len(warnings(service, CARTPOLE)) == 1
    assert warnings(service, CARTPOLE | {"device": "cuda"}) == []


def test_estimate_of_several_values_is_for_the_largest_and_stores_nothing(service: RunningService) -> None:
    add_host(service.engine, "small")
    assert warnings(service, CARTPOLE) == []
    with reading(service.engine) as session:
        before = [session.scalar(select(func.count()).select_from(table)) for table in (Run, AuditEntry)]
    capacities = [10_000, 2_000_000, 20_000]
    config = {"learning_starts_agent_steps": 1000}
    stop = {"agent_steps": 10_000_000}
    body = {"algorithm": "dqn", "environment": "ALE/Pong-v5", "stop": stop, "config": config}
    specs = [parse_run_spec(body | {"config": config | {"replay_capacity": n}}) for n in capacities]
    asked = body | {"grid": {"config.replay_capacity": capacities}, "seeds": [0, 1]}
    answer = service.client.post(ESTIMATE, json=asked).json()
    assert answer["memory_bytes"] == max(spec.memory_estimate_bytes for spec in specs)
    (memory,) = answer["warnings"]
    assert memory.startswith(f"it may need {answer['memory_bytes'] / GIB:.1f} GiB of memory")
    with reading(service.engine) as session:
        after = [session.scalar(select(func.count()).select_from(table)) for table in (Run, AuditEntry)]
    assert after == before


def test_viewer_may_request_an_estimate_and_errors_name_their_fields(service: RunningService) -> None:
    with service.client_as(Role.VIEWER) as viewer:
        answer = viewer.post(ESTIMATE, json=CARTPOLE)
        assert answer.json() == {
            "memory_bytes": parse_run_spec(CARTPOLE).memory_estimate_bytes,
            "warnings": [],
        }
        refused = viewer.post(ESTIMATE, json=CARTPOLE | {"config": {"n_e": 0}})
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["config.n_e"]


def test_external_run_has_no_warnings(service: RunningService) -> None:
    add_host(service.engine, "small", memory_bytes=1)
    assert service.client.post("/api/v1/runs", json=external_request()).json()["warnings"] == []


def test_estimate_accepts_an_idempotency_key(service: RunningService) -> None:
    answer = service.client.post(ESTIMATE, json=CARTPOLE, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 200
