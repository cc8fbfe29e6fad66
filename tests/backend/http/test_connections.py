"""Clients that send half a request, and too many connections."""

import resource
import socket
from collections.abc import Iterator
from contextlib import suppress
from threading import Event

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from backend.http import connections
from backend.platform.principals import Role
from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.sockets import await_closed, connected, get_request, status_of
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.service

HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: loc"
HALF_A_BODY = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.long
def test_incomplete_requests_are_closed(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 0.5)
    monkeypatch.setattr(connections, "BODY_TIMEOUT_S", 0.5)
    for name, sent in (
        ("nothing", b""),
        ("half a head", HALF_A_HEAD),
        ("half a body", HALF_A_BODY),
        ("half a head after a whole request", WHOLE + HALF_A_HEAD),
    ):
        with subtests.test(sent=name), connected(sqlite_service.url, sent) as clients:
            await_closed(clients)
    with subtests.test(sent="a head, byte by byte"), connected(sqlite_service.url) as (client,):

        def is_cut() -> bool:
            try:
                client.sendall(b"G")
            except OSError:
                return True
            return False

        until(is_cut, every_s=0.05)


def test_whole_requests_of_one_connection_are_answered(sqlite_service: RunningService) -> None:
    with connected(sqlite_service.url, WHOLE[:10], WHOLE[10:]) as (client,):
        assert status_of(client) == 200
        client.sendall(WHOLE)
        received = b""
        while received.count(b'{"status":"ok"}') < 2:
            received += client.recv(2**16)
        assert received.count(b"HTTP/1.1 200") == 1


def test_requests_are_answered_during_many_half_open_connections(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 20)
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 600.0)
    with connected(sqlite_service.url, HALF_A_HEAD, n=60) as clients:
        for _ in range(5):
            with sqlite_service.new_client() as visitor:
                assert visitor.get("/healthz").status_code == 200
        await_closed(clients[:30])  # the oldest


def test_descriptors_bound_the_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert connections.max_connections() == 1024 - connections.OTHER_DESCRIPTORS
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    connections.raise_descriptor_limit()
    assert raised == [(4096, 4096)]


def test_body_in_tiny_chunks_is_refused_at_once(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for size, status in ((1, 400), (100, 400), (1_024, 422)):
        with subtests.test(size=size), connected(sqlite_service.url, head) as (client,):
            chunks = b"%x\r\n%s\r\n" % (size, b" " * size) * 15
            client.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
            with suppress(OSError):  # cut while it sends
                for _ in range(1 if status == 422 else 100):
                    client.sendall(chunks)
                client.sendall(b"0\r\n\r\n")
            assert status_of(client) == status


def test_body_byte_by_byte_may_take_a_few_packets(sqlite_service: RunningService) -> None:
    body = b'{"name": "a", "password": "b"}'
    head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with connected(sqlite_service.url, head + b"Content-Length: %d\r\n\r\n" % len(body)) as (client,):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in body:
            client.sendall(bytes([byte]))
        assert status_of(client) == 401


def test_websocket_is_not_cut_like_a_request_whose_body_does_not_come(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BODY_TIMEOUT_S", 0.3)
    run = make_run(sqlite_service.engine)
    url = f"{sqlite_service.url.replace('http', 'ws')}/api/v1/runs/{run.id}/live"
    with sqlite_service.client_as(Role.VIEWER) as viewer:
        headers = {"Authorization": viewer.headers["Authorization"]}
        with connect(url, additional_headers=headers, open_timeout=PATIENCE_S) as live:
            with connected(sqlite_service.url, HALF_A_BODY) as later:
                await_closed(later)
            assert live.ping().wait(PATIENCE_S)


def test_server_ends_while_a_client_closes_its_websocket(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = Event()
    # As between two turns of the event loop: the client's close has come, and the transport is still open.
    monkeypatch.setattr(
        connections.WebSocketConnection, "handle_close", lambda connection, event: closing.set()
    )
    run = make_run(sqlite_service.engine)
    url = f"{sqlite_service.url.replace('http', 'ws')}/api/v1/runs/{run.id}/live"
    with sqlite_service.client_as(Role.VIEWER) as viewer:
        headers = {"Authorization": viewer.headers["Authorization"]}
        with connect(url, additional_headers=headers, open_timeout=PATIENCE_S) as live:
            live.protocol.send_close(1000)
            live.socket.sendall(b"".join(live.protocol.data_to_send()))
            assert closing.wait(PATIENCE_S)
            sqlite_service.stop()


def test_websocket_client_that_sends_much_is_disconnected(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    run = make_run(sqlite_service.engine)
    url = f"{sqlite_service.url.replace('http', 'ws')}/api/v1/runs/{run.id}/live"
    with sqlite_service.client_as(Role.VIEWER) as viewer:
        headers = {"Authorization": viewer.headers["Authorization"]}
        for name, send in (
            ("pings", lambda live: [live.ping() for _ in range(50)]),
            ("a long message", lambda live: live.send("x" * 100_000)),
        ):
            with (
                subtests.test(name=name),
                connect(url, additional_headers=headers, open_timeout=PATIENCE_S) as live,
            ):
                with suppress(ConnectionClosed):
                    send(live)
                    while live.recv(PATIENCE_S):
                        pass
                live.close()
                assert live.close_code == 1008
        with (
            subtests.test(name="a few"),
            connect(url, additional_headers=headers, open_timeout=PATIENCE_S) as live,
        ):
            for _ in range(3):
                assert live.ping(b"x").wait(PATIENCE_S)


PING = b"\x89\x80\0\0\0\0"
CLOSE = b"\x88\x0f" + (1008).to_bytes(2) + b"too much data"


@pytest.fixture
def refused(sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A WebSocket whose client has sent too much, and has not read that it is refused."""
    monkeypatch.setattr(connections, "LEAVING_S", 600.0)
    monkeypatch.setattr(connections, "SEND_TIMEOUT_S", 600.0)
    run = make_run(sqlite_service.engine)
    with sqlite_service.client_as(Role.VIEWER) as viewer:
        headers = {
            "Authorization": viewer.headers["Authorization"],
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "A" * 22 + "==",
        }
        request = get_request(sqlite_service.url, f"/api/v1/runs/{run.id}/live", headers)
        with connected(sqlite_service.url, request) as (client,):
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += client.recv(1)
            assert answer.startswith(b"HTTP/1.1 101 ")
            client.sendall(PING * 50)
            until(lambda: client.recv(2**16, socket.MSG_PEEK).endswith(CLOSE))
            yield client


def test_refused_websocket_client_that_still_sends_can_read_why(refused: socket.socket) -> None:
    for _ in range(20):
        refused.sendall(PING)  # fails after a reset
    received = b""
    while data := refused.recv(2**16):
        received += data
    assert received.endswith(CLOSE)


def test_refused_websocket_client_that_does_not_stop_is_cut(refused: socket.socket) -> None:
    def send_on() -> None:
        for _ in range(500):
            refused.sendall(bytes(2**16))

    with pytest.raises(OSError, match=r"reset|pipe"):
        send_on()
