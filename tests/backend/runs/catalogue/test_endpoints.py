import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from sqlalchemy import delete

from backend.db import Host, Run
from backend.db.engine import writing
from backend.fleet.hosts.service import record_heartbeat
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.custom import read_custom_environments
from backend.specs.run import parse_run_spec
from tests.support import custom_environment
from tests.support.service import RunningService, created_run

pytestmark = pytest.mark.service


def test_algorithms_are_listed_with_schema_that_accepts_their_defaults(
    sqlite_service: RunningService,
) -> None:
    items = sqlite_service.client.get("/api/v1/algorithms").json()["items"]
    assert [item["id"] for item in items] == list(ALGORITHMS)
    for item in items:
        for kind, defaults in item["defaults"].items():
            jsonschema.validate(defaults, item["config_schema"])
            assert kind.removeprefix("continuous ") in item["observations"]
            assert kind.startswith("continuous ") <= ("continuous" in item["actions"])
        for name, field in item["config_schema"]["properties"].items():
            assert field["title"], name
            assert field["description"], name
            assert field["group"], name
        assert sqlite_service.client.get(f"/api/v1/algorithms/{item['id']}").json() == item


def test_presets_are_valid_run_requests_in_all_their_environments(
    sqlite_service: RunningService,
) -> None:
    for item in sqlite_service.client.get("/api/v1/algorithms").json()["items"]:
        for preset in item["presets"]:
            meant = [
                env.id
                for env in ENVIRONMENTS.values()
                if env.observation == preset["observation"]
                and env.actions in item["actions"]
                and (not preset["families"] or env.family in preset["families"])
            ]
            assert meant, preset["id"]
            request = {name: preset[name] for name in ("config", "environment_config", "stop")}
            for env_id in meant:
                assert parse_run_spec(request | {"algorithm": item["id"], "environment": env_id})


def test_environments_are_listed_with_schema_protocol_and_published_scores(
    sqlite_service: RunningService,
) -> None:
    items = sqlite_service.client.get("/api/v1/environments").json()["items"]
    assert [item["id"] for item in items] == list(ENVIRONMENTS)
    for item in items:
        jsonschema.validate(item["defaults"], item["config_schema"])
    pong = sqlite_service.client.get("/api/v1/environments/ALE/Pong-v5").json()
    assert pong["evaluation_protocol"] == "noop_starts"
    assert "noop_starts_5min" in pong["evaluation_protocols"]
    assert "human_starts" not in pong["evaluation_protocols"]
    assert {score["label"] for score in pong["published"]} >= {"random", "human"}
    dqn = sqlite_service.client.get("/api/v1/algorithms/dqn").json()
    assert dqn["evaluation_protocol"] == "noop_starts_5min"


def test_unknown_algorithm_or_environment_returns_404(sqlite_service: RunningService) -> None:
    for path in ("algorithms/none", "environments/ALE/None-v5", "environments/os:system", "algorithms/%00"):
        assert sqlite_service.client.get(f"/api/v1/{path}").status_code == 404
    for name, hint in [("ale/poong-v5", "did you mean ALE/Pong-v5"), ("zzz", "see GET /environments")]:
        detail = sqlite_service.client.get(f"/api/v1/environments/{name}").json()["detail"]
        assert detail.startswith(f'environment "{name}" does not exist: {hint}')


@pytest.fixture
def attic(sqlite_service: RunningService, tmp_path: Path) -> Iterator[str]:
    """A host with custom environments."""
    own = [
        entry.describe().model_dump(mode="json")
        for entry in read_custom_environments(custom_environment.write(tmp_path)).values()
    ]
    facts = {
        "queues": ["cpu"],
        "slots": 1,
        "cpu_count": 1,
        "memory_bytes": 2**30,
        "devices": ["cpu"],
        "environments": [env["id"] for env in own],
        "custom_environments": own,
        "versions": {},
        "load": {},
    }
    with writing(sqlite_service.engine) as session:
        record_heartbeat(session, "attic", **facts)
    yield "attic"
    with writing(sqlite_service.engine) as session:
        session.execute(delete(Run).where(Run.environment.startswith("Custom/")))
        session.execute(delete(Host).where(Host.id == "attic"))


def test_custom_environments_are_listed_with_their_hosts_and_accepted_in_run_requests(
    sqlite_service: RunningService, attic: str
) -> None:
    items = sqlite_service.client.get("/api/v1/environments").json()["items"]
    assert [(item["id"], item["hosts"]) for item in items if item["hosts"]] == [
        ("Custom/Line-v0", [attic]),
        ("Custom/Frames-v1", [attic]),
    ]
    line = sqlite_service.client.get("/api/v1/environments/Custom/Line-v0").json()
    assert (line["actions"], line["action_names"]) == ("discrete", ["LEFT", "RIGHT"])
    assert "entry_point" not in json.dumps(items)
    request = {"algorithm": "paac", "environment": "Custom/Line-v0", "stop": {"agent_steps": 100}}
    created = created_run(sqlite_service.client.post("/api/v1/runs", json=request))
    assert created["spec"]["custom"]["title"] == "Line"
    refused = sqlite_service.client.post("/api/v1/runs", json=request | {"environment": "Custom/None-v0"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "environment"
    smuggled = sqlite_service.client.post(
        "/api/v1/runs", json=request | {"custom": created["spec"]["custom"]}
    )
    assert smuggled.status_code == 422
    assert smuggled.json()["errors"][0]["field"] == "custom"


def test_environment_that_its_host_refused_is_not_listed_and_not_queued(
    sqlite_service: RunningService, attic: str
) -> None:
    with writing(sqlite_service.engine) as session:
        host = session.get_one(Host, attic)
        line, frames = host.custom_environments
        host.custom_environments = [line | {"refusal": "observation space Dict() is not supported"}, frames]
    items = sqlite_service.client.get("/api/v1/environments").json()["items"]
    assert [item["id"] for item in items if item["hosts"]] == ["Custom/Frames-v1"]
    request = {"algorithm": "paac", "environment": "Custom/Line-v0", "stop": {"agent_steps": 100}}
    refused = sqlite_service.client.post("/api/v1/runs", json=request)
    assert refused.status_code == 422
    assert refused.json()["errors"] == [
        {
            "field": "environment",
            "message": "host attic cannot use it: observation space Dict() is not supported",
        }
    ]
