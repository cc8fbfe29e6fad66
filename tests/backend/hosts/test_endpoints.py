from datetime import timedelta

import pytest
import redis
from sqlalchemy import Engine

from backend.db import Host
from backend.db.clock import database_now
from backend.db.engine import writing
from backend.runs import repository as runs
from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def _host(engine: Engine, name: str, seen_s_ago: float = 0) -> None:
    with writing(engine) as session:
        seen = database_now(session) - timedelta(seconds=seen_s_ago)
        session.add(
            Host(
                id=name, first_seen_at=seen, last_seen_at=seen, queues=["cpu", name], slots=2, cpu_count=4,
                memory_bytes=8 * 2**30, devices=["cpu"], environments=["CartPole-v1"],
                versions={"torch": "2"}, load={"cpu_pct": 50.0},
            )
        )  # fmt: skip


def test_who_is_there_and_what_runs_and_waits(service: RunningService) -> None:
    _host(service.engine, "here")
    _host(service.engine, "gone", seen_s_ago=3600)
    run = make_run(service.engine, RunState.RUNNING)
    make_run(service.engine)
    make_run(service.engine, queue="gpu")
    with writing(service.engine) as session:
        found = runs.get(session, run.id, for_update=True)
        assert found is not None
        found.host = "here"
    page = service.client.get("/api/v1/hosts").json()
    gone, here = page["items"]
    assert (here["id"], here["alive"], here["draining"], here["slots"]) == ("here", True, False, 2)
    assert (here["devices"], here["environments"]) == (["cpu"], ["CartPole-v1"])
    assert here["runs"] == [{"id": run.id, "name": run.name, "state": "running"}]
    assert (gone["id"], gone["alive"], gone["runs"]) == ("gone", False, [])
    assert page["waiting"] == {"cpu": 1, "gpu": 1}


def test_drain_and_undrain(service: RunningService, redis_url: str) -> None:
    _host(service.engine, "here")
    assert service.client.post("/api/v1/hosts/here/drain").json()["draining"] is True
    assert service.client.get("/api/v1/hosts").json()["items"][0]["draining"] is True
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        assert service.client.post("/api/v1/hosts/here/undrain").json()["draining"] is False
        assert client.llen("here") == client.llen("cpu") == 1


def test_unknown_hosts(service: RunningService) -> None:
    for name in ("nobody", "%00", "é"):
        assert service.client.post(f"/api/v1/hosts/{name}/drain").status_code == 404
