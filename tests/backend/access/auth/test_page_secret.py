"""A session's cookie alone, which a browser sends to every port of a host, opens nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from backend.access.auth import tickets
from backend.access.auth.secrets import SessionSecrets
from backend.app import OPEN_PATHS
from backend.db import LoginSession
from backend.db.engine import reading
from backend.db.migrate import upgrade
from backend.http.dependencies import PAGE_SECRET_HEADER
from backend.platform.principals import Role
from backend.specs.states import RunState
from tests.support.pages import session_cookie
from tests.support.routes import addresses
from tests.support.rows import make_run
from tests.support.service import RunningService, running_service
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.service

ME = "/api/v1/auth/me"


@pytest.fixture
def thief(sqlite_service: RunningService) -> Iterator[httpx.Client]:
    """A client with the cookie of the owner's session, as a page of another port receives it."""
    name = session_cookie(sqlite_service.address)
    with httpx.Client(
        base_url=sqlite_service.url,
        cookies={name: sqlite_service.client.cookies[name]},
        headers={"Origin": sqlite_service.url},
        timeout=PATIENCE_S,
    ) as client:
        yield client


def _status(client: httpx.Client, method: str, path: str, **request: object) -> int:
    with client.stream(method, path, **request) as answer:  # type: ignore[arg-type]
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):  # it has no end
            answer.read()  # keeps the connection
        return answer.status_code


@pytest.mark.long
def test_every_route_refuses_the_cookie_alone(sqlite_service: RunningService, thief: httpx.Client) -> None:
    owner = sqlite_service.client
    ticket = {"ticket": owner.get(ME).json()["ticket"]}
    n_routes = 0
    routes = addresses(sqlite_service, make_run(sqlite_service.engine).id)
    for method, path in sorted(routes, key=_ends_session):
        if path in OPEN_PATHS:
            continue
        body: dict[str, Any] = {} if method == "GET" else {"json": {}}
        n_routes += 1
        assert _status(thief, method, path, **body) == 401, (method, path)
        wrong = {PAGE_SECRET_HEADER: "x" * 43}
        assert _status(thief, method, path, headers=wrong, **body) == 401, (method, path)
        with_ticket = _status(thief, method, path, params=ticket, **body)
        assert (with_ticket == 401) == (method != "GET"), (method, path)
        assert _status(owner, method, path, **body) not in (401, 403, 500), (method, path)
        if _ends_session((method, path)):
            owner.get("/login", params={"token": sqlite_service.login_link()})
    assert n_routes > 90


def _ends_session(address: tuple[str, str]) -> bool:
    return address in {("POST", "/api/v1/auth/logout"), ("DELETE", "/api/v1/auth/sessions")}


def test_refusal_of_the_cookie_alone_is_named(thief: httpx.Client) -> None:
    problem = thief.get(ME).json()
    assert problem["code"] == "page_secret_missing"
    assert PAGE_SECRET_HEADER in problem["detail"]


def test_the_page_secret_alone_and_a_ticket_alone_open_nothing(sqlite_service: RunningService) -> None:
    owner = sqlite_service.client
    secret = owner.headers[PAGE_SECRET_HEADER]
    ticket = owner.get(ME).json()["ticket"]
    with sqlite_service.new_client() as other:
        other.headers[PAGE_SECRET_HEADER] = secret
        assert other.get(ME).status_code == 401
        del other.headers[PAGE_SECRET_HEADER]
        assert other.get(ME, params={"ticket": ticket}).status_code == 401
        other.get("/login", params={"token": sqlite_service.login_link()})
        other.headers[PAGE_SECRET_HEADER] = secret  # of another session
        assert other.get(ME).status_code == 401
        del other.headers[PAGE_SECRET_HEADER]
        assert other.get(ME, params={"ticket": ticket}).status_code == 401


def test_a_ticket_gives_no_ticket_and_ends(
    sqlite_service: RunningService, thief: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = sqlite_service.client
    ticket = owner.get(ME).json()["ticket"]
    assert thief.get(ME, params={"ticket": ticket}).json()["ticket"] is None
    session_id, expires_at, signature = ticket.split(".")
    for forged in (
        f"{session_id}.{int(expires_at) + 1}.{signature}",
        f"{'0' * 26}.{expires_at}.{signature}",
        f"{session_id}.{expires_at}.{'0' * 64}",
        f"{session_id}.{expires_at}",
        "x",
    ):
        assert thief.get(ME, params={"ticket": forged}).status_code == 401
    monkeypatch.setattr(tickets, "LIFETIME_S", -1)
    expired = owner.get(ME).json()["ticket"]
    assert thief.get(ME, params={"ticket": expired}).status_code == 401
    assert owner.post("/api/v1/auth/logout").status_code == 204
    assert thief.get(ME, params={"ticket": ticket}).status_code == 401


def test_the_stored_hash_opens_nothing(sqlite_service: RunningService) -> None:
    """Who reads the database, or a backup of it, can sign tickets, but has no cookie that fits them."""
    with reading(sqlite_service.engine) as session:
        [stored] = session.scalars(select(LoginSession))
    made_up = SessionSecrets("cookie", "page")
    ticket = tickets.sign(stored.id, 9_999_999_999, stored.token_hash)
    for cookie in (made_up.cookie, stored.token_hash, stored.token_hash[:32]):
        with httpx.Client(
            base_url=sqlite_service.url, cookies={session_cookie(sqlite_service.address): cookie}
        ) as reader:
            assert reader.get(ME, params={"ticket": ticket}).status_code == 401


def test_live_socket_needs_a_ticket_beside_the_cookie(
    sqlite_service: RunningService, thief: httpx.Client
) -> None:
    run = make_run(sqlite_service.engine, RunState.RUNNING)
    address = f"{sqlite_service.url.replace('http', 'ws')}/api/v1/runs/{run.id}/live"
    name = session_cookie(sqlite_service.address)
    headers = {"Cookie": f"{name}={thief.cookies[name]}", "Origin": sqlite_service.url}
    with (
        pytest.raises(InvalidStatus, match="403"),
        connect(address, additional_headers=headers, open_timeout=PATIENCE_S),
    ):
        pass
    ticket = sqlite_service.client.get(ME).json()["ticket"]
    with connect(f"{address}?ticket={ticket}", additional_headers=headers, open_timeout=PATIENCE_S):
        pass


def test_new_password_gives_the_page_a_new_secret(sqlite_service: RunningService) -> None:
    owner = sqlite_service.client
    before = owner.headers[PAGE_SECRET_HEADER]
    change = {"current": "", "new": "five words are long enough"}
    assert owner.post("/api/v1/auth/password", json=change).status_code == 200
    assert owner.headers[PAGE_SECRET_HEADER] != before
    assert owner.get(ME).status_code == 200


def test_token_needs_no_page_secret_and_has_no_ticket(sqlite_service: RunningService) -> None:
    with sqlite_service.client_as(Role.VIEWER) as script:
        assert script.get(ME).json()["ticket"] is None


def test_login_at_one_server_of_a_host_leaves_that_at_another(
    sqlite_service: RunningService, redis_url: str, tmp_path: Path
) -> None:
    """A browser has one jar of cookies for all ports of a host."""
    other_database = f"sqlite:///{tmp_path / 'other.sqlite3'}"
    upgrade(other_database)
    with (
        running_service(other_database, redis_url, tmp_path / "home") as other,
        httpx.Client(cookies=dict(sqlite_service.client.cookies), timeout=PATIENCE_S) as browser,
    ):
        browser.cookies.update(dict(other.client.cookies))
        for service in (sqlite_service, other):
            secret = {PAGE_SECRET_HEADER: service.client.headers[PAGE_SECRET_HEADER]}
            assert browser.get(f"{service.url}{ME}", headers=secret).status_code == 200
