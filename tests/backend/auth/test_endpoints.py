from datetime import timedelta

import pytest
from sqlalchemy import select

from backend.auth import service as auth
from backend.auth.access import COOKIE
from backend.db import LoginLink, User
from backend.db import Session as LoginSession
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def _link(service: RunningService) -> str:
    with writing(service.engine) as session:
        return auth.create_login_link(session)


def test_the_link_logs_in_once(service: RunningService) -> None:
    token = _link(service)
    with service.new_client() as browser:
        answer = browser.get("/login", params={"token": token})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        me = browser.get("/api/v1/auth/me").json()
        assert (me["name"], me["role"]) == ("owner", "admin")
    with service.new_client() as other:
        answer = other.get("/login", params={"token": token})
        assert answer.headers["location"] == "/?login=expired"
        assert "set-cookie" not in answer.headers
        assert other.get("/api/v1/auth/me").status_code == 401


def test_an_old_link_and_an_old_session_are_no_good(service: RunningService) -> None:
    token = _link(service)
    with writing(service.engine) as session:
        past = database_now(session) - timedelta(seconds=1)
        for row in [*session.scalars(select(LoginLink)), *session.scalars(select(LoginSession))]:
            row.expires_at = past
    with service.new_client() as browser:
        assert browser.get("/login", params={"token": token}).headers["location"] == "/?login=expired"
    assert service.client.get("/api/v1/auth/me").status_code == 401


def test_log_out_ends_the_session_on_the_server(service: RunningService) -> None:
    secret = service.client.cookies[COOKIE]
    assert service.client.post("/api/v1/auth/logout").status_code == 204
    assert COOKIE not in service.client.cookies
    service.client.cookies.set(COOKIE, secret)
    assert service.client.get("/api/v1/auth/me").status_code == 401


def test_secrets_are_not_stored(service: RunningService) -> None:
    token = _link(service)
    with reading(service.engine) as session:
        kept = [row.token_hash for row in session.scalars(select(LoginLink))]
        kept += [row.token_hash for row in session.scalars(select(LoginSession))]
    assert token not in kept
    assert service.client.cookies[COOKIE] not in kept
    assert auth.hash_secret(token) in kept


def test_one_owner_however_many_links(service: RunningService) -> None:
    _link(service)
    _link(service)
    with reading(service.engine) as session:
        assert session.scalars(select(User.name)).all() == ["owner"]


def test_odd_secrets_are_nobody(sqlite_service: RunningService) -> None:
    for secret in ("x", "é", "%00", "x" * 4000):
        with sqlite_service.new_client() as browser:
            answer = browser.get("/api/v1/auth/me", headers={"Cookie": f"{COOKIE}={secret}".encode()})
            assert answer.status_code == 401
            assert answer.headers["content-type"] == "application/problem+json"
            assert browser.get("/login", params={"token": secret}).status_code in (303, 422)
