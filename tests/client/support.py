"""What the client's tests read from the service they log to."""

import csv
import io
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from callboard.names import of_cell
from callboard.spool import Spool
from tests.support.service import RunningServer, RunningService

NOBODY = "http://127.0.0.1:9"
"""An address at which no server answers."""


@dataclass(frozen=True)
class Target:
    """A real service, and a client with a token of its own."""

    service: RunningService
    client: httpx.Client

    def run(self, run_id: str | None) -> dict[str, Any]:
        """A run as the service has it."""
        answer = self.client.get(f"/api/v1/runs/{run_id}")
        answer.raise_for_status()
        run: dict[str, Any] = answer.json()
        return run

    def runs(self) -> list[dict[str, Any]]:
        """All runs."""
        answer = self.client.get("/api/v1/runs", params={"spec": True}).raise_for_status()
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    def points(self, run_id: str | None) -> dict[str, list[dict[str, str]]]:
        """Every point of a run by metric, in order, as its export has them."""
        answer = self.client.get(f"/api/v1/runs/{run_id}/export", params={"format": "csv"})
        answer.raise_for_status()
        series: dict[str, list[dict[str, str]]] = {}
        for row in csv.DictReader(io.StringIO(answer.text)):
            series.setdefault(of_cell(row["metric"]), []).append(row)
        return series

    def lines(self, run_id: str | None) -> list[str]:
        """The messages of a run's log, of all its pages."""
        messages: list[str] = []
        page: dict[str, Any] = {"next_cursor": ""}
        while (cursor := page["next_cursor"]) is not None:
            query = {"limit": 1_000} | ({"cursor": cursor} if cursor else {})
            page = self.client.get(f"/api/v1/runs/{run_id}/log", params=query).raise_for_status().json()
            messages += [line["message"] for line in page["items"]]
        return messages


class Intermittent:
    """A second server of a service, which comes and goes at an address that is kept for it."""

    def __init__(self, service: RunningService) -> None:
        # Bound, but not listening: connections are refused, and nobody else gets the port.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        port = self._reserved.getsockname()[1]
        self._settings = service.settings.model_copy(update={"port": port})
        self.url = f"http://127.0.0.1:{port}"

    @contextmanager
    def running(self) -> Iterator[None]:
        """The server answers."""
        with RunningServer(self._settings):
            yield

    def close(self) -> None:
        """Free the port."""
        self._reserved.close()


def rows_of(folder: Path, copy: Path) -> dict[str, int]:
    """How many rows of a spool wait, by kind; it is left as it is."""
    shutil.copytree(folder, copy)
    spool = Spool.open(copy)
    assert spool is not None
    n_rows: dict[str, int] = {}
    while (request := spool.next()) is not None:
        n_rows[request.kind] = n_rows.get(request.kind, 0) + request.n_rows
        spool.confirm(request, stored=True)
    spool.close()
    return n_rows


@dataclass(frozen=True)
class Answer:
    """What a proxy answers itself."""

    status: int
    content_type: str = "text/plain"
    body: bytes | None = b"404 page not found\n"
    """None: the request's body."""
    is_forwarded: bool = False
    """Whether the server gets the request before its answer is lost."""


class Proxy:
    """A proxy before a service, which may answer itself."""

    def __init__(self, upstream: str) -> None:
        self.answer: Callable[[str, bytes], Answer | None] = lambda path, body: None
        """From the path and the body of a request, what to answer instead of the service."""
        self.n_answered = 0
        """Requests that it has answered itself."""
        self.largest = 0
        """Bytes of the largest body that came."""
        proxy, client = self, httpx.Client(base_url=upstream, timeout=60.0)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: Any) -> None:
                """Nothing."""

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                proxy.largest = max(proxy.largest, len(body))
                answer = proxy.answer(self.path, body)
                if answer is None or answer.is_forwarded:
                    kept = ("authorization", "content-type", "idempotency-key")
                    headers = {name: text for name, text in self.headers.items() if name.lower() in kept}
                    given = client.request(self.command, self.path, content=body, headers=headers)
                if answer is None:
                    self.send(given.status_code, given.headers.get("content-type", ""), given.content)
                else:
                    proxy.n_answered += 1
                    self.close_connection = True
                    self.send(
                        answer.status, answer.content_type, body if answer.body is None else answer.body
                    )

            def send(self, status: int, content_type: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Location", "https://login.example.invalid/")
                if self.close_connection:
                    self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = forward

        self._client = client
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()
        self._client.close()
