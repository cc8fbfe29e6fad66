"""Clients that send half a request, and too many connections."""

import resource

import pytest

from backend.http import connections
from tests.support.service import RunningService
from tests.support.sockets import await_closed, connected, status_of
from tests.support.waiting import until

pytestmark = pytest.mark.service

HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: loc"
HALF_A_BODY = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


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
