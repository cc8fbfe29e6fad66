from typing import Any

import pytest

from backend.alerts.rules import service as rules
from backend.platform.principals import Role
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

URL = "/api/v1/alert-rules"
METRIC: dict[str, Any] = {"kinds": ["metric"], "metric": "loss/td", "comparison": "above", "value": 1}


def test_rule_is_created_replaced_listed_and_deleted(service: RunningService) -> None:
    run = make_run(service.engine, name="PAAC")
    created = service.client.post(URL, json={"kinds": ["lost", "failed", "lost"], "run_id": run.id}).json()
    assert (created["kinds"], created["run_name"], created["targets"]) == (["lost", "failed"], "PAAC", [])
    service.client.post(URL, json={"kinds": ["nan"]})
    listed = service.client.get(URL, params={"run": run.id}).json()["items"]
    assert [rule["id"] for rule in listed] == [created["id"]]
    url = f"{URL}/{created['id']}"
    replaced = service.client.put(url, json=METRIC | {"minutes": 5, "group": "lab"}).json()
    assert (replaced["run_id"], replaced["group"], replaced["minutes"]) == (None, "lab", 5)
    assert service.client.delete(url).status_code == 204
    assert [rule["kinds"] for rule in service.client.get(URL).json()["items"]] == [["nan"]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kinds": []}, "kinds"),
        ({"kinds": ["dead"]}, "kinds"),
        (METRIC, "minutes is needed for these kinds"),
        ({"kinds": ["lost"], "score": 3}, "score has no meaning for these kinds"),
        ({"kinds": ["no_points"], "minutes": 0.5}, "minutes must be at least 1"),
        (
            {"kinds": ["lost"], "run_id": "0" * 26, "group": "lab"},
            "run_id and group: a rule is about one of them",
        ),
        ({"kinds": ["host_away"], "group": "lab"}, "host_away: not about runs, so that group"),
        ({"kinds": ["lost"], "targets": ["0" * 26]}, "targets"),
    ],
)
def test_rule_that_makes_no_sense_is_refused(
    service: RunningService, wrong: dict[str, Any], message: str
) -> None:
    answer = service.client.post(URL, json=wrong)
    assert answer.status_code == 422
    assert message in answer.text
    assert service.client.get(URL).json()["items"] == []


def test_rules_are_of_their_user_and_admins_see_and_delete_any(service: RunningService) -> None:
    with service.client_as(Role.VIEWER) as ann, service.client_as(Role.OPERATOR) as bob:
        url = f"{URL}/{ann.post(URL, json={'kinds': ['lost']}).json()['id']}"
        assert bob.get(URL).json()["items"] == []
        assert bob.get(URL, params={"everyone": True}).status_code == 403
        assert bob.delete(url).status_code == 404
        assert service.client.put(url, json={"kinds": ["nan"]}).status_code == 404
        assert len(service.client.get(URL, params={"everyone": True}).json()["items"]) == 1
        assert service.client.delete(url).status_code == 204


def test_user_has_a_limited_number_of_rules(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_OF_USER", 1)
    assert service.client.post(URL, json={"kinds": ["lost"]}).status_code == 201
    assert service.client.post(URL, json={"kinds": ["lost"]}).status_code == 409
