"""Clients that send half a request, or do not read the response."""

import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

from tests.support.waiting import PATIENCE_S

SMALL_BUFFER_BYTES = 4096


@contextmanager
def connected(url: str, *sent: bytes, n: int = 1) -> Iterator[list[socket.socket]]:
    """`n` connections to a server, each of which has sent this."""
    address = urlsplit(url)
    with ExitStack() as stack:
        sockets = []
        for _ in range(n):
            client = stack.enter_context(socket.socket())
            # Small, so that a client that does not read stops the server early.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
            client.settimeout(PATIENCE_S)
            client.connect((address.hostname, address.port))
            for part in sent:
                client.sendall(part)
            sockets.append(client)
        yield sockets


def get_request(url: str, path: str, headers: Mapping[str, str]) -> bytes:
    """A whole GET request."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {urlsplit(url).netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def status_of(client: socket.socket) -> int:
    """Read the status line of a response, and nothing more."""
    line = b""
    while not line.endswith(b"\r\n"):
        part = client.recv(1)
        if not part:
            return 0
        line += part
    return int(line.split()[1])


def await_closed(clients: Iterable[socket.socket]) -> None:
    """Wait until the server has closed each connection."""
    for client in clients:
        with suppress(ConnectionResetError):
            while client.recv(2**16):
                pass
