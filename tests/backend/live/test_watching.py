import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from backend.auth.access import COOKIE
from backend.auth.roles import Role
from backend.live import watching
from backend.live.gameplay import WATCH_CHANNEL, WATCH_LAPSES_S, pictures_channel, read_picture
from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def _open(
    service: RunningService, run_id: str, *, origin: str | None = None, cookie: bool = True
) -> ClientConnection:
    headers = {"Cookie": f"{COOKIE}={service.client.cookies[COOKIE]}"} if cookie else {}
    url = service.url.replace("http", "ws")
    return connect(
        f"{url}/api/v1/runs/{run_id}/live", origin=Origin(origin or service.url), additional_headers=headers
    )


@contextmanager
def _painter(redis_url: str, run_id: str) -> Iterator[list[float]]:
    """A worker that paints while it is watched; gives the times at which it was told so."""
    told: list[float] = []
    done = threading.Event()

    def paint() -> None:
        with redis.Redis.from_url(redis_url) as client, client.pubsub() as listener:
            listener.subscribe(WATCH_CHANNEL)
            step = 0
            while not done.is_set():
                message = listener.get_message(ignore_subscribe_messages=True, timeout=0.02)
                if message is not None and message["data"] == run_id.encode():
                    told.append(time.monotonic())
                if told and time.monotonic() - told[-1] < WATCH_LAPSES_S:
                    step += 1
                    client.publish(pictures_channel(run_id), step.to_bytes(8, "little") + b"jpeg")

    thread = threading.Thread(target=paint)
    thread.start()
    yield told
    done.set()
    thread.join()


def test_pictures_come_while_someone_watches(sqlite_service: RunningService, redis_url: str) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    with _painter(redis_url, run.id) as told:
        assert told == []
        with _open(sqlite_service, run.id) as socket:
            pictures = [read_picture(bytes(socket.recv(timeout=10))) for _ in range(20)]  # type: ignore[arg-type]
        steps = [step for step, _ in pictures]
        assert steps == sorted(set(steps))
        assert {jpeg for _, jpeg in pictures} == {b"jpeg"}
        assert told


def test_a_slow_client_misses_pictures_but_gets_no_old_ones(
    sqlite_service: RunningService, redis_url: str
) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    with redis.Redis.from_url(redis_url) as client, _open(sqlite_service, run.id) as socket:
        while not client.publish(pictures_channel(run.id), (0).to_bytes(8, "little")):
            time.sleep(0.01)
        large = b"x" * 250_000
        for step in range(1, 101):
            client.publish(pictures_channel(run.id), step.to_bytes(8, "little") + large)
        # Until the server has read all of them: what it could not send meanwhile is gone.
        while any(int(subscriber["omem"]) for subscriber in client.client_list(_type="pubsub")):
            time.sleep(0.01)
        received = []
        while not received or received[-1] < 100:
            received.append(read_picture(bytes(socket.recv(timeout=10)))[0])  # type: ignore[arg-type]
    assert len(received) < 100
    assert received == sorted(received)


def test_who_may_not_watch_is_refused(sqlite_service: RunningService, subtests: pytest.Subtests) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    for name, run_id, origin, cookie in [
        ("nobody", run.id, None, False),
        ("another page", run.id, "http://evil.example", True),
        ("unknown run", "0" * 26, None, True),
        ("no id", "x", None, True),
    ]:
        with subtests.test(who=name), pytest.raises(InvalidStatus, match="403"):
            _open(sqlite_service, run_id, origin=origin, cookie=cookie)


def test_a_script_watches_by_token(sqlite_service: RunningService, redis_url: str) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    with sqlite_service.client_as(Role.VIEWER) as script, _painter(redis_url, run.id):
        url = sqlite_service.url.replace("http", "ws")
        headers = {"Authorization": script.headers["Authorization"]}
        with connect(f"{url}/api/v1/runs/{run.id}/live", additional_headers=headers) as socket:
            assert socket.recv(timeout=10)


def test_the_socket_closes_when_the_server_does(sqlite_service: RunningService) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    with _open(sqlite_service, run.id) as socket:
        begun = time.monotonic()
        sqlite_service.stop()
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=10)
        assert time.monotonic() - begun < 6


def test_a_watcher_is_asked_anew_who_it_is(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    monkeypatch.setattr(watching, "LIFETIME_S", 0.2)
    with _open(sqlite_service, run.id) as socket, pytest.raises(ConnectionClosed):
        socket.recv(timeout=10)
