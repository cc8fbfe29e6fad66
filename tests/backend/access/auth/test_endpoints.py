from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.access.auth import service as auth
from backend.access.auth.passwords import hash_password
from backend.access.auth.secrets import hash_secret
from backend.db import LoginLink, LoginSession, User
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.http.dependencies import PAGE_SECRET_HEADER
from tests.support.pages import NONCE, session_cookie
from tests.support.service import RunningService

pytestmark = pytest.mark.service


PASSWORD = "correct horse battery"


def _link(service: RunningService) -> str:
    with writing(service.engine) as session:
        return auth.create_login_link(session)


def test_login_link_works_once(service: RunningService) -> None:
    token = _link(service)
    with service.new_client() as browser:
        answer = browser.get("/login", params={"token": token})
        assert (answer.status_code, answer.headers["location"]) == (
            303,
            f"/#page_secret={browser.headers[PAGE_SECRET_HEADER]}&nonce={NONCE}",
        )
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


def test_expired_link_and_expired_session_are_rejected(service: RunningService) -> None:
    token = _link(service)
    with writing(service.engine) as session:
        past = database_now(session) - timedelta(seconds=1)
        for row in [*session.scalars(select(LoginLink)), *session.scalars(select(LoginSession))]:
            row.expires_at = past
    with service.new_client() as browser:
        assert browser.get("/login", params={"token": token}).headers["location"] == "/?login=expired"
    assert service.client.get("/api/v1/auth/me").status_code == 401


def test_logout_ends_session_on_the_server(service: RunningService) -> None:
    secret = service.client.cookies[session_cookie(service.address)]
    assert service.client.post("/api/v1/auth/logout").status_code == 204
    assert session_cookie(service.address) not in service.client.cookies
    service.client.cookies.set(session_cookie(service.address), secret)
    assert service.client.get("/api/v1/auth/me").status_code == 401


def test_login_secrets_are_stored_as_hashes_only(service: RunningService) -> None:
    token = _link(service)
    with reading(service.engine) as session:
        stored = [row.token_hash for row in session.scalars(select(LoginLink))]
        stored += [row.token_hash for row in session.scalars(select(LoginSession))]
    assert token not in stored
    assert service.client.cookies[session_cookie(service.address)] not in stored
    assert service.client.headers[PAGE_SECRET_HEADER] not in stored
    assert hash_secret(token) in stored


def test_several_login_links_create_one_owner(service: RunningService) -> None:
    _link(service)
    _link(service)
    with reading(service.engine) as session:
        assert session.scalars(select(User.name)).all() == ["owner"]


def test_malformed_session_cookie_is_unauthenticated(sqlite_service: RunningService) -> None:
    for secret in ("x", "é", "%00", "x" * 4000):
        with sqlite_service.new_client() as browser:
            secrets = [
                (b"Cookie", f"{session_cookie(browser.base_url)}={secret}".encode()),
                (b"X-Page-Secret", secret.encode()),
            ]
            answer = browser.get("/api/v1/auth/me", headers=secrets)
            assert answer.status_code == 401
            assert answer.headers["content-type"] == "application/problem+json"
            assert browser.get("/login", params={"token": secret}).status_code in (303, 422)


@pytest.mark.long
def test_password_change_keeps_what_an_admin_has_changed_meanwhile(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = {"name": "Anna", "role": "operator", "password": PASSWORD}
    url = f"/api/v1/users/{service.client.post('/api/v1/users', json=anna).json()['id']}"
    meanwhile: list[Callable[[], object]] = [
        lambda: service.client.patch(url, json={"role": "viewer"}),
        lambda: service.client.patch(url, json={"password": "another good one"}),
        lambda: service.client.delete(url),
    ]

    def hash_slowly(password: str) -> str:
        meanwhile.pop(0)()
        return hash_password(password)

    monkeypatch.setattr("backend.access.auth.endpoints.hash_password", hash_slowly)
    change = {"current": PASSWORD, "new": PASSWORD + "!"}
    with service.new_client() as browser:
        browser.post("/api/v1/auth/login", json={"name": "Anna", "password": PASSWORD}).raise_for_status()
        assert browser.post("/api/v1/auth/password", json=change).status_code == 200
        assert browser.get("/api/v1/auth/me").json()["role"] == "viewer"
        change = {"current": PASSWORD + "!", "new": PASSWORD}
        assert browser.post("/api/v1/auth/password", json=change).status_code == 401
        login = {"name": "Anna", "password": "another good one"}
        browser.post("/api/v1/auth/login", json=login).raise_for_status()
        change["current"] = "another good one"
        assert browser.post("/api/v1/auth/password", json=change).status_code == 401
        assert browser.post("/api/v1/auth/login", json=login).status_code == 401
    names = [user["name"] for user in service.client.get("/api/v1/users").json()["items"]]
    assert names == ["owner"]


def test_login_with_a_password_that_has_just_been_replaced_is_refused(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = {"name": "Anna", "role": "operator", "password": PASSWORD}
    url = f"/api/v1/users/{service.client.post('/api/v1/users', json=anna).json()['id']}"
    check_password = auth.check_password

    def check_slowly(session: Session, name: str, password: str) -> User | None:
        user = check_password(session, name, password)
        service.client.patch(url, json={"password": "another good one"}).raise_for_status()
        return user

    monkeypatch.setattr(auth, "check_password", check_slowly)
    with service.new_client() as browser:
        answer = browser.post("/api/v1/auth/login", json={"name": "Anna", "password": PASSWORD})
        assert (answer.status_code, session_cookie(service.address) in browser.cookies) == (401, False)
