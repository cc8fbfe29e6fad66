import jsonschema
import pytest

from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.run import parse_run_spec
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_every_algorithm_is_told_with_a_schema_its_defaults_fit(sqlite_service: RunningService) -> None:
    items = sqlite_service.client.get("/api/v1/algorithms").json()["items"]
    assert [item["id"] for item in items] == list(ALGORITHMS)
    for item in items:
        for kind, defaults in item["defaults"].items():
            jsonschema.validate(defaults, item["config_schema"])
            assert kind in item["observations"]
        for name, field in item["config_schema"]["properties"].items():
            assert field["title"], name
            assert field["description"], name
            assert field["group"], name
        assert sqlite_service.client.get(f"/api/v1/algorithms/{item['id']}").json() == item


def test_presets_are_valid_requests(sqlite_service: RunningService) -> None:
    worlds = {"pixels": "ALE/Pong-v5", "vector": "CartPole-v1"}
    for item in sqlite_service.client.get("/api/v1/algorithms").json()["items"]:
        for preset in item["presets"]:
            request = {name: preset[name] for name in ("config", "environment_config", "stop")}
            world = {"algorithm": item["id"], "environment": worlds[preset["observation"]]}
            assert parse_run_spec(request | world)


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
