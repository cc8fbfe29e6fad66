import asyncio
import socket as socket_module
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from backend.http import connections
from backend.platform.principals import Role
from backend.pubsub.bus import WATCH_CHANNEL, WATCH_EXPIRES_S, frames_channel
from backend.replays.live import gameplay
from backend.specs.states import RunState
from tests.support.pages import session_headers
from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S, Patience, until
from tests.support.watching import await_frame

pytestmark = pytest.mark.service


def _open(
    service: RunningService, run_id: str, *, origin: str | None = None, cookie: bool = True, **options: Any
) -> ClientConnection:
    headers = session_headers(service.client) if cookie else {}
    url = service.url.replace("http", "ws")
    opened: ClientConnection = connect(
        f"{url}/api/v1/runs/{run_id}/live",
        origin=Origin(origin or service.url),
        additional_headers=headers,
        open_timeout=PATIENCE_S,
        ping_timeout=PATIENCE_S,
        **options,
    )
    return opened


@contextmanager
def _streaming_worker(redis_url: str, run_id: str) -> Iterator[list[float]]:
    """Run a worker that publishes frames while it is watched. Yield the times of the watch notifications."""
    notified: list[float] = []
    done = threading.Event()

    def publish_frames() -> None:
        with redis.Redis.from_url(redis_url) as client, client.pubsub() as listener:
            listener.subscribe(WATCH_CHANNEL)
            step = 0
            while not done.is_set():
                message = listener.get_message(ignore_subscribe_messages=True, timeout=0.02)
                if message is not None and message["data"] == run_id.encode():
                    notified.append(time.monotonic())
                if notified and time.monotonic() - notified[-1] < WATCH_EXPIRES_S:
                    step += 1
                    client.publish(frames_channel(run_id), step.to_bytes(8, "little") + b"jpeg")

    thread = threading.Thread(target=publish_frames, daemon=True)
    thread.start()
    try:
        yield notified
    finally:
        done.set()
        thread.join()


def test_frames_arrive_while_a_client_watches(sqlite_service: RunningService, redis_url: str) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    with _streaming_worker(redis_url, run.id) as notified:
        assert notified == []
        with _open(sqlite_service, run.id) as socket:
            frames = [await_frame(socket) for _ in range(20)]
        steps = [step for step, _ in frames]
        assert steps == sorted(set(steps))
        assert {jpeg for _, jpeg in frames} == {b"jpeg"}
        assert notified


def test_slow_client_skips_frames_and_gets_none_out_of_order(
    sqlite_service: RunningService, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SEND_TIMEOUT_S", PATIENCE_S)
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    server = urlsplit(sqlite_service.url)
    small = socket_module.socket()
    # The system might buffer all frames otherwise.
    small.setsockopt(socket_module.SOL_SOCKET, socket_module.SO_RCVBUF, 2**18)
    small.settimeout(PATIENCE_S)
    small.connect((server.hostname, server.port))
    with (
        redis.Redis.from_url(redis_url) as client,
        _open(sqlite_service, run.id, sock=small, max_queue=1) as socket,
    ):
        until(lambda: client.publish(frames_channel(run.id), (0).to_bytes(8, "little")))
        large = b"x" * 250_000
        for step in range(1, 101):
            client.publish(frames_channel(run.id), step.to_bytes(8, "little") + large)
        # Wait until the server has read every frame: it drops the frames that it could not send in time.
        until(lambda: not any(int(connection["omem"]) for connection in client.client_list(_type="pubsub")))
        received = [await_frame(socket)[0]]
        patience = Patience()
        while patience.lasts() and received[-1] < 100:
            received.append(await_frame(socket)[0])
    assert len(received) < 100
    assert received == sorted(received)


def test_live_socket_rejects_unauthorised_clients_and_unknown_runs(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    for name, run_id, origin, cookie in [
        ("nobody", run.id, None, False),
        ("another page", run.id, "http://evil.example", True),
        ("unknown run", "0" * 26, None, True),
        ("no id", "x", None, True),
    ]:
        with subtests.test(who=name), pytest.raises(InvalidStatus, match="403"):
            _open(sqlite_service, run_id, origin=origin, cookie=cookie)


def test_live_socket_accepts_a_token(sqlite_service: RunningService, redis_url: str) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    with sqlite_service.client_as(Role.VIEWER) as script, _streaming_worker(redis_url, run.id):
        url = sqlite_service.url.replace("http", "ws")
        headers = {"Authorization": script.headers["Authorization"]}
        with connect(
            f"{url}/api/v1/runs/{run.id}/live", additional_headers=headers, open_timeout=PATIENCE_S
        ) as socket:
            assert socket.recv(timeout=PATIENCE_S)


def test_live_socket_closes_when_server_stops(sqlite_service: RunningService) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    with _open(sqlite_service, run.id) as socket:
        sqlite_service.stop()
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=PATIENCE_S)


def test_live_socket_frees_its_slot_if_a_cancellation_is_ignored(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """redis-py ignores one that comes just after a command was sent, on Python 3.11."""
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    limits = sqlite_service.app_state.limits
    ignored = threading.Event()

    async def publish(channel: str, message: str) -> bool:
        if not ignored.is_set():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ignored.set()
        return True

    monkeypatch.setattr(sqlite_service.app_state.subscription, "publish", publish)
    with _open(sqlite_service, run.id):
        until(lambda: limits.sockets.n_taken)
    until(lambda: not limits.sockets.n_taken)
    assert ignored.is_set()


def test_live_socket_closes_after_its_lifetime(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    monkeypatch.setattr(gameplay, "LIFETIME_S", 0.2)
    with _open(sqlite_service, run.id) as socket, pytest.raises(ConnectionClosed):
        socket.recv(timeout=PATIENCE_S)
