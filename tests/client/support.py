"""What the client's tests read from the service they log to."""

import csv
import io
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

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
        items: list[dict[str, Any]] = self.client.get("/api/v1/runs").raise_for_status().json()["items"]
        return items

    def points(self, run_id: str | None) -> dict[str, list[dict[str, str]]]:
        """Every point of a run by metric, in order, as its export has them."""
        answer = self.client.get(f"/api/v1/runs/{run_id}/export", params={"format": "csv"})
        answer.raise_for_status()
        series: dict[str, list[dict[str, str]]] = {}
        for row in csv.DictReader(io.StringIO(answer.text)):
            series.setdefault(row["metric"], []).append(row)
        return series

    def lines(self, run_id: str | None) -> list[str]:
        """The messages of a run's log."""
        answer = self.client.get(f"/api/v1/runs/{run_id}/log").raise_for_status()
        return [line["message"] for line in answer.json()["items"]]


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
