"""Two editors of the same object: the second does not overwrite the first without knowing."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from httpx import Client

from tests.support.rows import CARTPOLE, external_request
from tests.support.service import RunningService

pytestmark = pytest.mark.service

API = "/api/v1"
VALUES: Mapping[str, tuple[Any, Any]] = {
    "name": ("A's", "B's"),
    "notes": ("A typed this for an hour", "B's long paragraph"),
    "tags": (["a"], ["b", "c"]),
    "group": ("of A", None),
    "project": ("of A", "of B"),
    "priority": (3, -3),
    "concurrency": (2, 3),
    "return_metric": ("loss/a", "loss/b"),
}
"""What the first and the second editor set each field to."""


def _run(client: Client) -> str:
    """An external run, which is scored by one of its metrics."""
    run = client.post(f"{API}/runs", json=external_request()).json()["items"][0]["id"]
    points = [
        {"metric": f"loss/{name}", "agent_steps": [1], "wall_time_s": [0.0], "value": [0.5]} for name in "abc"
    ]
    body = {"source": run, "sequence": 1, "series": points}
    client.post(f"{API}/runs/{run}/points", json=body).raise_for_status()
    return f"/runs/{run}"


def _sweep(client: Client) -> str:
    space = {"config.learning_rate": {"values": [0.001, 0.01]}}
    body = {"name": "rates", "run": CARTPOLE, "space": space, "max_seeds": 4}
    return f"/sweeps/{client.post(f'{API}/sweeps', json=body).json()['id']}"


def _study(client: Client) -> str:
    study = {
        "name": "methods",
        "arms": [{"label": "PAAC", "algorithm": "paac"}],
        "environments": ["CartPole-v1"],
        "draws": {"n": 2},
        "run": {"stop": {"agent_steps": 10_000}},
        "figures": [{"id": "scores", "title": "Scores", "kind": "table"}],
    }
    return f"/studies/{client.post(f'{API}/studies', json={'study': study}).json()['id']}"


CREATORS: Mapping[str, Callable[[Client], str]] = {
    "/runs/{run_id}": _run,
    "/sweeps/{sweep_id}": _sweep,
    "/studies/{study_id}": _study,
}


def _value(read: dict[str, Any], field: str) -> Any:
    return read[field] if field in read else read["spec"][field]


@pytest.mark.parametrize("path", CREATORS)
def test_second_editor_of_a_field_is_refused_unless_it_has_read_the_change(
    service: RunningService, path: str
) -> None:
    client = service.client
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    kind = "Run" if path.startswith("/runs") else "Experiment"
    fields = schemas[f"{kind}Changes"]["properties"].keys() - {"expected"}
    assert schemas[f"{kind}Expectation"]["properties"].keys() == fields
    address = API + CREATORS[path](client)
    for field in sorted(fields):
        first, second = VALUES[field]
        before = _value(client.get(address).json(), field)
        others = {other: _value(client.get(address).json(), other) for other in fields - {field}}
        body = {field: first, "expected": {field: before}}
        assert client.patch(address, json=body).status_code == 200, field
        read = client.get(address).json()
        refused = client.patch(address, json={field: second, "expected": {field: before}})
        assert (refused.status_code, refused.json()["code"]) == (409, "changed_meanwhile"), field
        assert [error["field"] for error in refused.json()["errors"]] == [field]
        unchanged = client.get(address).json()
        assert (unchanged["revision"], _value(unchanged, field)) == (read["revision"], first), field
        # Who edits another field is not disturbed, and who has read the change may replace it.
        assert client.patch(address, json={"expected": others}).status_code == 200, field
        assert client.patch(address, json={field: second, "expected": {field: first}}).status_code == 200
        assert _value(client.get(address).json(), field) == second


def _has_if_match(operation: dict[str, Any]) -> bool:
    return any(parameter["name"] == "if-match" for parameter in operation["parameters"])


def test_every_patch_that_takes_a_text_takes_a_condition(service: RunningService) -> None:
    document = service.client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    paths = []
    for path, operations in document["paths"].items():
        for content in operations.get("patch", {}).get("requestBody", {}).get("content", {}).values():
            properties = schemas[content["schema"]["$ref"].rpartition("/")[2]]["properties"]
            if {"name", "notes"} & properties.keys() and not _has_if_match(operations["patch"]):
                assert "expected" in properties, path
                paths.append(path)
    assert sorted(paths) == sorted(f"{API}{path}" for path in CREATORS)
