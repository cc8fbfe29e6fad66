import csv
import io
import json
import logging
from typing import Any

import pytest

from backend.access.audit import export
from backend.access.audit import service as audit
from backend.access.auth import login_limits
from backend.access.auth.login_limits import FREE_ADDRESS_FAILURES
from backend.platform.principals import Role
from tests.support.rows import CARTPOLE, make_run
from tests.support.service import RunningService, created_run

pytestmark = pytest.mark.service

PASSWORD = "correct horse battery"


@pytest.mark.service
def test_number_that_is_not_finite_is_no_failure_of_a_request_without_fields(service: RunningService) -> None:
    run = make_run(service.engine)
    headers = {"Content-Type": "application/json"}
    answer = service.client.post(f"/api/v1/runs/{run.id}/stop", content='{"x": NaN}', headers=headers)
    assert answer.status_code == 200, answer.text
    [entry] = service.client.get("/api/v1/audit", params={"action": "stop_run"}).json()["items"]
    assert entry["body"] == {"x": "(a number that is not finite)"}


def test_audit_lists_changes_with_actor_body_and_request_id(service: RunningService) -> None:
    with service.client_as(Role.OPERATOR) as script:
        answer = script.post("/api/v1/runs", json=CARTPOLE | {"seed": 4}, headers={"X-Request-ID": "r-1"})
        run_id, me = created_run(answer)["id"], script.get("/api/v1/auth/me").json()
        script.post(f"/api/v1/runs/{run_id}/stop")
        script.post(f"/api/v1/runs/{run_id}/stop")  # rejected: nothing changed
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


def test_audit_omits_passwords_and_keeps_names_of_deleted_users(service: RunningService) -> None:
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


def test_audit_does_not_record_reads(service: RunningService) -> None:
    service.client.get("/api/v1/runs")
    service.client.get("/api/v1/hosts")
    assert service.client.get("/api/v1/audit").json()["items"] == []


def _trail(service: RunningService, **params: Any) -> list[dict[str, Any]]:
    answer = service.client.get("/api/v1/audit", params=params)
    assert answer.status_code == 200
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_failed_logins_are_recorded_and_logged_with_name_and_address(
    service: RunningService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with service.new_client() as browser:
        wrong = {"name": "Mallory", "password": "a wrong password"}
        assert browser.post("/api/v1/auth/login", json=wrong).status_code == 401
    change = {"current": "", "new": PASSWORD}
    assert service.client.post("/api/v1/auth/password", json=change).status_code == 200
    wrong = {"current": "a wrong password", "new": PASSWORD + "!"}
    assert service.client.post("/api/v1/auth/password", json=wrong).status_code == 403
    changed = _trail(service, action="change_password_failed")
    [entry] = _trail(service, action="log_in_failed")
    assert (entry["actor_id"], entry["actor_name"], entry["address"]) == (None, "Mallory", "127.0.0.1")
    assert [(entry["actor_name"], entry["actor_id"] is None) for entry in changed] == [("owner", False)]
    lines = [record for record in caplog.records if record.getMessage() == "login.failed"]
    assert [(vars(line)["user"], vars(line)["address"]) for line in lines] == [
        ("Mallory", "127.0.0.1"),
        ("owner", "127.0.0.1"),
    ]
    assert "a wrong password" not in caplog.text + service.client.get("/api/v1/audit").text


def test_uses_of_login_links_are_recorded(service: RunningService) -> None:
    token = service.login_link()
    with service.new_client() as browser:
        for _ in range(2):
            browser.get("/login", params={"token": token})
        browser.get("/login", params={"token": "unknown"})
    trail = [(entry["action"], entry["actor_name"], entry["address"]) for entry in _trail(service)]
    assert trail == [
        ("use_login_link_failed", "owner", "127.0.0.1"),
        ("use_login_link", "owner", "127.0.0.1"),
    ]
    assert token not in service.client.get("/api/v1/audit").text


def test_repeated_uses_of_a_used_link_do_not_fill_the_trail(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_limits, "FIRST_WAIT_S", 300.0)
    token = sqlite_service.login_link()
    with sqlite_service.new_client() as browser:
        for _ in range(FREE_ADDRESS_FAILURES + 10):
            browser.get("/login", params={"token": token})
        fresh = sqlite_service.login_link()
        to = browser.get("/login", params={"token": fresh}).headers["location"]
        assert to.startswith("/#page_secret=")
    failed = _trail(sqlite_service, action="use_login_link_failed", limit=1000)
    assert len(failed) == FREE_ADDRESS_FAILURES


def test_audit_filters_by_user_address_and_time(service: RunningService) -> None:
    for name in ("Anna", "Berta"):
        body = {"name": name, "role": "operator", "password": PASSWORD}
        service.client.post("/api/v1/users", json=body)
        with service.new_client() as browser:
            browser.post("/api/v1/auth/login", json={"name": name, "password": PASSWORD})
    assert [entry["actor_name"] for entry in _trail(service, user="ANN")] == ["Anna"]
    assert len(_trail(service, address="127.")) == len(_trail(service))
    assert _trail(service, address="192.") == []
    latest, earlier = _trail(service)[:2]
    assert _trail(service, since=latest["time"]) == [latest]
    assert _trail(service, until=latest["time"])[0] == earlier
    for wrong in ("2026-01-01T00:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-12:00", "x"):
        assert service.client.get("/api/v1/audit", params={"since": wrong}).status_code == 422
    assert service.client.get("/api/v1/audit/actions").json() == ["create_user", "log_in"]


def test_audit_is_exported_as_csv_and_json(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "BATCH", 2)
    with service.new_client() as browser:
        for name in ("=1+1", "Mallory", "Trudy"):
            browser.post("/api/v1/auth/login", json={"name": name, "password": "x"})

    def exported(**params: Any) -> str:
        answer = service.client.get("/api/v1/audit/export", params=params)
        assert answer.status_code == 200
        assert "attachment" in answer.headers["content-disposition"]
        return answer.text

    trail = _trail(service)
    assert json.loads(exported(format="json")) == trail
    assert json.loads(exported(format="json", user="nobody")) == []
    rows = list(csv.DictReader(io.StringIO(exported(format="csv", action="log_in_failed"))))
    assert [row["actor_name"] for row in rows] == ["Trudy", "Mallory", "'=1+1"]
    assert [row["id"] for row in rows] == [entry["id"] for entry in trail[:3]]


def test_export_of_too_many_entries_is_refused(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite_service.new_client() as browser:
        for name in ("Mallory", "Trudy"):
            browser.post("/api/v1/auth/login", json={"name": name, "password": "x"})
    for maximum, status in ((2, 200), (1, 422)):
        monkeypatch.setattr(export, "MAX_ENTRIES", maximum)
        answer = sqlite_service.client.get("/api/v1/audit/export", params={"format": "csv"})
        assert answer.status_code == status
    assert answer.json()["errors"][0]["field"] == "since"


def test_audit_records_the_length_of_long_values_only(sqlite_service: RunningService) -> None:
    notes = "x" * audit.MAX_VALUE
    assert sqlite_service.client.post("/api/v1/runs", json=CARTPOLE | {"notes": notes}).status_code == 201
    body = _trail(sqlite_service)[0]["body"]
    assert body == CARTPOLE | {"notes": f"({len(notes) + 2} characters)"}


def test_body_of_a_route_without_one_is_ignored(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    for body in (b"x", b"[" * 5_000, b"1" * 5_000, b"[1]", b"\xff"):
        anna = {"name": "Anna", "role": "viewer", "password": PASSWORD}
        user_id = client.post("/api/v1/users", json=anna).json()["id"]
        assert client.request("DELETE", f"/api/v1/users/{user_id}", content=body).status_code == 204
    assert client.get("/api/v1/audit", params={"action": "delete_user"}).json()["items"][0]["body"] == {}
