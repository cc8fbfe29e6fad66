import pytest

from backend.auth.roles import Role
from tests.support.runs import CARTPOLE
from tests.support.service import RunningService

pytestmark = pytest.mark.service

PASSWORD = "correct horse battery"


def test_who_changed_what(service: RunningService) -> None:
    with service.client_as(Role.OPERATOR) as script:
        made = script.post("/api/v1/runs", json=CARTPOLE | {"seed": 4}, headers={"X-Request-ID": "r-1"})
        run_id, me = made.json()["id"], script.get("/api/v1/auth/me").json()
        script.post(f"/api/v1/runs/{run_id}/stop")
        script.post(f"/api/v1/runs/{run_id}/stop")  # refused: nothing changed
        script.delete(f"/api/v1/runs/{run_id}")

    def actions(**params: str) -> list[str]:
        items = service.client.get("/api/v1/audit", params=params).json()["items"]
        return [item["action"] for item in items]

    assert actions(actor_id=me["id"]) == ["delete_run", "stop_run", "create_runs"]
    assert actions(path=f"/api/v1/runs/{run_id}/s") == ["stop_run"]
    created = service.client.get("/api/v1/audit", params={"action": "create_runs"}).json()["items"][0]
    assert created["actor_name"] == me["name"]
    assert created["body"] == CARTPOLE | {"seed": 4}
    assert created["request_id"] == "r-1"


def test_secrets_are_left_out_and_the_deleted_are_remembered(service: RunningService) -> None:
    body = {"name": "Anna", "role": "operator", "password": PASSWORD}
    anna = service.client.post("/api/v1/users", json=body).json()
    with service.new_client() as browser:
        login = {"name": "Anna", "password": PASSWORD}
        assert browser.post("/api/v1/auth/login", json=login).status_code == 200
        change = {"current": PASSWORD, "new": PASSWORD + "!"}
        assert browser.post("/api/v1/auth/password", json=change).status_code == 200
    service.client.delete(f"/api/v1/users/{anna['id']}")
    answer = service.client.get("/api/v1/audit")
    assert PASSWORD not in answer.text
    trail = [(item["action"], item["actor_name"]) for item in answer.json()["items"]]
    assert trail == [
        ("delete_user", "owner"),
        ("change_password", "Anna"),
        ("log_in", "Anna"),
        ("create_user", "owner"),
    ]


def test_reading_leaves_no_trace(service: RunningService) -> None:
    service.client.get("/api/v1/runs")
    service.client.get("/api/v1/hosts")
    assert service.client.get("/api/v1/audit").json()["items"] == []
