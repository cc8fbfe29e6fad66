"""Streams end with the session, the token or the user that opened them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from backend.access.auth import last_use
from backend.platform.principals import Role
from backend.replays.live.gameplay import POLICY_VIOLATION
from backend.specs.states import RunState
from tests.support.pages import session_headers
from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S, Patience

pytestmark = pytest.mark.service


@pytest.fixture(autouse=True)
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_use, "CHECK_INTERVAL_S", 0.2)


def _open(stack: ExitStack, client: httpx.Client) -> Iterator[str]:
    answer = stack.enter_context(client.stream("GET", "/api/v1/events"))
    lines = answer.iter_lines()
    patience = Patience()
    while next(lines) != "event: resync":  # it may be subscribed later than a heartbeat is due
        assert patience.lasts()
    return lines


def test_event_streams_end_with_their_credential_and_others_continue(service: RunningService) -> None:
    with ExitStack() as stack:
        logged_out = stack.enter_context(service.new_client())
        logged_out.get("/login", params={"token": service.login_link()})
        deleted, revoked, kept = (stack.enter_context(service.client_as(Role.VIEWER)) for _ in range(3))
        ending = [_open(stack, client) for client in (logged_out, deleted, revoked)]
        going_on = _open(stack, kept)
        logged_out.post("/api/v1/auth/logout")
        user = deleted.get("/api/v1/auth/me").json()["id"]
        assert service.client.delete(f"/api/v1/users/{user}").status_code == 204
        [token] = revoked.get("/api/v1/tokens").json()["items"]
        assert service.client.delete(f"/api/v1/tokens/{token['id']}").status_code == 204
        patience = Patience()
        for lines in ending:
            for _ in lines:
                assert patience.lasts()  # heartbeats would go on for ever
        run = make_run(service.engine)
        service.client.post(f"/api/v1/runs/{run.id}/stop")
        data = (json.loads(line[6:]) for line in going_on if line.startswith("data: "))
        assert next(event for event in data if event.get("kind") == "run")["id"] == run.id


def test_live_socket_closes_with_its_session(sqlite_service: RunningService) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    headers = session_headers(sqlite_service.client) | {"Origin": sqlite_service.url}
    url = sqlite_service.url.replace("http", "ws")
    with connect(
        f"{url}/api/v1/runs/{run.id}/live",
        additional_headers=headers,
        ping_interval=None,
        open_timeout=PATIENCE_S,
    ) as socket:
        assert sqlite_service.client.delete("/api/v1/auth/sessions").status_code == 204
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv(timeout=PATIENCE_S)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == POLICY_VIOLATION
