from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Thread

import httpx
import pytest
from sqlalchemy import Engine, func, select, text

from backend.access.auth import repository, service
from backend.access.auth.service import Browser
from backend.db import LoginSession
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.platform.principals import Role
from tests.support.pages import session_cookie
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S, until

SESSIONS = "/api/v1/auth/sessions"
WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
"""Transactions of a database on PostgreSQL that wait for a lock."""


@contextmanager
def _log_in(service: RunningService, user_agent: str) -> Iterator[httpx.Client]:
    browser = service.new_client()
    browser.headers["User-Agent"] = user_agent
    browser.get("/login", params={"token": service.login_link()})
    yield browser
    browser.close()


def _status(browser: httpx.Client) -> int:
    return browser.get("/api/v1/auth/me").status_code


@pytest.mark.service
def test_sessions_are_listed_and_ended_one_by_one(service: RunningService) -> None:
    with _log_in(service, "Firefox") as here, _log_in(service, "Chrome") as elsewhere:
        other, current, _ = here.get(SESSIONS).json()["items"]
        assert (other["user_agent"], other["current"]) == ("Chrome", False)
        assert (current["user_agent"], current["current"]) == ("Firefox", True)
        assert (current["method"], current["address"]) == ("link", "127.0.0.1")
        assert here.delete(f"{SESSIONS}/{other['id']}").status_code == 204
        assert here.delete(f"{SESSIONS}/{other['id']}").status_code == 404
        assert (_status(here), _status(elsewhere)) == (200, 401)
        assert here.cookies[session_cookie(here.base_url)] not in here.get(SESSIONS).text


@pytest.mark.service
def test_signing_out_everywhere_ends_every_session(service: RunningService) -> None:
    with _log_in(service, "Firefox") as here, _log_in(service, "Chrome") as elsewhere:
        secret = here.cookies[session_cookie(here.base_url)]
        assert here.delete(SESSIONS).status_code == 204
        assert session_cookie(here.base_url) not in here.cookies
        here.cookies.set(session_cookie(here.base_url), secret)
        assert [_status(client) for client in (here, elsewhere, service.client)] == [401] * 3


@pytest.mark.service
def test_session_of_another_user_is_not_found(sqlite_service: RunningService) -> None:
    body = {"name": "Anna", "role": "viewer", "password": "five words are long enough"}
    sqlite_service.client.post("/api/v1/users", json=body)
    owners = sqlite_service.client.get(SESSIONS).json()["items"][0]["id"]
    with sqlite_service.new_client() as anna:
        anna.post("/api/v1/auth/login", json={"name": "Anna", "password": body["password"]})
        [own] = anna.get(SESSIONS).json()["items"]
        assert own["method"] == "password"
        assert anna.delete(f"{SESSIONS}/{owners}").status_code == 404
    assert _status(sqlite_service.client) == 200


@pytest.mark.service
def test_idle_session_is_rejected_and_a_used_one_is_kept(service: RunningService) -> None:
    idle = service.settings.session_idle

    def age(by: timedelta) -> None:
        with writing(service.engine) as session:
            session.scalars(select(LoginSession)).one().last_used_at = database_now(session) - by

    age(idle - timedelta(minutes=1))
    assert _status(service.client) == 200
    service.auth_state.uses.store(service.engine)
    with reading(service.engine) as session:
        used_at = session.scalars(select(LoginSession.last_used_at)).one()
        assert database_now(session) - used_at < timedelta(minutes=1)
    age(idle + timedelta(seconds=1))
    assert _status(service.client) == 401


def test_least_recently_used_sessions_beyond_the_maximum_end(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_SESSIONS", 2)
    with writing(engine) as session:
        user = repository.add_user(session, "Anna", Role.VIEWER)
        secrets = [service.open_session(session, user, "link", Browser("", ""))[1] for _ in range(4)]
        principals = [service.find_principal(session, secret, timedelta(days=1)) for secret in secrets]
    assert [actor is not None for actor in principals] == [False, False, True, True]


def test_concurrent_logins_leave_no_session_beyond_the_maximum(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_SESSIONS", 2)
    with writing(engine) as session:
        user = repository.add_user(session, "Anna", Role.VIEWER)
        for _ in range(2):
            service.open_session(session, user, "link", Browser("", ""))

    def log_in() -> None:
        with writing(engine) as session:
            service.open_session(session, user, "link", Browser("", ""))

    def waits() -> bool:
        with engine.connect() as connection:
            return bool(connection.scalar(text(WAITING)))

    other = Thread(target=log_in, daemon=True)
    with writing(engine) as session:
        service.open_session(session, user, "link", Browser("", ""))
        other.start()
        if engine.dialect.name == "postgresql":  # SQLite has one writer at a time
            until(waits)
    other.join(PATIENCE_S)
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(LoginSession)) == 2
