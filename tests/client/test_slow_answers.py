"""A server, or a proxy before it, that answers slowly or without end holds neither the script nor the sender.

Each answer here becomes a whole one at last: without a deadline and a bound it would be accepted.
"""

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice

import pytest

import callboard
from callboard import transport
from callboard.errors import Unreachable
from callboard.transport import Server, Transport

pytestmark = pytest.mark.long

RUN = json.dumps({"items": [{"id": "0" * 26}]}).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
N_PIECES = 60
"""Of an answer that comes slowly."""


def answer(body: bytes, head: bytes = b"") -> bytes:
    """A whole answer."""
    return b"%s%sContent-Length: %d\r\n\r\n%s" % (HEAD, head, len(body), body)


def slow_body() -> Iterator[bytes]:
    yield HEAD + b"Content-Length: %d\r\n\r\n" % (len(RUN) + N_PIECES)
    yield from [b" "] * N_PIECES
    yield RUN


def slow_head() -> Iterator[bytes]:
    yield HEAD
    yield from [b"X-A: 1\r\n"] * N_PIECES
    yield b"Content-Length: %d\r\n\r\n%s" % (len(RUN), RUN)


def early_hints() -> Iterator[bytes]:
    yield from [b"HTTP/1.1 103 Early Hints\r\n\r\n"] * N_PIECES
    yield answer(RUN)


SLOW = [slow_body, slow_head, early_hints]


def large_chunks() -> Iterator[bytes]:
    yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    yield from [b"10000\r\n%s\r\n" % (b" " * 0x10000)] * (transport.MAX_ANSWER_BYTES // 0x10000)
    yield b"%x\r\n%s\r\n0\r\n\r\n" % (len(RUN), RUN)


def compressed() -> Iterator[bytes]:
    body = gzip.compress(b" " * transport.MAX_ANSWER_BYTES + RUN)
    yield answer(body, b"Content-Encoding: gzip\r\n")


LARGE = [large_chunks, compressed]


class Answering:
    """Answers every request with the pieces of an answer, at intervals."""

    def __init__(self, pieces: Iterator[bytes], interval_s: float) -> None:
        self._pieces = list(pieces)
        self._interval_s = interval_s
        self._closed = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop answering."""
        self._closed.set()
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while connection.recv(65_536):
                for piece in self._pieces:
                    connection.sendall(piece)
                    if self._closed.wait(self._interval_s):
                        return


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.transport.DEADLINE_S", 0.3)
    monkeypatch.setattr("callboard.transport.MAX_ANSWER_BYTES", 2**20)


@pytest.mark.parametrize("pieces", SLOW, ids=lambda pieces: pieces.__name__)
def test_request_has_one_deadline_however_often_bytes_come(pieces: type[Iterator[bytes]]) -> None:
    server = Answering(pieces(), 0.03)
    connection = Transport(Server(server.url, "token"))
    for _ in range(2):
        with pytest.raises(Unreachable, match=r"no whole answer in time|timed out"):
            connection.request("POST", "runs", body={})
    with suppress(Unreachable), connection.stream("runs/export"):
        assert pieces is slow_body, "the head comes too late"
    connection.close()
    server.close()


@pytest.mark.parametrize("pieces", LARGE, ids=lambda pieces: pieces.__name__)
def test_answer_has_a_largest_size_also_decompressed(
    pieces: type[Iterator[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.transport.DEADLINE_S", 30.0)
    server = Answering(pieces(), 0.0)
    connection = Transport(Server(server.url, "token"))
    with pytest.raises(Unreachable, match="more than 1,048,576 bytes"):
        connection.request("POST", "runs", body={})
    with suppress(Unreachable), connection.stream("runs/export") as response:
        assert sum(map(len, islice(response.iter_bytes(), 10_000))) > 2**20, "downloads may be larger"
    connection.close()
    server.close()


def test_compressed_answer_is_read_and_one_in_an_unknown_way_is_not_believed() -> None:
    for encoding, body in ((b"gzip", gzip.compress(RUN)), (b"identity", RUN), (b"", RUN)):
        server = Answering(iter([answer(body, b"Content-Encoding: %s\r\n" % encoding)]), 0.0)
        with closing(server), closing(Transport(Server(server.url, "token"))) as connection:
            assert connection.request("POST", "runs", body={}) == json.loads(RUN)
    for encoding, body in ((b"gzip", RUN), (b"br", RUN), (b"zstd", RUN), (b"gzip, gzip", gzip.compress(RUN))):
        server = Answering(iter([answer(body, b"Content-Encoding: %s\r\n" % encoding)]), 0.0)
        with (
            closing(server),
            closing(Transport(Server(server.url, "token"))) as connection,
            pytest.raises(Unreachable, match="something else than Callboard"),
        ):
            connection.request("POST", "runs", body={})


@pytest.mark.parametrize("pieces", [slow_body, early_hints, compressed], ids=lambda pieces: pieces.__name__)
def test_script_is_not_held_by_a_server_that_answers_slowly_or_without_end(
    pieces: type[Iterator[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Answering(pieces(), 0.03)
    run = callboard.init(algorithm="a", environment="e", url=server.url, token="token")
    assert run.id is None, "the server has not answered in time"
    for step in range(10):
        run.log({"loss/policy": 1.0}, agent_steps=step)
    monkeypatch.setattr("callboard.background.FIRST_RETRY_S", 0.01)
    run.close()
    assert run.n_dropped == 0
    server.close()


def test_read_is_sent_again_when_the_server_closes_the_idle_connection_that_it_is_sent_on() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    n_requests: list[int] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    n_requests.append(0)
                    while connection.recv(65_536):
                        n_requests[-1] += 1
                        if n_requests[-1] > 1:
                            break  # as if it had closed the connection just before
                        connection.sendall(answer(RUN))

    threading.Thread(target=serve, daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with closing(listener), closing(Transport(Server(url, "t"))) as client:
        for _ in range(3):
            assert client.request("GET", "runs") == json.loads(RUN)
        with pytest.raises(Unreachable):
            client.request("POST", "runs", body={})
    assert n_requests == [2, 2, 2]
