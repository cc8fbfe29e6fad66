from typing import Any

import pytest
import redis

from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def _bulk(service: RunningService, **body: Any) -> dict[str, Any]:
    answer = service.client.post("/api/v1/runs/bulk", json=body)
    assert answer.status_code == 200
    result: dict[str, Any] = answer.json()
    return result


def _states(service: RunningService) -> dict[str, str]:
    items = service.client.get("/api/v1/runs", params={"archived": "all"}).json()["items"]
    return {item["id"]: item["state"] for item in items}


def test_each_run_it_fits_and_a_reason_for_the_others(service: RunningService) -> None:
    runs = {state: make_run(service.engine, state).id for state in RunState}
    unknown = "0" * 26
    result = _bulk(service, action="stop", ids=[*runs.values(), unknown])
    assert (result["n_done"], result["n_refused"]) == (5, 4)
    refused = {item["id"]: item["detail"] for item in result["items"] if not item["done"]}
    assert "finished" in refused[runs[RunState.FINISHED]]
    assert "no run" in refused[unknown]
    after = _states(service)
    assert after[runs[RunState.QUEUED]] == "stopped"
    assert after[runs[RunState.RUNNING]] == "stopping"
    assert after[runs[RunState.FINISHED]] == "finished"


def test_a_dry_run_tells_the_same_and_changes_nothing(service: RunningService, redis_url: str) -> None:
    for state in RunState:
        make_run(service.engine, state)
    before = _states(service)
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        for action in ("stop", "kill", "resume", "archive", "delete"):
            dry = _bulk(service, action=action, filter="", dry_run=True)
            assert dry["n_done"] > 0
            assert _states(service) == before
        assert client.keys() == []
    wet = _bulk(service, action="resume", filter="")
    assert wet["n_done"] == 3
    assert _states(service) != before


def test_by_filter(service: RunningService) -> None:
    for seed in range(4):
        make_run(service.engine, RunState.FINISHED, seed=seed)
    assert _bulk(service, action="archive", filter="seed<2 or seed=3")["n_done"] == 3
    left = service.client.get("/api/v1/runs").json()["items"]
    assert [run["seed"] for run in left] == [2]
    assert _bulk(service, action="unarchive", filter="archived:true")["n_done"] == 3
    assert _bulk(service, action="delete", filter="seed>=2")["n_done"] == 2
    assert len(_states(service)) == 2


def test_tags(service: RunningService) -> None:
    one, two = make_run(service.engine, tags=["a"]), make_run(service.engine)
    ids = [one.id, two.id]

    def tags() -> list[list[str]]:
        items = service.client.get("/api/v1/runs", params={"sort": "created_at"}).json()["items"]
        return [item["tags"] for item in items]

    assert _bulk(service, action="tag", ids=ids, tags=["a", "b"])["n_done"] == 2
    assert tags() == [["a", "b"], ["a", "b"]]
    _bulk(service, action="untag", ids=ids, tags=["a", "c"])
    assert tags() == [["b"], ["b"]]
    many = [f"t{i}" for i in range(50)]
    assert _bulk(service, action="tag", ids=ids, tags=many)["n_refused"] == 2
    assert tags() == [["b"], ["b"]]


def test_wrong_requests(sqlite_service: RunningService, subtests: pytest.Subtests) -> None:
    for body, field in [
        ({"action": "explode", "ids": ["x"]}, "action"),
        ({"action": "stop"}, "body"),
        ({"action": "stop", "ids": ["x"], "filter": ""}, "body"),
        ({"action": "stop", "ids": []}, "ids"),
        ({"action": "stop", "ids": ["x"] * 1001}, "ids"),
        ({"action": "stop", "ids": ["\0"]}, "ids.0"),
        ({"action": "tag", "ids": ["x"]}, "body"),
        ({"action": "stop", "ids": ["x"], "tags": ["a"]}, "body"),
        ({"action": "tag", "ids": ["x"], "tags": ['"']}, "tags.0"),
        ({"action": "stop", "filter": "colour:red"}, "filter"),
    ]:
        with subtests.test(body=str(body)[:60]):
            answer = sqlite_service.client.post("/api/v1/runs/bulk", json=body)
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
