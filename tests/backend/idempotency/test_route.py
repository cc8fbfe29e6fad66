from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import func, select

from backend.auth.roles import Role
from backend.db import IdempotencyKey, Run
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.specs.states import RunState
from tests.support.runs import CARTPOLE, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def _post(client: httpx.Client, body: object = CARTPOLE, key: str = "k1") -> httpx.Response:
    return client.post("/api/v1/runs", json=body, headers={"Idempotency-Key": key})


def _n_runs(service: RunningService) -> int:
    with reading(service.engine) as session:
        return session.scalars(select(func.count()).select_from(Run)).one()


def test_the_same_key_makes_one_run_and_one_answer(service: RunningService) -> None:
    first, again = _post(service.client), _post(service.client)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert _n_runs(service) == 1
    assert _post(service.client, key="k2").json()["id"] != first.json()["id"]


def test_many_at_once_make_one_run(service: RunningService) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: _post(service.client), range(48)))
    assert {a.status_code for a in answers} == {201}
    assert len({a.json()["id"] for a in answers}) == 1
    assert _n_runs(service) == 1


def test_a_key_for_another_request_is_a_mistake(service: RunningService) -> None:
    _post(service.client)
    other = _post(service.client, CARTPOLE | {"seed": 9})
    assert (other.status_code, other.json()["errors"][0]["field"]) == (409, "Idempotency-Key")
    assert _n_runs(service) == 1


def test_keys_are_each_users_own(service: RunningService) -> None:
    with service.client_as(Role.OPERATOR) as other:
        assert _post(other).json()["id"] != _post(service.client).json()["id"]
        with service.new_client() as nobody:
            assert _post(nobody).status_code == 401


def test_a_refused_request_may_be_mended(service: RunningService) -> None:
    assert _post(service.client, CARTPOLE | {"algorithm": "ppo"}).status_code == 422
    assert _post(service.client).status_code == 201


def test_other_posts_are_done_once_too(service: RunningService) -> None:
    run = make_run(service.engine, RunState.FINISHED)
    headers = {"Idempotency-Key": "resume"}
    url = f"/api/v1/runs/{run.id}/resume"
    assert service.client.post(url, headers=headers).json()["state"] == "queued"
    assert service.client.post(url).status_code == 409
    assert service.client.post(url, headers=headers).json()["state"] == "queued"


def test_odd_keys_are_refused(sqlite_service: RunningService) -> None:
    for key in ("", "a b", "x" * 256):
        answer = _post(sqlite_service.client, key=key)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Idempotency-Key")
    answer = sqlite_service.client.post(
        "/api/v1/runs", json=CARTPOLE, headers={"Idempotency-Key": "é".encode("latin-1")}
    )
    assert answer.status_code == 422
    assert _n_runs(sqlite_service) == 0


def test_keys_are_forgotten_after_a_day(service: RunningService) -> None:
    first = _post(service.client).json()
    with writing(service.engine) as session:
        row = session.scalars(select(IdempotencyKey)).one()
        row.created_at = database_now(session) - timedelta(days=1, seconds=1)
    _post(service.client, key="k2")
    assert _post(service.client).json()["id"] != first["id"]
