import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.databases import short_folder
from tests.support.redis_server import RedisServer
from tests.support.runs import CARTPOLE
from tests.support.service import RunningService, running_service

pytestmark = pytest.mark.service


def _events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if line == "":
            if event:
                yield event
            event = {}
        elif name:
            event[name] = json.loads(value) if name == "data" else value


def test_changes_arrive_as_they_are_committed(service: RunningService) -> None:
    with service.client.stream("GET", "/api/v1/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = _events(answer)
        assert next(events)["event"] == "resync"
        run = service.client.post("/api/v1/runs", json=CARTPOLE).json()
        created = next(events)
        assert created["data"] == {"run": run["id"], "revision": 1, "state": "queued"}
        service.client.post(f"/api/v1/runs/{run['id']}/stop")
        stopped = next(events)
        assert stopped["data"] == {"run": run["id"], "revision": 2, "state": "stopped"}
        assert int(stopped["id"]) > int(created["id"])
        refused = service.client.post(f"/api/v1/runs/{run['id']}/stop")
        assert refused.status_code == 409
        service.client.post(f"/api/v1/runs/{run['id']}/resume")
        assert next(events)["data"]["revision"] == 3


def test_only_for_those_who_are_logged_in(sqlite_service: RunningService) -> None:
    with sqlite_service.new_client() as anyone:
        assert anyone.get("/api/v1/events").status_code == 401


def test_redis_away_is_told_and_its_return_asks_to_catch_up(sqlite_template: Path, tmp_path: Path) -> None:
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
            assert next(events)["event"] == "resync"
            redis.stop()
            assert next(events)["event"] == "stale"
            assert service.client.get("/api/v1/runs").status_code == 200
            redis.start()
            assert next(event for event in events if event["event"] != "stale")["event"] == "resync"
        redis.stop()


def test_the_stream_ends_when_the_server_does(sqlite_service: RunningService) -> None:
    with (
        httpx.Client(base_url=sqlite_service.url, cookies=sqlite_service.client.cookies) as browser,
        browser.stream("GET", "/api/v1/events") as answer,
    ):
        events = _events(answer)
        assert next(events)["event"] == "resync"
        begun = time.monotonic()
        sqlite_service.stop()
        assert list(events) == []
        assert time.monotonic() - begun < 4
