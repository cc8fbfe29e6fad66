import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import httpx
import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.access.auth import known_browsers, login_limits, repository
from backend.access.auth.login_limits import (
    FREE_ADDRESS_FAILURES,
    FREE_FAILURES,
    FREE_NAME_FAILURES,
    MAX_PENDING,
    LoginPool,
    check_within_limits,
)
from backend.access.auth.passwords import MAX_HASHES
from backend.db import User
from backend.db.engine import writing
from backend.platform.errors import TooMany, Unavailable
from backend.platform.principals import Role
from backend.platform.settings import Settings
from tests.support import asynchronous
from tests.support.pages import NONCE
from tests.support.service import RunningServer, RunningService
from tests.support.waiting import PATIENCE_S

LOGIN = "/api/v1/auth/login"


def _wrong(session: Session) -> User | None:
    return None


def _right(session: Session) -> User | None:
    return User(id="1", name="owner", role="admin")


def test_wrong_guesses_do_not_lock_user_out_of_another_address(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_limits, "FIRST_WAIT_S", 60 * login_limits.FIRST_WAIT_S)
    for _ in range(FREE_FAILURES):
        assert check_within_limits(engine, "192.0.2.1", "owner", _wrong) is None
    with pytest.raises(TooMany) as error:
        check_within_limits(engine, "192.0.2.1", "owner", _right)
    assert 1 <= error.value.retry_after_s <= 300
    assert check_within_limits(engine, "192.0.2.2", "owner", _right) is not None
    assert check_within_limits(engine, "192.0.2.1", "anna", _right) is not None


def test_wrong_guesses_of_many_addresses_count_for_the_name_but_not_for_known_browsers(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_limits, "FIRST_WAIT_S", 300.0)
    with writing(engine) as session:
        user = repository.add_user(session, "ada", Role.VIEWER)
        repository.set_password_hash(session, user, "a hash")
        browser = known_browsers.cookie_of(user)
    for n in range(FREE_NAME_FAILURES):
        assert check_within_limits(engine, f"192.0.2.{n}", "ada", _wrong) is None
    forged = browser[:-1] + ("0" if browser[-1] != "0" else "1")
    for cookie in (None, forged):
        with pytest.raises(TooMany):
            check_within_limits(engine, "192.0.2.99", "ada", _right, cookie)
    assert check_within_limits(engine, "192.0.2.99", "ada", _right, browser) is not None
    for _ in range(FREE_FAILURES):
        check_within_limits(engine, "192.0.2.99", "ada", _wrong, browser)
    with pytest.raises(TooMany):
        check_within_limits(engine, "192.0.2.99", "ada", _right, browser)


def test_successful_login_resets_the_count_of_failures(engine: Engine) -> None:
    for _ in range(3):
        for _ in range(FREE_FAILURES - 1):
            check_within_limits(engine, "192.0.2.1", "owner", _wrong)
        assert check_within_limits(engine, "192.0.2.1", "owner", _right) is not None


def test_failures_of_many_names_count_for_their_address(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_limits, "FIRST_WAIT_S", 300.0)
    for at in range(FREE_ADDRESS_FAILURES):
        check_within_limits(engine, "192.0.2.1", f"name {at}", _wrong)
    with pytest.raises(TooMany):
        check_within_limits(engine, "192.0.2.1", "another", _wrong)


def test_pool_bounds_threads_and_waiting_logins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_limits, "TURN_TIMEOUT_S", PATIENCE_S)
    entered, leave = Barrier(MAX_HASHES + 1), Event()

    def occupy() -> None:
        entered.wait(PATIENCE_S)
        leave.wait(PATIENCE_S)

    async def fill() -> None:
        pool = LoginPool()
        held = [asyncio.create_task(pool.run(f"held {at}", occupy)) for at in range(MAX_HASHES)]
        await asyncio.to_thread(entered.wait, PATIENCE_S)
        waiting = [
            asyncio.create_task(pool.run(f"waiting {at}", lambda: None))
            for at in range(MAX_PENDING - MAX_HASHES)
        ]
        await asyncio.sleep(0)
        with pytest.raises(TooMany):
            await pool.run("another", lambda: None)
        leave.set()
        await asyncio.gather(*held, *waiting)
        assert await pool.run("another", lambda: 1) == 1
        pool.close()

    asynchronous.run(fill())


def test_login_that_waits_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_limits, "TURN_TIMEOUT_S", 0.05)
    leave = Event()

    async def fill() -> None:
        pool = LoginPool()
        held = [
            asyncio.create_task(pool.run(f"held {at}", lambda: leave.wait(PATIENCE_S)))
            for at in range(MAX_HASHES)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await pool.run("late", lambda: None)
        leave.set()
        await asyncio.gather(*held)
        assert await pool.run("late", lambda: 1) == 1
        pool.close()

    asynchronous.run(fill())


@pytest.mark.service
def test_concurrent_guesses_get_no_more_tries_than_consecutive_ones(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_limits, "FIRST_WAIT_S", 300.0)
    monkeypatch.setattr(login_limits, "TURN_TIMEOUT_S", PATIENCE_S)

    def guess(at: int) -> int:
        with service.new_client() as browser:
            body = {"name": "owner", "password": f"guess {at}"}
            return browser.post(LOGIN, json=body, headers={"X-Forwarded-For": f"10.0.0.{at}"}).status_code

    with ThreadPoolExecutor(30) as threads:
        statuses = list(threads.map(guess, range(30)))
    assert statuses.count(401) == FREE_FAILURES
    assert set(statuses) == {401, 429}


@pytest.mark.service
def test_trusted_proxy_names_client_and_tls(
    sqlite_service: RunningService, tmp_path: Path, redis_url: str
) -> None:
    database = sqlite_service.settings.database
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
    for proxies, scheme in (([], "http"), (["127.0.0.0/8"], "https"), (["192.0.2.0/24"], "http")):
        settings = Settings(
            home=tmp_path, database_url=database, redis_url=redis_url, port=0, trusted_proxies=proxies
        )
        with RunningServer(settings) as url:
            origin = {"Origin": url, **headers}
            with httpx.Client(base_url=url, headers=origin, timeout=PATIENCE_S) as browser:
                link = sqlite_service.login_link()
                answer = browser.get("/login", params={"token": link, "nonce": NONCE})
            assert ("Secure" in answer.headers["set-cookie"]) == (scheme == "https")
            assert ("strict-transport-security" in answer.headers) == (scheme == "https")


def test_trusted_proxy_must_be_an_address_or_a_network() -> None:
    for network in ("*", "proxy.example", "10.0.0.1/8"):
        with pytest.raises(ValueError, match="not an address or a network"):
            Settings(trusted_proxies=[network])
