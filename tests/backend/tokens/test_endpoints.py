from datetime import timedelta

import httpx
import pytest
from sqlalchemy import select

from backend.auth import service as auth
from backend.auth.roles import Role
from backend.db import Token, User
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from tests.support.runs import CARTPOLE
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def _me(service: RunningService, token: str) -> httpx.Response:
    return httpx.get(f"{service.url}/api/v1/auth/me", headers={"Authorization": f"Bearer {token}"})


def test_a_script_starts_a_run_with_a_token(service: RunningService) -> None:
    made = service.client.post("/api/v1/tokens", json={"name": "script", "role": "operator"}).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    with httpx.Client(base_url=service.url, headers=headers) as script:
        assert script.post("/api/v1/runs", json=CARTPOLE).status_code == 201
        assert script.get("/api/v1/users").status_code == 403
    listed = service.client.get("/api/v1/tokens")
    assert [item["name"] for item in listed.json()["items"]] == ["script"]
    assert made["token"] not in listed.text
    with reading(service.engine) as session:
        assert session.scalars(select(Token.token_hash)).one() == auth.hash_secret(made["token"])


def test_revoked_and_expired_tokens_are_no_good(service: RunningService) -> None:
    asked = {"name": "brief", "expires_in_days": 1}
    first = service.client.post("/api/v1/tokens", json=asked).json()
    second = service.client.post("/api/v1/tokens", json=asked).json()
    assert _me(service, first["token"]).json()["role"] == "admin"
    assert service.client.delete(f"/api/v1/tokens/{first['id']}").status_code == 204
    assert _me(service, first["token"]).status_code == 401
    with writing(service.engine) as session:
        token = session.get(Token, second["id"])
        assert token is not None
        token.expires_at = database_now(session) - timedelta(seconds=1)
    assert _me(service, second["token"]).status_code == 401


def test_a_token_may_no_more_than_its_user(service: RunningService) -> None:
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


def test_a_lesser_token_cannot_revoke_a_greater_one(service: RunningService) -> None:
    greater = service.client.post("/api/v1/tokens", json={"name": "greater"}).json()
    lesser = service.client.post("/api/v1/tokens", json={"name": "lesser", "role": "viewer"}).json()
    headers = {"Authorization": f"Bearer {lesser['token']}"}
    with httpx.Client(base_url=service.url, headers=headers) as script:
        assert script.delete(f"/api/v1/tokens/{greater['id']}").status_code == 403
        assert _me(service, greater["token"]).status_code == 200
        assert script.delete(f"/api/v1/tokens/{lesser['id']}").status_code == 204


def test_others_tokens_are_not_found_but_by_an_admin(service: RunningService) -> None:
    with service.client_as(Role.OPERATOR) as anna, service.client_as(Role.OPERATOR) as berta:
        url = f"/api/v1/tokens/{anna.post('/api/v1/tokens', json={'name': 'x'}).json()['id']}"
        assert berta.delete(url).status_code == 404
        assert berta.get("/api/v1/tokens", params={"everyone": True}).status_code == 403
        everyone = service.client.get("/api/v1/tokens", params={"everyone": True}).json()["items"]
        assert len(everyone) == 3
        assert service.client.delete(url).status_code == 204


def test_other_authorizations_are_refused_even_beside_a_cookie(service: RunningService) -> None:
    for header in ("Basic eDp5", "Bearer", "Bearer x", "x", "Bearer " + "x" * 5000):
        answer = service.client.get("/api/v1/auth/me", headers={"Authorization": header})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


def test_the_command_line_can_make_one(service: RunningService) -> None:
    with writing(service.engine) as session:
        secret = auth.create_token_for(session, "owner", "cli", Role.VIEWER, None)
        assert auth.create_token_for(session, "nobody", "cli", Role.VIEWER, None) is None
    assert secret is not None
    assert _me(service, secret).json() == {**_me(service, secret).json(), "name": "owner", "role": "viewer"}
