"""A run whose specification cannot be read is listed with the reason, and can be read, exported, deleted."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text, update

from backend.db import Run
from backend.db.base import new_id
from backend.db.checked_json import DAMAGED
from backend.db.engine import writing
from backend.specs.states import RunState
from tests.support.artifacts import make_episode
from tests.support.routes import addresses
from tests.support.rows import make_checkpoint, make_run
from tests.support.service import RunningService

BATCH: dict[str, Any] = {"source": new_id(), "sequence": 1}
FILE = BATCH | {"upload": new_id(), "sha256": "0" * 64, "size_bytes": 1, "agent_steps": 1, "wall_time_s": 1.0}
BODIES: dict[str, Any] = {
    "checkpoints": FILE | {"suffix": ".pt"},
    "config": BATCH,
    "episodes": BATCH | {"episodes": []},
    "histograms": BATCH | {"histograms": []},
    "log": BATCH | {"lines": []},
    "media": FILE | {"kind": "image", "metric": "observation"},
    "points": BATCH | {"series": []},
    "provenance": BATCH,
    "settings": {"config": {"beta": 0.5}},
    "step-notes": {"agent_steps": 1, "text": "a note"},
    "videos": FILE | {"form": "file"},
}
"""By the last part of an address, what is a valid body for other runs."""
PARAMETERS = {"PUT": {"offset": 0}}
BULK: dict[str, dict[str, Any]] = {
    **{action: {} for action in ("stop", "kill", "resume", "archive", "unarchive")},
    **{action: {"tags": ["a"]} for action in ("tag", "untag")},
    "prioritise": {"priority": 1},
}


@pytest.mark.service
@pytest.mark.parametrize(
    ("column", "reason"),
    [("spec = '{}'", DAMAGED), ("state = 'ours'", DAMAGED), ("", 'its algorithm "ours" is not installed')],
    ids=["spec", "state", "algorithm"],
)
def test_run_that_cannot_be_read_is_listed_with_the_reason_and_refuses_all_but_its_deletion(
    sqlite_service: RunningService, tmp_path: Path, column: str, reason: str
) -> None:
    engine, client = sqlite_service.engine, sqlite_service.client
    run, other = make_run(engine, RunState.FINISHED), make_run(engine)
    episode = make_episode(engine, run, sqlite_service.artifacts, tmp_path)
    ids = {"episode_id": episode.id, "checkpoint_id": make_checkpoint(engine, run).id}
    with writing(engine) as session:
        spec = run.spec | {"algorithm": "ours"}
        session.execute(update(Run).where(Run.id == run.id).values(spec=spec, algorithm="ours"))
        if column:
            session.execute(text(f"UPDATE runs SET {column} WHERE id = '{run.id}'"))
        stored = session.scalar(select(Run.spec).where(Run.id == run.id))
    refusal = f"{reason}: it can be read, exported and deleted, but nothing else"

    for path in ("runs", "runs?sort=config.gamma&spec=true", "runs?filter=algorithm:ours or seed:0"):
        items = {item["id"]: item for item in client.get(f"/api/v1/{path}").json()["items"]}
        assert items[run.id]["state_reason"] == reason
        assert items[other.id]["state_reason"] == "created"
    for by in ("seed", "state", "algorithm", "config.learning_rate"):
        assert client.get(f"/api/v1/comparisons/groups?by={by}").status_code == 200
    answers = {}
    for method, path in addresses(sqlite_service, run.id, **ids):
        operation = path.rpartition("/")[2]
        if operation in (run.id, "restore", "events") or not any(
            id in path for id in (run.id, *ids.values())
        ):
            continue
        answer = client.request(method, path, json=BODIES.get(operation, {}), params=PARAMETERS.get(method))
        if method == "GET":
            assert not answer.is_server_error, path
        else:
            answers[method, operation] = answer
    assert len(answers) > 15
    for path, body in (
        (f"runs/{run.id}", {"notes": "a note"}),
        ("branches", {"episode": episode.id, "decision": 0}),
        ("start-sets", {"name": "ours", "run": run.id, "points": 10}),
        ("play", {"environment": "CartPole-v1", "agent": {"run": run.id}}),
    ):
        method = "PATCH" if run.id in path else "POST"
        answers[method, path] = client.request(method, f"/api/v1/{path}", json=body)
    details = {
        operation: (answer.status_code, answer.json()["detail"]) for operation, answer in answers.items()
    }
    assert details == dict.fromkeys(details, (409, refusal))
    for action, fields in BULK.items():
        body = {"action": action, "ids": [run.id], **fields}
        [item] = client.post("/api/v1/runs/bulk", json=body).json()["items"]
        assert (item["done"], item["detail"]) == (False, refusal), action

    with writing(engine) as session:
        assert session.scalar(select(Run.spec).where(Run.id == run.id)) == stored
    assert client.delete(f"/api/v1/runs/{run.id}").status_code == 204
