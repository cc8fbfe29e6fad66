import json
import os
import signal
import time

import pytest
import redis

from backend.db.changes import ChangeEvent
from backend.pubsub import bus as bus_module
from backend.pubsub.bus import CHANNEL, LOST, WAKE_TASK, Bus, celery_url
from tests.support.databases import short_folder
from tests.support.redis_server import RedisServer
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.service

HOST = ChangeEvent(kind="host", id="h", parents={}, state=None, changed=[])

MAX_WAIT_S = 60.0
"""Well above `TIMEOUT_S` on a loaded machine, well below an endless wait."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that takes longer is lost, or sent again: on a busy machine Redis may answer late."""
    monkeypatch.setattr(bus_module, "TIMEOUT_S", 3.0)


def test_published_changes_reach_subscribers(redis_url: str) -> None:
    bus = Bus(redis_url)
    with redis.Redis.from_url(redis_url) as client, client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe(CHANNEL)
        listener.get_message(timeout=PATIENCE_S)
        job = ChangeEvent(kind="job", id="x", parents={"run": "r"}, state="running", changed=[])
        bus.publish([job, HOST])
        received = [listener.get_message(timeout=PATIENCE_S) for _ in range(2)]
    assert [json.loads(message["data"]) for message in received if message] == [
        {"kind": "job", "id": "x", "parents": {"run": "r"}, "state": "running", "changed": []},
        {"kind": "host", "id": "h", "parents": {}, "state": None, "changed": []},
    ]
    bus.close()


def test_queue_that_no_worker_reads_does_not_grow(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "MAX_WAKES", 3)
    bus = Bus(redis_url)
    assert all(bus.wake("gone") for _ in range(5))
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("gone") == 3
    bus.close()


def test_wake_puts_task_in_the_queue(redis_url: str) -> None:
    bus = Bus(redis_url)
    bus.wake("gpu")
    with redis.Redis.from_url(redis_url) as client:
        raw = client.lpop("gpu")
        assert isinstance(raw, bytes)
        assert json.loads(raw)["headers"]["task"] == WAKE_TASK
    bus.close()


@pytest.mark.long
def test_bus_survives_redis_outage_without_delay() -> None:
    with short_folder() as folder:
        server = RedisServer(folder)
        server.start()
        bus = Bus(server.url)
        assert bus.ping()
        server.stop()
        started_at = time.monotonic()
        bus.publish([HOST])
        bus.wake("cpu")
        assert not bus.ping()
        assert time.monotonic() - started_at < MAX_WAIT_S
        server.start()
        assert bus.ping()
        bus.wake("cpu")
        with redis.Redis.from_url(server.url) as client:
            assert client.llen("cpu") == 1
            with client.pubsub(ignore_subscribe_messages=True) as listener:
                listener.subscribe(CHANNEL)
                listener.get_message(timeout=PATIENCE_S)
                for _ in range(2):
                    bus.publish([HOST])
                received = [listener.get_message(timeout=PATIENCE_S) for _ in range(3)]
        host = HOST.model_dump_json().encode()
        messages = [message and message["data"] for message in received]
        assert messages == [host, LOST.encode(), host], "messages before these were lost"
        bus.close()
        server.stop()


@pytest.mark.long
def test_hanging_redis_delays_publish_by_a_bounded_time() -> None:
    with short_folder() as folder:
        server = RedisServer(folder)
        server.start()
        bus = Bus(server.url)
        bus.wake("cpu")
        assert bus.ping()
        os.kill(server.pid, signal.SIGSTOP)
        try:
            started_at = time.monotonic()
            bus.publish([HOST])
            bus.wake("cpu")
            assert time.monotonic() - started_at < MAX_WAIT_S
        finally:
            os.kill(server.pid, signal.SIGCONT)
        bus.close()
        server.stop()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock"),
        ("redis://host:6379/1", "redis://host:6379/1"),
        ("rediss://host", "rediss://host"),
    ],
)
def test_celery_url_addresses_the_same_redis(url: str, expected: str) -> None:
    assert celery_url(url) == expected
