from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import pytest
from fastapi import APIRouter
from sqlalchemy import func, select

from backend.db import IdempotencyKey, Run
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.http import limits
from backend.http.access import Operator
from backend.http.dependencies import WriteSession
from backend.http.idempotency.route import IdempotentRoute
from backend.platform.principals import Role
from backend.specs.states import RunState
from tests.support.rows import CARTPOLE, make_run
from tests.support.service import RunningService, created_run
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.service


def _post(client: httpx.Client, body: object = CARTPOLE, key: str = "k1") -> httpx.Response:
    return client.post("/api/v1/runs", json=body, headers={"Idempotency-Key": key})


def _n_runs(service: RunningService) -> int:
    with reading(service.engine) as session:
        return session.scalars(select(func.count()).select_from(Run)).one()


def test_repeated_key_creates_one_run_and_replays_response(service: RunningService) -> None:
    first, again = _post(service.client), _post(service.client)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert _n_runs(service) == 1
    assert created_run(_post(service.client, key="k2"))["id"] != created_run(first)["id"]


def test_concurrent_requests_with_one_key_create_one_run(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WRITE_TIMEOUT_S", PATIENCE_S)
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: _post(service.client), range(48)))
    assert {a.status_code for a in answers} == {201}
    assert len({created_run(a)["id"] for a in answers}) == 1
    assert _n_runs(service) == 1


def test_key_with_another_body_is_rejected(service: RunningService) -> None:
    _post(service.client)
    other = _post(service.client, CARTPOLE | {"seed": 9})
    assert (other.status_code, other.json()["errors"][0]["field"]) == (409, "Idempotency-Key")
    assert _n_runs(service) == 1


def test_keys_are_scoped_to_the_session_or_token(service: RunningService) -> None:
    with service.client_as(Role.OPERATOR) as other, service.new_client() as script:
        request = {"name": "a script", "role": "operator"}
        token = service.client.post("/api/v1/tokens", json=request).json()["token"]
        script.headers["Authorization"] = f"Bearer {token}"
        ids = {created_run(_post(client))["id"] for client in (other, service.client, script)}
        assert len(ids) == 3
        with service.new_client() as nobody:
            assert _post(nobody).status_code == 401


def test_parameters_of_an_endpoint_may_stand_in_any_order(sqlite_service: RunningService) -> None:
    router, executed = APIRouter(route_class=IdempotentRoute), []

    @router.post("/api/v1/session-first", status_code=201)
    def create(session: WriteSession, principal: Operator) -> dict[str, str]:
        executed.append(principal.id)
        return {"by": principal.name}

    sqlite_service.app.include_router(router)
    headers = {"Idempotency-Key": "k1"}
    with sqlite_service.new_client() as nobody, sqlite_service.client_as(Role.VIEWER) as viewer:
        assert nobody.post("/api/v1/session-first", headers=headers).status_code == 401
        assert viewer.post("/api/v1/session-first", headers=headers).status_code == 403
    first, again = (sqlite_service.client.post("/api/v1/session-first", headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json() == {"by": "owner"}
    assert again.headers["idempotent-replayed"] == "true"
    assert len(executed) == 1


def test_key_of_rejected_request_can_be_reused(service: RunningService) -> None:
    assert _post(service.client, CARTPOLE | {"algorithm": "none"}).status_code == 422
    assert _post(service.client).status_code == 201


def test_repeated_key_resumes_run_once(service: RunningService) -> None:
    run = make_run(service.engine, RunState.FINISHED)
    headers = {"Idempotency-Key": "resume"}
    url = f"/api/v1/runs/{run.id}/resume"
    assert service.client.post(url, headers=headers).json()["state"] == "queued"
    assert service.client.post(url).status_code == 409
    assert service.client.post(url, headers=headers).json()["state"] == "queued"


def test_invalid_key_is_rejected(sqlite_service: RunningService) -> None:
    for key in ("", "a b", "x" * 256):
        answer = _post(sqlite_service.client, key=key)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Idempotency-Key")
    answer = sqlite_service.client.post(
        "/api/v1/runs", json=CARTPOLE, headers=[(b"Idempotency-Key", "é".encode("latin-1"))]
    )
    assert answer.status_code == 422
    assert _n_runs(sqlite_service) == 0


def test_key_expires_after_a_day(service: RunningService) -> None:
    first = created_run(_post(service.client))
    with writing(service.engine) as session:
        row = session.scalars(select(IdempotencyKey)).one()
        row.created_at = database_now(session) - timedelta(days=1, seconds=1)
    assert created_run(_post(service.client))["id"] != first["id"]
