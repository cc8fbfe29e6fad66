import pytest

from backend.alerts.alerts.service import NewAlert, raise_alert
from backend.db.alert import record_signal
from backend.db.engine import writing
from backend.platform.principals import Role
from backend.specs.states import RunState
from tests.support.alerts import evaluate
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_inbox_has_alerts_with_their_run_and_those_are_read(service: RunningService) -> None:
    client = service.client
    run = make_run(service.engine, RunState.RUNNING, name="PAAC")
    rule = client.post("/api/v1/alert-rules", json={"kinds": ["lost"], "run_id": run.id})
    assert rule.status_code == 201
    for attempt in (1, 2, 3):
        with writing(service.engine) as session:
            record_signal(session, "lost", run.id, attempt=attempt, agent_steps=500, text="no heartbeat")
        evaluate(service)
    page = client.get("/api/v1/alerts", params={"run": run.id}).json()
    assert page["unread"] == 3
    latest, second, _ = page["items"]
    assert (latest["attempt"], latest["title"], latest["text"]) == (3, "PAAC: lost", "no heartbeat")
    assert (latest["run_id"], latest["run_name"], latest["agent_steps"]) == (run.id, "PAAC", 500)
    assert latest["rule_id"] == rule.json()["id"]

    assert client.post(f"/api/v1/alerts/{second['id']}/read-until").status_code == 204
    unread = client.get("/api/v1/alerts", params={"unread": True}).json()
    assert [alert["id"] for alert in unread["items"]] == [latest["id"]]
    url = f"/api/v1/alerts/{latest['id']}"
    assert client.patch(url, json={"read": True}).json()["read_at"] is not None
    assert client.get("/api/v1/alerts").json()["unread"] == 0
    assert client.patch(url, json={"read": False}).json()["read_at"] is None

    assert client.delete(f"/api/v1/alert-rules/{rule.json()['id']}").status_code == 204
    assert client.get(url).json()["rule_id"] is None, "an alert outlives its rule"
    assert client.delete(f"/api/v1/runs/{run.id}").status_code in (200, 204, 409)


def test_inbox_is_of_its_user_alone(service: RunningService) -> None:
    owner = service.client.get("/api/v1/auth/me").json()["id"]
    with writing(service.engine) as session:
        raise_alert(session, owner, None, NewAlert("script", "info", "mine"), ())
    url = f"/api/v1/alerts/{service.client.get('/api/v1/alerts').json()['items'][0]['id']}"
    with service.client_as(Role.ADMIN) as other:
        assert other.get("/api/v1/alerts").json() == {"items": [], "next_cursor": None, "unread": 0}
        assert other.get(url).status_code == 404
        assert other.patch(url, json={"read": True}).status_code == 404
        assert other.post(f"{url}/read-until").status_code == 404
