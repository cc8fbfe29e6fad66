import json
import os
import signal
import time

import pytest
import redis

from backend.live.bus import CHANNEL, POKE_TASK, Bus, celery_url
from tests.support.databases import short_folder
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.service


def test_changes_are_heard(redis_url: str) -> None:
    bus = Bus(redis_url)
    with redis.Redis.from_url(redis_url) as client, client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe(CHANNEL)
        listener.get_message(timeout=5)
        bus.publish([{"run": "x", "revision": 3, "state": "running"}, {"host": "h"}])
        heard = [listener.get_message(timeout=5) for _ in range(2)]
    assert [json.loads(message["data"]) for message in heard if message] == [
        {"run": "x", "revision": 3, "state": "running"},
        {"host": "h"},
    ]
    bus.close()


def test_a_poke_lies_in_the_queue(redis_url: str) -> None:
    bus = Bus(redis_url)
    bus.poke("gpu")
    with redis.Redis.from_url(redis_url) as client:
        raw = client.lpop("gpu")
        assert isinstance(raw, bytes)
        assert json.loads(raw)["headers"]["task"] == POKE_TASK
    bus.close()


def test_redis_away_neither_fails_nor_delays_and_its_return_is_noticed() -> None:
    with short_folder() as folder:
        server = RedisServer(folder)
        server.start()
        bus = Bus(server.url)
        assert bus.ping()
        server.stop()
        begun = time.monotonic()
        bus.publish([{"host": "h"}])
        bus.poke("cpu")
        assert not bus.ping()
        assert time.monotonic() - begun < 2
        server.start()
        assert bus.ping()
        bus.poke("cpu")
        with redis.Redis.from_url(server.url) as client:
            assert client.llen("cpu") == 1
        bus.close()
        server.stop()


def test_a_hanging_redis_costs_a_bounded_time() -> None:
    with short_folder() as folder:
        server = RedisServer(folder)
        server.start()
        bus = Bus(server.url)
        bus.poke("cpu")
        assert bus.ping()
        os.kill(server.pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            bus.publish([{"host": "h"}])
            bus.poke("cpu")
            assert time.monotonic() - begun < 5
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
def test_celery_reaches_the_same_redis(url: str, expected: str) -> None:
    assert celery_url(url) == expected
