"""A script goes on sending while the web process is killed again and again."""

import csv
import io
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.installation import installation
from tests.support.rows import external_request
from tests.support.service import created_run
from tests.support.waiting import rounds, until

pytestmark = [pytest.mark.service, pytest.mark.long, pytest.mark.timeout(3_600)]

SOURCE = "01JD3QZ6W9K0Y5T8H2V4B7N1XC"
BATCHES, ROWS, KILLS = 300, 50, 4


class Script(threading.Thread):
    """Sends its batches one after another, each until it is stored."""

    def __init__(self, url: str, token: str, run: str) -> None:
        super().__init__(daemon=True)
        self._client = httpx.Client(
            base_url=f"{url}/api/v1/runs/{run}", headers={"Authorization": f"Bearer {token}"}, timeout=10
        )
        self.stored = 0
        """Batches whose answer has arrived."""
        self.repeated = 0
        """Batches that were sent again, and were stored already."""

    def run(self) -> None:
        with self._client:
            for sequence in range(1, BATCHES + 1):
                self._send(sequence)
                self.stored = sequence

    def _send(self, sequence: int) -> None:
        steps = list(range((sequence - 1) * ROWS, sequence * ROWS))
        series = {"metric": "loss/policy", "agent_steps": steps, "wall_time_s": steps, "value": steps}
        body: dict[str, Any] = {"source": SOURCE, "sequence": sequence, "series": [series]}
        for _ in rounds():
            try:
                answer = self._client.post("/points", json=body)
            except httpx.TransportError:
                continue
            if answer.status_code == 200:
                assert answer.json()["stored"] in (0, ROWS)
                self.repeated += answer.json()["stored"] == 0
                return
            assert answer.status_code >= 500, answer.text


def test_every_point_is_stored_once_while_the_web_process_is_killed(short_tmp: Path) -> None:
    with installation(short_tmp / "home") as running:
        client = running.log_in()
        token = client.post("/api/v1/tokens", json={"name": "script", "scope": "external_runs"}).json()
        with httpx.Client(
            base_url=running.url, headers={"Authorization": f"Bearer {token['token']}"}, timeout=30
        ) as script:
            run = created_run(script.post("/api/v1/runs", json=external_request()))
        sender = Script(running.url, token["token"], run["id"])
        sender.start()
        for kill in range(1, KILLS + 1):
            until(lambda: sender.stored >= kill * BATCHES // (KILLS + 1))  # noqa: B023
            web = until(lambda: running.children().get("web"))
            web.kill()
        sender.join(900)
        assert sender.stored == BATCHES
        exported = client.get(f"/api/v1/runs/{run['id']}/export", params={"format": "csv"})
        lines = [line for line in io.StringIO(exported.text) if not line.startswith("#")]
        values = [float(row["value"]) for row in csv.DictReader(lines)]
        assert values == [float(step) for step in range(BATCHES * ROWS)]
