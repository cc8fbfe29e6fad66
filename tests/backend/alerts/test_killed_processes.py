"""Alerts of an installation whose web process and worker are killed while alerts are on their way."""

from typing import Any

import httpx
import pytest

from tests.support import external
from tests.support.alerts import Receiver
from tests.support.databases import short_folder
from tests.support.installation import installation
from tests.support.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.service, pytest.mark.long]

LEASE_AND_TRIES_S = 300.0 + PATIENCE_S


def test_each_alert_is_once_in_the_inbox_and_at_least_once_at_the_receiver_after_kills() -> None:
    with (
        short_folder() as folder,
        installation(folder / "home", lease_s=5, reconcile_interval_s=0.5) as running,
        Receiver() as receiver,
    ):
        client = running.log_in()

        def ask(method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
            """The answer; None while the web process is being started again."""
            try:
                answer = client.request(method, path, json=body)
            except httpx.TransportError:
                return None
            answer.raise_for_status()
            content: dict[str, Any] = answer.json()
            return content

        def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
            return until(lambda: ask("POST", path, body))

        def line(n: int) -> dict[str, Any]:
            sent = {"time": "2026-01-01T00:00:00Z", "message": "text", "alert": f"alert {n}"}
            return {"source": "0" * 26, "sequence": n, "lines": [sent]}

        def kill(name: str) -> None:
            until(lambda: running.children().get(name)).kill()

        target = post("/api/v1/alert-targets", {"name": "lab", "secret_url": receiver.url})["id"]
        post("/api/v1/alert-rules", {"kinds": ["finished", "failed", "script"], "targets": [target]})
        script = external.create(client, name="script")["id"]
        receiver.open.clear()
        post(f"/api/v1/runs/{script}/log", line(1))
        until(lambda: receiver.received, detail=lambda: running.output[-2_000:])
        kill("worker")  # which waits for the receiver's answer
        receiver.open.set()
        post(f"/api/v1/runs/{script}/log", line(2))
        kill("web")
        post(f"/api/v1/runs/{script}/log", line(2))  # its answer may have been lost
        post(f"/api/v1/runs/{script}/log", line(3))
        kill("worker")
        post(f"/api/v1/runs/{script}/heartbeat", {"state": "failed", "reason": "for the test"})
        kill("web")
        post(f"/api/v1/runs/{script}/heartbeat", {"state": "finished"})

        def delivered() -> list[dict[str, Any]] | None:
            items = (ask("GET", "/api/v1/alerts") or {"items": []})["items"]
            ways = [way["state"] for alert in items for way in alert["deliveries"]]
            return items if len(items) == 5 and ways == ["delivered"] * 5 else None

        def state() -> str:
            runs = (ask("GET", "/api/v1/runs") or {"items": []})["items"]
            return f"{ask('GET', '/api/v1/alerts')} {[(run['name'], run['state']) for run in runs]}"

        alerts = until(delivered, LEASE_AND_TRIES_S, every_s=0.5, detail=state)
        titles = sorted(alert["title"] for alert in alerts)
        expected = [*(f"script: alert {n}" for n in (1, 2, 3)), "script: failed", "script: finished"]
        assert titles == sorted(expected)
        received = [message["id"] for message in receiver.received]
        assert set(received) == {alert["id"] for alert in alerts}
        [first] = (alert["id"] for alert in alerts if alert["title"] == "script: alert 1")
        assert received.count(first) == 2, "the worker was killed before it could record the first delivery"
