"""Requests end at their deadline, and soon after their client has left."""

from threading import Event
from typing import Any

import pytest
from sqlalchemy import TextClause, text
from sqlalchemy.orm import Session

from backend.http import bodies
from backend.platform.principals import Role
from backend.runs.runs import repository
from tests.support import external
from tests.support.service import RunningService
from tests.support.sockets import connected, get_request
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.service

ENDLESS = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
LEFT_FOR_S = 2.0
"""How long a request may go on after its client has left."""
SHORT = text(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT sum(i) FROM n"
)


class EndlessRequest:
    """A list whose endpoint executes one statement after another, each short unless another is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, statement: TextClause = SHORT) -> None:
        self._statement = statement
        self.has_begun = Event()
        self.has_ended = Event()
        monkeypatch.setattr(repository, "page", self._page)

    def _page(self, session: Session, *_: Any, **__: Any) -> Any:
        self.has_begun.set()
        try:
            while True:
                session.execute(self._statement)
        finally:
            self.has_ended.set()


def test_request_ends_when_its_client_leaves(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "REQUEST_S", 10 * PATIENCE_S)
    request = EndlessRequest(monkeypatch)
    with service.client_as(Role.VIEWER) as viewer:
        sent = get_request(service.url, "/api/v1/runs", {"Authorization": viewer.headers["Authorization"]})
        with connected(service.url, sent):
            assert request.has_begun.wait(PATIENCE_S)
            assert not request.has_ended.is_set()
        assert request.has_ended.wait(PATIENCE_S)


@pytest.mark.long
@pytest.mark.parametrize("statement", [SHORT, ENDLESS], ids=["short", "endless"])
def test_request_ends_soon_after_its_client_has_left(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, statement: TextClause
) -> None:
    monkeypatch.setattr(bodies, "REQUEST_S", 10 * PATIENCE_S)
    monkeypatch.setattr("backend.db.engine.QUERY_TIMEOUT_S", 10 * PATIENCE_S)
    request = EndlessRequest(monkeypatch, statement)
    with service.client_as(Role.VIEWER) as viewer:
        sent = get_request(service.url, "/api/v1/runs", {"Authorization": viewer.headers["Authorization"]})
        with connected(service.url, sent):
            assert request.has_begun.wait(PATIENCE_S)
            assert not request.has_ended.is_set()
        assert request.has_ended.wait(LEFT_FOR_S)


def test_statements_of_a_request_have_one_deadline(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "REQUEST_S", 0.5)
    request = EndlessRequest(monkeypatch)
    answer = service.client.get("/api/v1/runs")
    assert (answer.status_code, request.has_ended.is_set()) == (503, True)
    assert "cancelled" in answer.json()["detail"]


def test_client_that_left_waits_for_no_turn(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "REQUEST_S", 10 * PATIENCE_S)
    request = EndlessRequest(monkeypatch)
    limits = sqlite_service.app_state.limits
    lists, requests = limits.lists, limits.requests
    with sqlite_service.client_as(Role.VIEWER) as viewer:
        path = "/api/v1/runs?filter=score%3E1"
        sent = get_request(sqlite_service.url, path, {"Authorization": viewer.headers["Authorization"]})
        with connected(sqlite_service.url, sent, n=2):
            assert request.has_begun.wait(PATIENCE_S)
            until(lambda: lists.n_working == 2)
            with connected(sqlite_service.url, sent, n=8):
                until(lambda: (lists.n_working, lists.n_waiting, requests.n_waiting) == (2, 2, 6))
                assert sqlite_service.client.get("/api/v1/hosts").status_code == 200
            until(lambda: (lists.n_working, lists.n_waiting, requests.n_waiting) == (2, 0, 0))
        until(lambda: lists.n_waiting == lists.n_working == 0)


def test_request_has_a_deadline_of_its_own_after_others_of_its_connection(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's tasks inherit the context in which it resumed reading."""
    client, body = sqlite_service.client, b"x" * 1_000_000
    run = external.create(client)
    for n in range(3):
        assert client.post("/api/v1/runs/bulk", content=body).status_code == 422
        assert external.upload(client, run, body, offset=n * len(body)).status_code == 200
        assert client.get("/api/v1/runs").status_code == 200
    monkeypatch.setattr(bodies, "REQUEST_S", 0.5)
    request = EndlessRequest(monkeypatch)
    assert (client.get("/api/v1/runs").status_code, request.has_ended.is_set()) == (503, True)
