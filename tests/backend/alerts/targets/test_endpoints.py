import pytest
from sqlalchemy import select

from backend.db import AuditEntry
from backend.db.engine import reading
from backend.platform.principals import Role
from tests.support.service import RunningService

pytestmark = pytest.mark.service

URL = "/api/v1/alert-targets"
SLACK = "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
DISCORD = f"https://discord.com/api/webhooks/123456789012345678/{'abcdefghijk' * 6}"


@pytest.mark.parametrize(
    ("address", "kind", "shown"),
    [
        ("https://user:secret@hooks.example/secret?x=secret", "json", "jsons://hooks.example/****"),
        ("json://127.0.0.1:9/secret", "json", "json://127.0.0.1:9/****"),
        ("mailtos://me:secret@mail.example?to=ann@lab.example", "mail", "mailtos://mail.example/****"),
        (SLACK, "slack", "slack://T...2/****"),
        (DISCORD, "discord", "discord://1...8/****"),
    ],
)
def test_address_of_a_target_is_never_returned_or_recorded(
    service: RunningService, address: str, kind: str, shown: str
) -> None:
    created = service.client.post(URL, json={"name": "lab", "secret_url": address})
    assert created.status_code == 201, created.text
    assert (created.json()["kind"], created.json()["masked_url"]) == (kind, shown)
    with service.client_as(Role.OPERATOR) as operator:
        [listed] = operator.get(URL).json()["items"]
    assert (listed["name"], listed["masked_url"]) == ("lab", None)
    with reading(service.engine) as session:
        entries = session.scalars(select(AuditEntry).where(AuditEntry.action == "create_alert_target"))
        assert [entry.body for entry in entries] == [{"name": "lab", "secret_url": "(secret)"}]


@pytest.mark.parametrize(
    "address",
    [
        "json://10.0.0.1/internal",
        "http://hooks.example/x",
        "file:///etc/passwd",
        "syslog://",
        "mailto://",
        "tgram://123456789:abcdefg_hijklmnop/12315544/",
        "word",
    ],
)
def test_other_services_are_refused_without_repeating_or_logging_the_address(
    service: RunningService, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused = service.client.post(URL, json={"name": "lab", "secret_url": address})
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["secret_url"]
    assert address not in refused.text + caplog.text


def test_names_are_unique_and_deleted_targets_leave_their_rules(service: RunningService) -> None:
    body = {"name": "lab", "secret_url": SLACK}
    target = service.client.post(URL, json=body).json()["id"]
    assert service.client.post(URL, json=body).json()["errors"][0]["field"] == "name"
    rules = "/api/v1/alert-rules"
    rule = {"kinds": ["lost"], "targets": [target]}
    with service.client_as(Role.VIEWER) as viewer:
        assert viewer.post(rules, json=rule).status_code == 403
    assert service.client.post(rules, json=rule).json()["targets"] == [target]
    assert service.client.delete(f"{URL}/{target}").status_code == 204
    assert [rest["targets"] for rest in service.client.get(rules).json()["items"]] == [[]]
