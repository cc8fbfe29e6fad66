import shutil
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from sqlalchemy import Engine

from backend.db import Host, Run
from backend.db.clock import database_now
from backend.db.engine import writing
from backend.runs.runs import service as runs
from backend.specs.states import RunState
from tests.support.rows import host_row, make_run
from tests.support.service import RunningService
from tests.support.waiting import until

pytestmark = pytest.mark.service


def _host(engine: Engine, name: str, age_s: float = -3600) -> None:
    """Store a host: seen in the future, it is alive however long the test takes."""
    with writing(engine) as session:
        last_seen_at = database_now(session) - timedelta(seconds=age_s)
        row = host_row(
            name, first_seen_at=last_seen_at, last_seen_at=last_seen_at, queues=["cpu", name], slots=2,
            environments=["CartPole-v1"],
        )  # fmt: skip
        session.add(row)


def test_hosts_are_listed_with_their_runs_and_queue_lengths(service: RunningService) -> None:
    _host(service.engine, "here")
    _host(service.engine, "gone", age_s=3600)
    run = make_run(service.engine, RunState.RUNNING)
    make_run(service.engine)
    make_run(service.engine, queue="gpu")
    with writing(service.engine) as session:
        locked = runs.find(session, run.id, for_update=True)
        assert locked is not None
        locked.host = "here"
    page = service.client.get("/api/v1/hosts").json()
    gone, here = page["items"]
    assert (here["id"], here["alive"], here["draining"], here["slots"]) == ("here", True, False, 2)
    assert (here["devices"], here["environments"]) == (["cpu"], ["CartPole-v1"])
    facts = {"progress": 0.0, "time_left_s": None, "agent_steps_per_s": None}
    assert here["runs"] == [{"id": run.id, "name": run.name, "state": "running"} | facts]
    assert (gone["id"], gone["alive"], gone["runs"]) == ("gone", False, [])
    assert page["waiting"] == {"cpu": 1, "gpu": 1}
    waiting = [(run["queue"], run["reason"]) for run in page["waiting_runs"]]
    assert waiting == [("cpu", "a host is about to claim it"), ("gpu", "no host serves this queue")]


def test_queued_run_has_a_place_and_an_expected_start(service: RunningService) -> None:
    _host(service.engine, "here")
    timed: dict[str, Any] = {"stop": {"wall_time_s": 600}}
    for _ in range(2):
        active = make_run(service.engine, RunState.RUNNING, **timed)
        with writing(service.engine) as session:
            locked = runs.find(session, active.id, for_update=True)
            assert locked is not None
            locked.host, locked.wall_time_s = "here", 500.0
    older = make_run(service.engine, **timed)
    asked = make_run(service.engine, **timed)
    make_run(service.engine, queue="gpu")

    def place() -> dict[str, Any]:
        answer = service.client.get(f"/api/v1/runs/{asked.id}/queue")
        assert answer.status_code == 200, answer.text
        queue_place: dict[str, Any] = answer.json()
        return queue_place

    second = place()
    assert (second["position"], second["waiting"]) == (2, 2)
    assert [run["id"] for run in second["ahead"]] == [older.id]
    assert second["reason"] == "all slots are in use"
    expected = datetime.fromisoformat(second["expected_start_at"])
    assert abs((expected - datetime.now(UTC)).total_seconds() - 100) < 60
    service.client.patch(f"/api/v1/runs/{asked.id}", json={"priority": 1})
    first = place()
    assert (first["position"], first["ahead"]) == (1, [])
    service.client.post("/api/v1/hosts/here/drain")
    drained = place()
    assert (drained["expected_start_at"], drained["unknown_start"]) == (None, drained["reason"])
    refused = service.client.get(f"/api/v1/runs/{active.id}/queue")
    assert (refused.status_code, "is running" in refused.json()["detail"]) == (409, True)


def test_drain_and_undrain_set_flag_and_wake_queues(service: RunningService, redis_url: str) -> None:
    _host(service.engine, "here")
    assert service.client.post("/api/v1/hosts/here/drain").json()["draining"] is True
    assert service.client.get("/api/v1/hosts").json()["items"][0]["draining"] is True
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        assert service.client.post("/api/v1/hosts/here/undrain").json()["draining"] is False
        assert client.llen("here") == client.llen("cpu") == 1


def test_only_a_host_that_has_ended_and_holds_no_run_can_be_removed(service: RunningService) -> None:
    _host(service.engine, "here")
    _host(service.engine, "gone", age_s=3600)
    _host(service.engine, "holds", age_s=3600)
    held, past = make_run(service.engine, RunState.RUNNING), make_run(service.engine, RunState.FINISHED)
    with writing(service.engine) as session:
        for run, host in ((held, "holds"), (past, "gone")):
            locked = runs.find(session, run.id, for_update=True)
            assert locked is not None
            locked.host = host
    answers = {name: service.client.delete(f"/api/v1/hosts/{name}") for name in ("here", "holds", "gone")}
    assert {name: answer.status_code for name, answer in answers.items()} == {
        "here": 409, "holds": 409, "gone": 204,
    }  # fmt: skip
    assert answers["here"].json()["detail"] == 'host "here" is alive: stop its worker first'
    assert "holds runs" in answers["holds"].json()["detail"]
    assert [item["id"] for item in service.client.get("/api/v1/hosts").json()["items"]] == ["here", "holds"]
    assert service.client.get(f"/api/v1/runs/{past.id}").json()["host"] == "gone"
    assert service.client.delete("/api/v1/hosts/gone").status_code == 404


def test_drain_of_unknown_host_returns_404(service: RunningService) -> None:
    for name in ("nobody", "%00", "é"):
        assert service.client.post(f"/api/v1/hosts/{name}/drain").status_code == 404


def test_run_that_no_host_may_claim_is_the_first_of_one(service: RunningService) -> None:
    run = make_run(service.engine, host="nowhere")
    answer = service.client.get(f"/api/v1/runs/{run.id}/queue").json()
    assert (answer["position"], answer["waiting"]) == (1, 1)
    assert answer["reason"] == "the requested host nowhere is unknown"


def test_full_disk_is_named_at_the_host_that_shares_it_with_the_service(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker cannot report it: its heartbeat is stored on the same disk."""
    disk = shutil.disk_usage(sqlite_service.settings.home_dir)
    own = sqlite_service.settings.host_name
    for name in (own, "elsewhere"):
        _host(sqlite_service.engine, name)
        with writing(sqlite_service.engine) as session:
            host = session.get(Host, name)
            assert host is not None
            host.load = {"disk_bytes": disk.total, "disk_free_bytes": disk.total, "disk_problem": None}

    def problems() -> dict[str, str | None]:
        items = sqlite_service.client.get("/api/v1/hosts").json()["items"]
        return {host["id"]: host["load"]["disk_problem"] for host in items}

    def disks_have_room() -> bool:
        return bool(sqlite_service.client.get("/readyz").json()["host_disks"])

    assert problems() == {own: None, "elsewhere": None}
    assert disks_have_room()
    monkeypatch.setitem(sqlite_service.settings.__dict__, "min_free_disk_bytes", disk.total)
    full = problems()
    assert full["elsewhere"] is None
    assert "CALLBOARD_MIN_FREE_DISK_BYTES" in (full[own] or "")
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    with writing(sqlite_service.engine) as session:
        session.get_one(Run, run.id).host = own
    shown = sqlite_service.client.get(f"/api/v1/runs/{run.id}").json()["disk_problem"]
    # What is free changes between two requests.
    assert shown.partition(" MiB free")[1:] == (full[own] or "").partition(" MiB free")[1:]
    until(lambda: not disks_have_room())  # the answer may be a second old
