import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import select

from backend.alerts.deliveries import service as deliveries
from backend.alerts.targets.addresses import opened
from backend.coordination.alerting import deliver_next
from backend.coordination.context import Context
from backend.db import Delivery
from backend.db.engine import reading, writing
from tests.support.service import RunningService

pytestmark = pytest.mark.service


class Receiver:
    """A web server that keeps what it gets; `answers` are the next statuses, then 200."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(json.loads(body))
                status = receiver.answers.pop(0) if receiver.answers else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", receiver.url.replace("json", "http"))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"json://127.0.0.1:{self.server.server_port}/hook"
        Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture
def alert_id(service: RunningService, receiver: Receiver) -> str:
    """Of a trial that waits to be delivered to the receiver."""
    url, body = "/api/v1/alert-targets", {"name": "lab", "secret_url": receiver.url}
    target = service.client.post(url, json=body).json()["id"]
    raised: dict[str, Any] = service.client.post(f"{url}/{target}/trial").json()
    assert [way["state"] for way in raised["deliveries"]] == ["pending"]
    return str(raised["id"])


def _deliver(service: RunningService) -> bool:
    settings = service.settings.model_copy(update={"public_url": "https://callboard.example"})
    return deliver_next(Context(settings, service.engine, service.artifacts, service.app_state.bus))


def _row(service: RunningService) -> Delivery:
    with reading(service.engine) as session:
        return session.scalars(select(Delivery)).one()


def _make_due(service: RunningService) -> None:
    with writing(service.engine) as session:
        session.scalars(select(Delivery)).one().due_at = datetime.now(UTC) - timedelta(seconds=1)


def test_alert_is_delivered_once_with_its_id(
    service: RunningService, receiver: Receiver, alert_id: str
) -> None:
    assert _deliver(service)
    assert not _deliver(service)
    [message] = receiver.received
    assert (message["id"], message["kind"], message["title"]) == (alert_id, "trial", "Trial of lab")
    assert message["url"] == "https://callboard.example/alerts"
    [way] = service.client.get(f"/api/v1/alerts/{alert_id}").json()["deliveries"]
    assert (way["target"], way["state"], way["tries"], way["error"]) == ("lab", "delivered", 1, None)


def test_refused_alert_is_tried_eight_times_over_six_hours(
    service: RunningService, receiver: Receiver, alert_id: str
) -> None:
    receiver.answers = [500] * 7 + [302]
    waits_s = []
    for _ in range(deliveries.MAX_TRIES):
        assert _deliver(service)
        assert not _deliver(service), "the next try is later"
        waits_s.append(round((_row(service).due_at - datetime.now(UTC)).total_seconds(), -1))
        _make_due(service)
    assert waits_s[:-1] == [round(delay_s, -1) for delay_s in deliveries.DELAYS_S]
    assert sum(deliveries.DELAYS_S) == 6 * 3600
    row = _row(service)
    assert (row.state, row.tries, len(receiver.received)) == ("failed", 8, 8), "no redirect is followed"
    assert not _deliver(service)


def test_delivery_of_a_killed_worker_is_tried_again_after_its_lease(
    service: RunningService, receiver: Receiver, alert_id: str
) -> None:
    with writing(service.engine) as session:
        killed = deliveries.lease(session)
    assert killed is not None
    assert not _deliver(service), "it is leased"
    _make_due(service)
    assert _deliver(service)
    assert [message["id"] for message in receiver.received] == [alert_id]
    with writing(service.engine) as session:
        deliveries.settle(session, killed, "late")
    assert _row(service).state == "delivered"


def test_addresses_cannot_change_how_they_are_used() -> None:
    _, sender = opened("https://hooks.example/x?redirect=yes&retry=9&rto=3600&cto=3600")
    assert (sender.redirects, sender.retry) == (False, 0)
    assert (sender.socket_connect_timeout, sender.socket_read_timeout) == (5.0, 10.0)
