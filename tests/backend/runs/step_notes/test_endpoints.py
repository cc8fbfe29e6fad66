from typing import Any

import pytest
from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from backend.runs.step_notes import service as step_notes
from backend.specs.states import RunState
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


@pytest.fixture
def run(engine: Engine) -> Run:
    run = make_run(engine, RunState.FINISHED)
    with writing(engine) as session:
        row = session.get_one(Run, run.id)
        row.agent_steps = 1000
    return row


def test_note_is_added_changed_and_deleted(service: RunningService, run: Run) -> None:
    url = f"/api/v1/runs/{run.id}/step-notes"
    late = service.client.post(url, json={"agent_steps": 900, "text": "recovers"}).json()
    added = service.client.post(url, json={"agent_steps": 500, "text": "  collapse\n"})
    assert added.status_code == 201
    first = added.json()
    assert (first["agent_steps"], first["text"], first["run_id"]) == (500, "collapse", run.id)
    assert [row["id"] for row in service.client.get(url).json()["items"]] == [first["id"], late["id"]]

    moved = service.client.patch(f"{url}/{first['id']}", json={"agent_steps": 950}).json()
    assert (moved["agent_steps"], moved["text"]) == (950, "collapse")
    assert service.client.patch(f"{url}/{first['id']}", json={"text": "dip"}).json()["text"] == "dip"
    assert [row["id"] for row in service.client.get(url).json()["items"]] == [late["id"], first["id"]]

    assert service.client.delete(f"{url}/{late['id']}").status_code == 204
    assert [row["id"] for row in service.client.get(url).json()["items"]] == [first["id"]]
    after = service.client.get(f"/api/v1/runs/{run.id}").json()
    assert after["revision"] == run.revision + 5, "pages learn of each change"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"agent_steps": 1001, "text": "later"}, "agent_steps"),
        ({"agent_steps": -1, "text": "earlier"}, "agent_steps"),
        ({"agent_steps": 1, "text": " \n"}, "text"),
        ({"agent_steps": 1, "text": "x" * 501}, "text"),
        ({"text": "nowhere"}, "agent_steps"),
    ],
)
def test_wrong_note_is_refused_and_names_the_field(
    service: RunningService, run: Run, wrong: dict[str, Any], field: str
) -> None:
    url = f"/api/v1/runs/{run.id}/step-notes"
    answer = service.client.post(url, json=wrong)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert service.client.get(url).json()["items"] == []


def test_note_belongs_to_its_run(service: RunningService, engine: Engine, run: Run) -> None:
    url = f"/api/v1/runs/{run.id}/step-notes"
    note = service.client.post(url, json={"agent_steps": 1, "text": "mine"}).json()
    other = f"/api/v1/runs/{make_run(engine).id}/step-notes/{note['id']}"
    assert service.client.patch(other, json={"text": "theirs"}).status_code == 404
    assert service.client.delete(other).status_code == 404
    assert [row["text"] for row in service.client.get(url).json()["items"]] == ["mine"]


def test_run_has_a_limited_number_of_notes(service: RunningService, engine: Engine, run: Run) -> None:
    with writing(engine) as session:
        for step in range(step_notes.MAX_OF_RUN):
            step_notes.add(session, run.id, step, "note", None)
    answer = service.client.post(
        f"/api/v1/runs/{run.id}/step-notes", json={"agent_steps": 1, "text": "one more"}
    )
    assert answer.status_code == 409
    assert "200 notes" in answer.json()["detail"]
