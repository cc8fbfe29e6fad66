from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from backend.access.auth import service as auth
from backend.access.auth.secrets import hash_secret
from backend.access.tokens.service import MAX_GENERATIONS
from backend.db import Token, User
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.platform.principals import Role
from tests.support.rows import CARTPOLE
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.service


def _me(service: RunningService, token: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{service.url}/api/v1/auth/me", headers=headers, timeout=PATIENCE_S)


def test_operator_token_starts_run_but_cannot_list_users(service: RunningService) -> None:
    created = service.client.post("/api/v1/tokens", json={"name": "script", "role": "operator"}).json()
    headers = {"Authorization": f"Bearer {created['token']}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=PATIENCE_S) as script:
        assert script.post("/api/v1/runs", json=CARTPOLE).status_code == 201
        assert script.get("/api/v1/users").status_code == 403
    listed = service.client.get("/api/v1/tokens")
    assert [item["name"] for item in listed.json()["items"]] == ["script"]
    assert created["token"] not in listed.text
    with reading(service.engine) as session:
        assert session.scalars(select(Token.token_hash)).one() == hash_secret(created["token"])


def test_revoked_and_expired_tokens_are_rejected(service: RunningService) -> None:
    body = {"name": "brief", "expires_in_days": 1}
    first = service.client.post("/api/v1/tokens", json=body).json()
    second = service.client.post("/api/v1/tokens", json=body).json()
    assert _me(service, first["token"]).json()["role"] == "admin"
    assert service.client.delete(f"/api/v1/tokens/{first['id']}").status_code == 204
    assert _me(service, first["token"]).status_code == 401
    with writing(service.engine) as session:
        token = session.get(Token, second["id"])
        assert token is not None
        token.expires_at = database_now(session) - timedelta(seconds=1)
    assert _me(service, second["token"]).status_code == 401


def test_token_role_is_limited_by_its_users_role(service: RunningService) -> None:
    with service.client_as(Role.OPERATOR) as script:
        assert script.post("/api/v1/tokens", json={"name": "x", "role": "admin"}).status_code == 403
        token = script.post("/api/v1/tokens", json={"name": "x"}).json()["token"]
        assert _me(service, token).json()["role"] == "operator"
        user_id = script.get("/api/v1/auth/me").json()["id"]
    with writing(service.engine) as session:
        user = session.get(User, user_id)
        assert user is not None
        user.role = Role.VIEWER
    assert _me(service, token).json()["role"] == "viewer"


def _create(service: RunningService, secret: str, name: str, **body: Any) -> dict[str, Any]:
    answer = httpx.post(
        f"{service.url}/api/v1/tokens",
        json={"name": name} | body,
        headers={"Authorization": f"Bearer {secret}"},
        timeout=PATIENCE_S,
    )
    assert answer.status_code == 201
    created: dict[str, Any] = answer.json()
    return created


def test_token_created_with_a_token_expires_and_is_revoked_with_it(service: RunningService) -> None:
    first = service.client.post("/api/v1/tokens", json={"name": "first", "expires_in_days": 2}).json()
    second = _create(service, first["token"], "second")
    longer = _create(service, first["token"], "longer", expires_in_days=30)
    shorter = _create(service, first["token"], "shorter", expires_in_days=1)
    third = _create(service, second["token"], "third")
    assert second["expires_at"] == longer["expires_at"] == third["expires_at"] == first["expires_at"]
    assert shorter["expires_at"] < first["expires_at"]
    assert (first["created_with"], first["parent_name"]) == ("session", None)
    assert (third["created_with"], third["parent_name"], third["user_name"]) == ("token", "second", "owner")
    assert service.client.delete(f"/api/v1/tokens/{first['id']}").status_code == 204
    assert [_me(service, created["token"]).status_code for created in (second, third, shorter)] == [401] * 3
    assert service.client.get("/api/v1/tokens").json()["items"] == []


def test_chain_of_tokens_that_create_each_other_is_limited(sqlite_service: RunningService) -> None:
    secret = sqlite_service.client.post("/api/v1/tokens", json={"name": "0"}).json()["token"]
    for generation in range(MAX_GENERATIONS):
        secret = _create(sqlite_service, secret, str(generation))["token"]
    answer = httpx.post(
        f"{sqlite_service.url}/api/v1/tokens",
        json={"name": "one more"},
        headers={"Authorization": f"Bearer {secret}"},
        timeout=PATIENCE_S,
    )
    assert (answer.status_code, "an earlier token" in answer.json()["detail"]) == (409, True)


def test_lower_role_of_a_user_lowers_their_tokens_permanently(service: RunningService) -> None:
    with service.client_as(Role.ADMIN) as anna:
        secret = anna.post("/api/v1/tokens", json={"name": "x"}).json()["token"]
        url = f"/api/v1/users/{anna.get('/api/v1/auth/me').json()['id']}"
        for role in ("operator", "viewer", "admin"):
            assert service.client.patch(url, json={"role": role}).status_code == 200
        assert _me(service, secret).json()["role"] == "viewer"
        assert service.client.delete(url).status_code == 204
    assert _me(service, secret).status_code == 401


def test_tokens_show_when_and_from_where_they_were_used(service: RunningService) -> None:
    created = service.client.post("/api/v1/tokens", json={"name": "script"}).json()
    assert (created["last_used_at"], created["last_used_address"]) == (None, None)
    _me(service, created["token"])
    service.auth_state.uses.store(service.engine)
    [listed] = service.client.get("/api/v1/tokens").json()["items"]
    # As times: texts of different precision have another order.
    used, begun = (datetime.fromisoformat(at) for at in (listed["last_used_at"], created["created_at"]))
    assert used >= begun
    assert listed["last_used_address"] == "127.0.0.1"


def test_token_cannot_revoke_token_of_higher_role(service: RunningService) -> None:
    greater = service.client.post("/api/v1/tokens", json={"name": "greater"}).json()
    lesser = service.client.post("/api/v1/tokens", json={"name": "lesser", "role": "viewer"}).json()
    headers = {"Authorization": f"Bearer {lesser['token']}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=PATIENCE_S) as script:
        assert script.delete(f"/api/v1/tokens/{greater['id']}").status_code == 403
        assert _me(service, greater["token"]).status_code == 200
        assert script.delete(f"/api/v1/tokens/{lesser['id']}").status_code == 204


def test_only_admin_finds_tokens_of_other_users(service: RunningService) -> None:
    with service.client_as(Role.OPERATOR) as anna, service.client_as(Role.OPERATOR) as berta:
        url = f"/api/v1/tokens/{anna.post('/api/v1/tokens', json={'name': 'x'}).json()['id']}"
        assert berta.delete(url).status_code == 404
        assert berta.get("/api/v1/tokens", params={"everyone": True}).status_code == 403
        everyone = service.client.get("/api/v1/tokens", params={"everyone": True}).json()["items"]
        assert len(everyone) == 3
        assert service.client.delete(url).status_code == 204


def test_invalid_authorization_header_is_rejected_despite_valid_cookie(service: RunningService) -> None:
    for header in ("Basic eDp5", "Bearer", "Bearer x", "x", "Bearer " + "x" * 5000):
        answer = service.client.get("/api/v1/auth/me", headers={"Authorization": header})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


def test_create_token_for_known_and_unknown_user(service: RunningService) -> None:
    with writing(service.engine) as session:
        secret = auth.create_token_for(session, "owner", "cli", Role.VIEWER, None)
        assert auth.create_token_for(session, "nobody", "cli", Role.VIEWER, None) is None
    assert secret is not None
    assert _me(service, secret).json() == {**_me(service, secret).json(), "name": "owner", "role": "viewer"}
