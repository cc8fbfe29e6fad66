import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from sqlalchemy import delete

from backend.db import Host, Run
from backend.db.engine import writing
from backend.hosts.repository import announce
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.own import read_own
from backend.specs.run import parse_run_spec
from tests.support import own_world
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_every_algorithm_is_told_with_a_schema_its_defaults_fit(sqlite_service: RunningService) -> None:
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


def test_presets_are_valid_requests_in_every_world_they_are_meant_for(
    sqlite_service: RunningService,
) -> None:
    for item in sqlite_service.client.get("/api/v1/algorithms").json()["items"]:
        for preset in item["presets"]:
            meant = [
                world.id
                for world in ENVIRONMENTS.values()
                if world.observation == preset["observation"]
                and world.actions in item["actions"]
                and (not preset["families"] or world.family in preset["families"])
            ]
            assert meant, preset["id"]
            request = {name: preset[name] for name in ("config", "environment_config", "stop")}
            for world_id in meant:
                assert parse_run_spec(request | {"algorithm": item["id"], "environment": world_id})


def test_every_world_is_told(sqlite_service: RunningService) -> None:
    items = sqlite_service.client.get("/api/v1/environments").json()["items"]
    assert [item["id"] for item in items] == list(ENVIRONMENTS)
    for item in items:
        jsonschema.validate(item["defaults"], item["config_schema"])
    pong = sqlite_service.client.get("/api/v1/environments/ALE/Pong-v5").json()
    assert pong["evaluation_protocol"] == "noop_starts"
    assert {score["label"] for score in pong["published"]} >= {"random", "human"}


def test_unknown_ones_are_not_found(sqlite_service: RunningService) -> None:
    for path in ("algorithms/ppo", "environments/ALE/None-v5", "environments/os:system", "algorithms/%00"):
        assert sqlite_service.client.get(f"/api/v1/{path}").status_code == 404


@pytest.fixture
def attic(sqlite_service: RunningService, tmp_path: Path) -> Iterator[str]:
    """A host with worlds of its own."""
    own = [one.described().model_dump(mode="json") for one in read_own(own_world.write(tmp_path)).values()]
    facts = {
        "queues": ["cpu"],
        "slots": 1,
        "cpu_count": 1,
        "memory_bytes": 2**30,
        "devices": ["cpu"],
        "environments": [world["id"] for world in own],
        "own_environments": own,
        "versions": {},
        "load": {},
    }
    with writing(sqlite_service.engine) as session:
        announce(session, "attic", **facts)
    yield "attic"
    with writing(sqlite_service.engine) as session:
        session.execute(delete(Run).where(Run.environment.startswith("Own/")))
        session.execute(delete(Host).where(Host.id == "attic"))


def test_a_hosts_own_worlds_are_told_with_their_host_and_can_be_run_there_only(
    sqlite_service: RunningService, attic: str
) -> None:
    items = sqlite_service.client.get("/api/v1/environments").json()["items"]
    assert [(item["id"], item["hosts"]) for item in items if item["hosts"]] == [
        ("Own/Line-v0", [attic]),
        ("Own/Pictures-v1", [attic]),
    ]
    line = sqlite_service.client.get("/api/v1/environments/Own/Line-v0").json()
    assert (line["actions"], line["action_names"]) == ("discrete", ["LEFT", "RIGHT"])
    assert "entry_point" not in json.dumps(items)
    request = {"algorithm": "paac", "environment": "Own/Line-v0", "stop": {"agent_steps": 100}}
    made = sqlite_service.client.post("/api/v1/runs", json=request)
    assert made.status_code == 201, made.text
    assert made.json()["spec"]["own"]["title"] == "Line"
    refused = sqlite_service.client.post("/api/v1/runs", json=request | {"environment": "Own/None-v0"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "environment"
    smuggled = sqlite_service.client.post("/api/v1/runs", json=request | {"own": made.json()["spec"]["own"]})
    assert smuggled.status_code == 422
    assert smuggled.json()["errors"][0]["field"] == "own"
