import json
import shutil
import time
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from backend.db.engine import writing
from backend.runs.runs import service as runs
from backend.specs.states import RunState
from tests.support.databases import short_folder
from tests.support.pages import session_headers
from tests.support.redis_server import RedisServer
from tests.support.rows import CARTPOLE, make_run
from tests.support.service import RunningService, created_run, running_service
from tests.support.waiting import PATIENCE_S, Patience

pytestmark = pytest.mark.service


def _events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if line == "":
            if event and event.get("event") != "heartbeat":
                yield event
            event = {}
        elif name:
            event[name] = json.loads(value) if name == "data" else value


def _await_resync(events: Iterator[dict[str, Any]]) -> None:
    """Wait until the stream is subscribed: before, it may report that Redis does not answer yet."""
    patience = Patience()
    while next(events)["event"] != "resync":
        assert patience.lasts()


def test_event_stream_sends_committed_changes(service: RunningService) -> None:
    with service.client.stream("GET", "/api/v1/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = _events(answer)
        _await_resync(events)
        run = created_run(service.client.post("/api/v1/runs", json=CARTPOLE))
        created = next(events)
        expected = {"kind": "run", "id": run["id"], "parents": {}, "changed": []}
        assert created["data"] == expected | {"state": "queued"}
        service.client.post(f"/api/v1/runs/{run['id']}/stop")
        stopped = next(events)
        assert stopped["data"] == expected | {"state": "stopped"}
        assert int(stopped["id"]) > int(created["id"])
        refused = service.client.post(f"/api/v1/runs/{run['id']}/stop")
        assert refused.status_code == 409
        service.client.post(f"/api/v1/runs/{run['id']}/resume")
        assert next(events)["data"]["state"] == "queued"


def test_resync_says_how_long_nothing_has_changed(sqlite_service: RunningService) -> None:
    stream = partial(sqlite_service.client.stream, "GET", "/api/v1/events")
    with stream() as earlier:
        events = _events(earlier)
        _await_resync(events)
        started_at = time.monotonic()
        created_run(sqlite_service.client.post("/api/v1/runs", json=CARTPOLE))
        assert next(events)["data"]["kind"] == "run"
        with stream() as later:
            resync = next(_events(later))
            received_at = time.monotonic()
    assert resync["event"] == "resync"
    assert 0.0 <= resync["data"]["quiet_s"] <= received_at - started_at


def test_event_stream_sends_heartbeats_while_nothing_changes(sqlite_service: RunningService) -> None:
    with sqlite_service.client.stream("GET", "/api/v1/events") as answer:
        names = (line for line in answer.iter_lines() if line.startswith("event: "))
        patience = Patience()
        while next(names) != "event: resync":  # it may be subscribed later than a heartbeat is due
            assert patience.lasts()
        assert [next(names) for _ in range(2)] == ["event: heartbeat"] * 2


def test_event_names_what_a_transaction_has_changed(service: RunningService) -> None:
    run = make_run(service.engine, RunState.RUNNING)

    def change(*parts: Collection[str]) -> None:
        with writing(service.engine) as session:
            row = runs.find(session, run.id, for_update=True)
            assert row is not None
            for part in parts:
                runs.touch(session, row, part)
        service.app_state.bus.publish_changes(session)

    with service.client.stream("GET", "/api/v1/events") as answer:
        events = _events(answer)
        _await_resync(events)
        change(["log"], ["series/loss"])
        assert next(events)["data"]["changed"] == ["log", "series/loss"]
        for parts in ([["log"], []], [[], ["log"]]):
            change(*parts)
            assert next(events)["data"]["changed"] == [], "anything may have changed"


def test_event_stream_needs_login(sqlite_service: RunningService) -> None:
    with sqlite_service.new_client() as anyone:
        assert anyone.get("/api/v1/events").status_code == 401


def test_event_stream_sends_stale_and_resync_around_redis_outage(
    sqlite_template: Path, tmp_path: Path
) -> None:
    path = tmp_path / "callboard.sqlite3"
    shutil.copyfile(sqlite_template, path)
    with short_folder() as folder:
        redis = RedisServer(folder)
        redis.start()
        with (
            running_service(f"sqlite:///{path}", redis.url, tmp_path) as service,
            service.client.stream("GET", "/api/v1/events") as answer,
        ):
            events = _events(answer)
            _await_resync(events)
            redis.stop()
            assert next(events)["event"] == "stale"
            assert service.client.get("/api/v1/runs").status_code == 200
            redis.start()
            _await_resync(events)
        redis.stop()


@pytest.mark.timeout(600)  # a stream that does not end would block for ever
def test_event_stream_ends_when_server_stops(sqlite_service: RunningService) -> None:
    with (
        httpx.Client(
            base_url=sqlite_service.url, headers=session_headers(sqlite_service.client), timeout=PATIENCE_S
        ) as browser,
        browser.stream("GET", "/api/v1/events") as answer,
    ):
        events = _events(answer)
        _await_resync(events)
        sqlite_service.stop()
        assert list(events) == []
