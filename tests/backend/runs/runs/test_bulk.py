from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from sqlalchemy import Engine, text, update
from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.changes import take_changes, take_work
from backend.db.engine import reading, writing
from backend.db.run import RESTORABLE_S
from backend.runs.runs import bulk
from backend.runs.runs import service as run_service
from backend.specs.states import RunState
from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.service


def _bulk(service: RunningService, **body: Any) -> dict[str, Any]:
    answer = service.client.post("/api/v1/runs/bulk", json=body)
    assert answer.status_code == 200
    result: dict[str, Any] = answer.json()
    return result


def _states(service: RunningService) -> dict[str, str]:
    items = service.client.get("/api/v1/runs", params={"archived": "all"}).json()["items"]
    return {item["id"]: item["state"] for item in items}


def _audited(service: RunningService) -> list[str]:
    entries = service.client.get("/api/v1/audit", params={"path": "/api/v1/runs/bulk"}).json()["items"]
    return [entry["action"] for entry in entries if entry["path"].endswith("/bulk")]


def test_bulk_stop_applies_to_eligible_runs_and_reports_reasons_for_others(service: RunningService) -> None:
    runs = {state: make_run(service.engine, state).id for state in RunState}
    unknown = "0" * 26
    result = _bulk(service, action="stop", ids=[*runs.values(), unknown])
    assert (result["n_done"], result["n_refused"]) == (5, 4)
    refused = {item["id"]: item["detail"] for item in result["items"] if not item["done"]}
    assert "finished" in refused[runs[RunState.FINISHED]]
    assert refused[unknown] == f"run {unknown} does not exist or has been deleted"
    after = _states(service)
    assert after[runs[RunState.QUEUED]] == "stopped"
    assert after[runs[RunState.RUNNING]] == "stopping"
    assert after[runs[RunState.FINISHED]] == "finished"


def test_bulk_dry_run_changes_nothing(service: RunningService, redis_url: str) -> None:
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
    assert _audited(service) == []
    wet = _bulk(service, action="resume", filter="")
    assert wet["n_done"] == 3
    assert _audited(service) == ["change_runs"]
    assert _states(service) != before


def test_dry_run_records_nothing_to_publish(engine: Engine) -> None:
    run = make_run(engine, RunState.FAILED)
    published: list[object] = []

    @contextmanager
    def transaction() -> Iterator[Session]:
        with writing(engine) as session:
            yield session
        published.extend([*take_changes(session), *take_work(session)])

    for dry_run in (True, False):
        with reading(engine) as session:
            request = bulk.BulkRequest(action="resume", ids=[run.id], dry_run=dry_run)
            assert bulk.apply(session, transaction, request).n_done == 1
        assert bool(published) is not dry_run


def test_bulk_selects_runs_by_filter(service: RunningService) -> None:
    for seed in range(4):
        make_run(service.engine, RunState.FINISHED, seed=seed)
    assert _bulk(service, action="archive", filter="seed<2 or seed=3")["n_done"] == 3
    left = service.client.get("/api/v1/runs").json()["items"]
    assert [run["seed"] for run in left] == [2]
    # As in lists, archived runs are meant only if the filter says so.
    assert _bulk(service, action="delete", filter="seed>=1 and seed<2", dry_run=True)["n_done"] == 0
    answer = service.client.get("/api/v1/runs/export", params={"filter": "seed<2", "format": "csv"})
    assert answer.json()["errors"] == [{"field": "filter", "message": "matches no run"}]
    assert _bulk(service, action="unarchive", filter="seed<2 or seed=3")["n_done"] == 3
    assert _bulk(service, action="delete", filter="seed>=2")["n_done"] == 2
    assert len(_states(service)) == 2


def test_bulk_moves_runs_to_a_project_and_names_the_former_one(service: RunningService) -> None:
    first, second = make_run(service.engine, project="atari"), make_run(service.engine)
    ids = [first.id, second.id]
    result = _bulk(service, action="move", ids=ids, project="paper of June")
    assert [item["former_project"] for item in result["items"]] == ["atari", "default"]
    answer = service.client.get("/api/v1/runs", params={"project": "paper of June", "spec": True}).json()
    assert {run["id"] for run in answer["items"]} == set(ids)
    assert {run["spec"]["project"] for run in answer["items"]} == {"paper of June"}
    for wrong in ({"action": "move"}, {"action": "stop", "project": "a"}):
        refused = service.client.post("/api/v1/runs/bulk", json={"ids": ids} | wrong)
        assert [error["field"] for error in refused.json()["errors"]] == ["project"]


def test_bulk_adds_and_removes_tags(service: RunningService) -> None:
    first, two = make_run(service.engine, tags=["a"]), make_run(service.engine)
    ids = [first.id, two.id]

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


def test_invalid_bulk_request_returns_422_with_field(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    for body, field in [
        ({"action": "explode", "ids": ["x"]}, "action"),
        ({"action": "stop"}, "ids"),
        ({"action": "stop", "ids": ["x"], "filter": ""}, "filter"),
        ({"action": "stop", "ids": ["x"], "expected": 1}, "expected"),
        ({"action": "stop", "ids": ["x"], "restorable": True}, "restorable"),
        ({"action": "stop", "ids": []}, "ids"),
        ({"action": "stop", "ids": ["x"] * 1001}, "ids"),
        ({"action": "stop", "ids": ["\0"]}, "ids.0"),
        ({"action": "tag", "ids": ["x"]}, "tags"),
        ({"action": "stop", "ids": ["x"], "tags": ["a"]}, "tags"),
        ({"action": "tag", "ids": ["x"], "tags": ["\t"]}, "tags.0"),
        ({"action": "stop", "filter": "colour:red"}, "filter"),
    ]:
        with subtests.test(body=str(body)[:60]):
            answer = sqlite_service.client.post("/api/v1/runs/bulk", json=body)
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_unknown_field_of_a_body_is_answered_with_the_one_that_may_be_meant(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    run = make_run(sqlite_service.engine, RunState.FINISHED).id
    for path, body, field, message in [
        ("runs/bulk", {"action": "stop", "ids": ["x"], "tag": ["a"]}, "tag", "did you mean tags?"),
        (f"runs/{run}/resume", {"stop": {"agent_step": 9}}, "stop.agent_step", "did you mean agent_steps?"),
        (
            f"runs/{run}/points",
            {"series": [{"agent_step": [1]}]},
            "series.0.agent_step",
            "did you mean agent_steps?",
        ),
        (f"runs/{run}/episodes", {"episodes": [{"retur": 1}]}, "episodes.0.retur", "did you mean return?"),
    ]:
        with subtests.test(path=path):
            answer = sqlite_service.client.post(f"/api/v1/{path}", json=body)
            messages = {error["field"]: error["message"] for error in answer.json()["errors"]}
            assert messages[field].startswith(f"no such field; {message.partition('?')[0]}")


def test_bulk_refuses_when_another_number_of_runs_matches_than_was_selected(service: RunningService) -> None:
    for seed in range(3):
        make_run(service.engine, RunState.FINISHED, seed=seed)
    body = {"action": "archive", "filter": "seed>=1"}
    answer = service.client.post("/api/v1/runs/bulk", json=body | {"expected": 3})
    assert answer.status_code == 409
    assert "2 runs match now" in answer.json()["detail"]
    assert _bulk(service, **body, expected=2)["n_done"] == 2


def test_bulk_in_parts_visits_each_matching_run_once(service: RunningService) -> None:
    for seed in range(5):
        make_run(service.engine, RunState.FINISHED, seed=seed)
    # The action takes runs out of what the filter matches.
    body: dict[str, Any] = {"action": "archive", "filter": "archived:false", "limit": 2}
    after, sizes = None, []
    for _ in range(3):
        part = _bulk(service, **body, **({"after": after} if after else {}))
        sizes.append(part["n_done"])
        after = part["next_after"]
    assert (sizes, after) == ([2, 2, 1], None)


def test_bulk_that_fails_in_the_middle_names_the_runs_that_it_did_not_reach(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.runs.runs.bulk.BATCH_S", 0.0)
    monkeypatch.setattr("backend.http.dependencies.BETWEEN_BATCHES_S", 0.5)
    monkeypatch.setattr("backend.http.dependencies.WRITE_TIMEOUT_S", 0.1)
    ids = sorted(make_run(sqlite_service.engine, RunState.FINISHED, seed=seed).id for seed in range(5))
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(_bulk, sqlite_service, action="archive", ids=ids)
        until(lambda: sqlite_service.client.get("/api/v1/runs").json()["total"] < 5)
        with writing(sqlite_service.engine) as session:  # others get the lock between two transactions
            session.execute(text("SELECT 1"))
            result = asked.result(PATIENCE_S)
    done = [item["id"] for item in result["items"] if item["done"]]
    assert done == ids[: len(done)]
    assert 1 <= len(done) < 5
    assert all("not reached" in item["detail"] for item in result["items"][len(done) :])
    assert [item["id"] for item in result["items"]] == ids
    archived = sqlite_service.client.get("/api/v1/runs", params={"archived": "true"}).json()["items"]
    assert sorted(run["id"] for run in archived) == done
    assert _audited(sqlite_service) == ["change_runs"]


def test_bulk_that_is_repeated_with_its_key_gives_the_same_answer(service: RunningService) -> None:
    ids = [make_run(service.engine, RunState.FINISHED, seed=seed).id for seed in range(2)]
    body, headers = {"action": "archive", "ids": ids}, {"Idempotency-Key": "k"}
    first, again = (
        service.client.post("/api/v1/runs/bulk", json=body, headers=headers).json() for _ in range(2)
    )
    assert (first["n_done"], again) == (2, first)
    assert _audited(service) == ["change_runs"]


def test_bulk_names_the_tags_that_it_changed(service: RunningService) -> None:
    runs = [make_run(service.engine, tags=["a"]), make_run(service.engine)]
    items = _bulk(service, action="tag", ids=[run.id for run in runs], tags=["a", "b"])["items"]
    changed = {item["id"]: item["changed_tags"] for item in items}
    assert changed == {runs[0].id: ["b"], runs[1].id: ["a", "b"]}


def test_deleted_runs_are_hidden_until_they_are_restored_or_purged(service: RunningService) -> None:
    runs = [make_run(service.engine, state, seed=1) for state in (RunState.QUEUED, RunState.FINISHED)]
    ids = [run.id for run in runs]
    assert _bulk(service, action="delete", ids=ids, restorable=True)["n_done"] == 2
    assert _states(service) == {}
    client = service.client
    assert client.get("/api/v1/runs").json()["total"] == 0
    assert client.get(f"/api/v1/runs/{ids[0]}").status_code == 404
    assert client.get("/api/v1/comparisons/groups", params={"by": "seed"}).json()["items"] == []
    with writing(service.engine) as session:
        assert run_service.purge(session) is None  # too early
    restored = _bulk(service, action="restore", ids=ids)
    assert restored["n_done"] == 2
    # A run that waited for a host must not start by itself.
    assert _states(service) == {ids[0]: "stopped", ids[1]: "finished"}
    assert client.delete(f"/api/v1/runs/{ids[1]}", params={"restorable": True}).status_code == 204
    assert client.post(f"/api/v1/runs/{ids[1]}/restore").json()["id"] == ids[1]
    assert client.post(f"/api/v1/runs/{ids[1]}/restore").status_code == 404
    assert client.delete(f"/api/v1/runs/{ids[1]}", params={"restorable": True}).status_code == 204
    with writing(service.engine) as session:
        past = datetime.now(UTC) - timedelta(seconds=RESTORABLE_S + 60)
        session.execute(update(Run).where(Run.id == ids[1]).values(deleted_at=past))
    with writing(service.engine) as session:
        assert run_service.purge(session) == ids[1]
    assert client.post(f"/api/v1/runs/{ids[1]}/restore").status_code == 404
    with reading(service.engine) as session:
        assert run_service.deleted_among(session, ids) == {ids[1]}


def test_bulk_prioritise_changes_the_priority_of_queued_runs_only(service: RunningService) -> None:
    queued = [make_run(service.engine).id for _ in range(2)]
    running = make_run(service.engine, RunState.RUNNING).id
    result = _bulk(service, action="prioritise", ids=[*queued, running], priority=7)
    assert (result["n_done"], result["n_refused"]) == (2, 1)
    runs = {run["id"]: run["priority"] for run in service.client.get("/api/v1/runs").json()["items"]}
    assert runs == {queued[0]: 7, queued[1]: 7, running: 0}


def test_deleted_runs_are_listed_while_they_can_be_restored(service: RunningService) -> None:
    ids = [make_run(service.engine, RunState.FINISHED, seed=seed).id for seed in range(3)]
    client = service.client
    for run_id in ids[:2]:
        assert client.delete(f"/api/v1/runs/{run_id}", params={"restorable": True}).status_code == 204
    first = client.get("/api/v1/runs/deleted", params={"limit": 1}).json()
    (latest,) = first["items"]
    assert (latest["id"], first["total"]) == (ids[1], 2)
    since, until_ = (datetime.fromisoformat(latest[name]) for name in ("deleted_at", "restorable_until"))
    assert until_ - since == timedelta(hours=1)
    second = client.get("/api/v1/runs/deleted", params={"cursor": first["next_cursor"]}).json()
    assert [run["id"] for run in second["items"]] == [ids[0]]
    assert client.post(f"/api/v1/runs/{ids[1]}/restore").status_code == 200
    assert [run["id"] for run in client.get("/api/v1/runs/deleted").json()["items"]] == [ids[0]]
