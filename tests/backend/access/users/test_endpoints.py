from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import select

from backend.access.auth import login_limits
from backend.access.auth import repository as auth_rows
from backend.access.users import service as users
from backend.access.users.schemas import UserChanges
from backend.db import IdempotencyKey, User
from backend.db.engine import reading, writing
from backend.platform.errors import Conflict
from backend.platform.principals import Role
from tests.support.rows import CARTPOLE
from tests.support.service import RunningService, created_run
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.service

PASSWORD = "correct horse battery"
ANNA = {"name": "Anna", "role": "operator", "password": PASSWORD}


def test_new_user_logs_in_with_password_and_role(service: RunningService) -> None:
    created = service.client.post("/api/v1/users", json=ANNA)
    assert created.status_code == 201
    assert "password" not in created.text
    with service.new_client() as browser:
        login = browser.post("/api/v1/auth/login", json={"name": "Anna", "password": PASSWORD})
        assert (login.status_code, login.json()["role"]) == (200, "operator")
        run = created_run(browser.post("/api/v1/runs", json=CARTPOLE))
        assert run["created_by"] == created.json()["id"]
        assert browser.get("/api/v1/users").status_code == 403
    assert [u["name"] for u in service.client.get("/api/v1/users").json()["items"]] == ["Anna", "owner"]


def test_login_error_is_same_for_wrong_password_and_unknown_name(service: RunningService) -> None:
    service.client.post("/api/v1/users", json=ANNA)
    with service.new_client() as browser:
        answers = [
            browser.post("/api/v1/auth/login", json={"name": name, "password": password})
            for name, password in (("Anna", "wrong"), ("Berta", PASSWORD), ("owner", ""))
        ]
    assert {(a.status_code, a.json()["detail"]) for a in answers} == {(401, "wrong name or password")}


def test_failed_logins_are_rate_limited_per_account(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_limits, "FIRST_WAIT_S", 60 * login_limits.FIRST_WAIT_S)
    service.client.post("/api/v1/users", json=ANNA)
    with service.new_client() as browser:
        for _ in range(5):
            body = {"name": "Anna", "password": "wrong"}
            assert browser.post("/api/v1/auth/login", json=body).status_code == 401
        held = browser.post("/api/v1/auth/login", json=ANNA | {"password": PASSWORD})
        assert held.status_code == 422  # a login has no field `role`
        held = browser.post("/api/v1/auth/login", json={"name": "Anna", "password": PASSWORD})
        assert held.status_code == 429
        assert 1 <= int(held.headers["retry-after"]) <= 300
        other = browser.post("/api/v1/auth/login", json={"name": "owner", "password": "x"})
        assert other.status_code == 401


@pytest.mark.long
def test_password_change_ends_other_sessions(service: RunningService) -> None:
    service.client.post("/api/v1/users", json=ANNA)
    login = {"name": "Anna", "password": PASSWORD}
    with service.new_client() as here, service.new_client() as elsewhere:
        for browser in (here, elsewhere):
            assert browser.post("/api/v1/auth/login", json=login).status_code == 200
        wrong = here.post("/api/v1/auth/password", json={"current": "no", "new": "another long one"})
        assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (403, "current")
        changed = here.post("/api/v1/auth/password", json={"current": PASSWORD, "new": "another long one"})
        assert changed.status_code == 200
        assert here.get("/api/v1/auth/me").status_code == 200
        assert elsewhere.get("/api/v1/auth/me").status_code == 401
        assert elsewhere.post("/api/v1/auth/login", json=login).status_code == 401
        login["password"] = "another long one"
        assert elsewhere.post("/api/v1/auth/login", json=login).status_code == 200


def test_owner_sets_initial_password(service: RunningService) -> None:
    answer = service.client.post("/api/v1/auth/password", json={"new": PASSWORD})
    assert answer.status_code == 200
    with service.new_client() as browser:
        login = browser.post("/api/v1/auth/login", json={"name": "owner", "password": PASSWORD})
        assert login.json()["role"] == "admin"


def test_token_cannot_change_password(service: RunningService) -> None:
    created = service.client.post("/api/v1/tokens", json={"name": "watcher", "role": "viewer"}).json()
    with service.new_client() as script:
        script.headers["Authorization"] = f"Bearer {created['token']}"
        assert script.get("/api/v1/auth/me").json()["role"] == "viewer"
        answer = script.post("/api/v1/auth/password", json={"new": PASSWORD})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    with service.new_client() as browser:
        login = {"name": "owner", "password": PASSWORD}
        assert browser.post("/api/v1/auth/login", json=login).status_code == 401


def test_wrong_current_password_is_rate_limited(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_limits, "FIRST_WAIT_S", 300.0)
    service = sqlite_service
    service.client.post("/api/v1/users", json=ANNA)
    with service.new_client() as browser:
        browser.post("/api/v1/auth/login", json={"name": "Anna", "password": PASSWORD})
        for _ in range(5):
            wrong = browser.post("/api/v1/auth/password", json={"current": "no", "new": "another long one"})
            assert wrong.status_code == 403
        right = {"current": PASSWORD, "new": "another long one"}
        assert browser.post("/api/v1/auth/password", json=right).status_code == 429


def test_admin_changes_role_and_password_and_deletes_user(service: RunningService) -> None:
    anna = service.client.post("/api/v1/users", json=ANNA).json()
    url = f"/api/v1/users/{anna['id']}"
    with service.new_client() as browser:
        browser.post("/api/v1/auth/login", json={"name": "Anna", "password": PASSWORD})
        run = created_run(browser.post("/api/v1/runs", json=CARTPOLE))
        assert service.client.patch(url, json={"role": "viewer"}).json()["role"] == "viewer"
        assert browser.post("/api/v1/runs", json=CARTPOLE).status_code == 403
        service.client.patch(url, json={"password": "reset by the admin"})
        assert browser.get("/api/v1/auth/me").status_code == 401
        login = {"name": "Anna", "password": "reset by the admin"}
        assert browser.post("/api/v1/auth/login", json=login).status_code == 200
    with reading(service.engine) as session:
        assert "reset" not in (session.get_one(User, anna["id"]).password_hash or "")
    assert service.client.delete(url).status_code == 204
    assert service.client.delete(url).status_code == 404
    assert service.client.get(f"/api/v1/runs/{run['id']}").json()["created_by"] is None


def test_user_names_are_unique_and_last_admin_is_kept(service: RunningService) -> None:
    assert service.client.post("/api/v1/users", json=ANNA).status_code == 201
    twice = service.client.post("/api/v1/users", json=ANNA)
    assert (twice.status_code, twice.json()["errors"][0]["field"]) == (409, "name")
    me = service.client.get("/api/v1/auth/me").json()
    url = f"/api/v1/users/{me['id']}"
    assert service.client.patch(url, json={"role": "viewer"}).status_code == 409
    assert service.client.delete(url).status_code == 409
    service.client.post("/api/v1/users", json=ANNA | {"name": "Berta", "role": "admin"})
    assert service.client.patch(url, json={"role": "viewer"}).status_code == 200


def test_request_for_a_user_stores_no_idempotency_key(sqlite_service: RunningService) -> None:
    """Its fingerprint would be a fast hash of the password."""
    headers = {"Idempotency-Key": "k"}
    answers = [sqlite_service.client.post("/api/v1/users", json=ANNA, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 409]
    with reading(sqlite_service.engine) as session:
        assert session.scalars(select(IdempotencyKey)).all() == []


def test_concurrent_demotion_keeps_one_admin(service: RunningService) -> None:
    with writing(service.engine) as session:
        admins = [auth_rows.add_user(session, name, Role.ADMIN).id for name in ("Anna", "Berta")]
        owner = auth_rows.user_by_name(session, "owner")
        assert owner is not None
        owner.role = Role.VIEWER
    answers: list[str] = []
    both = Barrier(2, timeout=PATIENCE_S)

    def demote(user_id: str) -> None:
        both.wait()
        try:
            with writing(service.engine) as session:
                users.change(session, user_id, UserChanges(role=Role.VIEWER))
            answers.append("done")
        except Conflict:
            answers.append("refused")

    threads = [Thread(target=demote, args=(user_id,), daemon=True) for user_id in admins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["done", "refused"]


def test_invalid_user_request_names_its_field(sqlite_service: RunningService) -> None:
    odd: list[tuple[dict[str, Any], str]] = [
        ({"password": "short"}, "password"),
        ({"password": "x" * 201}, "password"),
        ({"password": "with\0null and more"}, "password"),
        ({"role": "king"}, "role"),
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"extra": 1}, "extra"),
    ]
    for wrong, field in odd:
        answer = sqlite_service.client.post("/api/v1/users", json=ANNA | wrong)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
        assert "short" not in answer.text
    assert len(sqlite_service.client.get("/api/v1/users").json()["items"]) == 1


def test_common_password_is_rejected_at_its_field(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    anna = client.post("/api/v1/users", json=ANNA).json()
    answers = {
        "password": [
            client.post("/api/v1/users", json=ANNA | {"name": "Berta", "password": "password12"}),
            client.patch(f"/api/v1/users/{anna['id']}", json={"password": "password12"}),
        ],
        "new": [client.post("/api/v1/auth/password", json={"new": "password12"})],
    }
    for field, rejected in answers.items():
        for answer in rejected:
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
            assert "password12" not in answer.text
    assert len(client.get("/api/v1/users").json()["items"]) == 2


def test_roles_are_ordered_by_covers_and_at_most() -> None:
    assert Role.ADMIN.covers(Role.VIEWER)
    assert not Role.VIEWER.covers(Role.OPERATOR)
    assert Role.ADMIN.at_most(Role.VIEWER) == Role.VIEWER.at_most(Role.ADMIN) == Role.VIEWER
