from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from backend.coordination.context import Context
from backend.db import Checkpoint, RemovedFile, Run
from backend.db.engine import reading, writing
from backend.fleet.storage.service import SHORT_GRACE_S
from backend.platform.errors import Unavailable
from backend.specs.states import RunState
from tests.support.rows import make_checkpoint, make_run
from tests.support.service import RunningService
from workers.clean_up import delete_removed_files

pytestmark = pytest.mark.service


def _parent(
    service: RunningService, folder: Path, *steps: int, **changes: Any
) -> tuple[Run, list[Checkpoint]]:
    run = make_run(service.engine, RunState.STOPPED, **changes)
    checkpoints = [make_checkpoint(service.engine, run, n) for n in steps]
    for checkpoint in checkpoints:
        (folder / checkpoint.file).write_bytes(f"weights at {checkpoint.agent_steps}".encode())
        service.artifacts.put(folder / checkpoint.file, run.id, "checkpoints")
    return run, checkpoints


def test_fork_starts_at_newest_checkpoint_with_changes(service: RunningService, tmp_path: Path) -> None:
    parent, _ = _parent(service, tmp_path, 100, 300, config={"learning_rate": 0.1}, tags=["a"])
    body = {"config": {"beta": 0.5}, "name": "bolder", "seed": 5, "tags": ["b"]}
    created = service.client.post(f"/api/v1/runs/{parent.id}/fork", json=body)
    assert created.status_code == 201
    fork = created.json()
    assert (fork["parent_id"], fork["forked_at_agent_steps"]) == (parent.id, 300)
    assert (fork["state"], fork["name"], fork["seed"], fork["tags"]) == ("queued", "bolder", 5, ["b"])
    assert (fork["agent_steps"], fork["wall_time_s"], fork["progress"]) == (300, 0.3, 0.03)
    assert fork["spec"]["config"]["learning_rate"] == 0.1
    assert fork["spec"]["config"]["beta"] == 0.5
    with reading(service.engine) as session:
        own = session.scalars(select(Checkpoint).where(Checkpoint.run_id == fork["id"])).one()
    assert (own.attempt, own.agent_steps) == (0, 300)
    with service.artifacts.open(fork["id"], "checkpoints", own.file) as file:
        assert file.read() == b"weights at 300"
    detail = service.client.get(f"/api/v1/runs/{parent.id}").json()
    assert [(c["id"], c["forked_at_agent_steps"]) for c in detail["children"]] == [(fork["id"], 300)]


def test_fork_from_older_checkpoint_and_fork_without_changes(service: RunningService, tmp_path: Path) -> None:
    parent, (older, _) = _parent(service, tmp_path, 100, 300, name="p")
    fork = service.client.post(f"/api/v1/runs/{parent.id}/fork", json={"checkpoint": older.id}).json()
    assert (fork["forked_at_agent_steps"], fork["name"]) == (100, "p fork")
    plain = service.client.post(f"/api/v1/runs/{parent.id}/fork")
    assert plain.json()["forked_at_agent_steps"] == 300
    assert plain.json()["spec"] == parent.spec | {"name": "p fork"}
    bolder = service.client.post(f"/api/v1/runs/{parent.id}/fork", json={"config": {"beta": 0.5}})
    assert bolder.json()["name"] == "p fork beta=0.5"


def test_fork_is_for_the_host_of_its_parent_unless_it_names_another_or_none(
    service: RunningService, tmp_path: Path
) -> None:
    parent, _ = _parent(service, tmp_path, 100, host="a")
    hosts = [
        service.client.post(f"/api/v1/runs/{parent.id}/fork", json=body).json()["spec"]["host"]
        for body in ({}, {"host": "b"}, {"host": None})
    ]
    assert hosts == ["a", "b", None]


def test_fork_survives_deletion_of_parent(service: RunningService, tmp_path: Path) -> None:
    parent, _ = _parent(service, tmp_path, 100)
    fork = service.client.post(f"/api/v1/runs/{parent.id}/fork").json()
    assert service.client.delete(f"/api/v1/runs/{parent.id}").status_code == 204
    left = service.client.get(f"/api/v1/runs/{fork['id']}").json()
    assert (left["parent_id"], left["forked_at_agent_steps"]) == (None, 100)


def test_invalid_fork_request_is_rejected_and_stores_nothing(
    service: RunningService, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    parent, (checkpoint,) = _parent(service, tmp_path, 100)
    _, (foreign,) = _parent(service, tmp_path, 200)
    url = f"/api/v1/runs/{parent.id}/fork"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"config": {"n_e": 10**9}}, "config.n_e"),
        ({"config": {"colour": 1}}, "config.colour"),
        ({"config": {"network": "nips"}}, "config.network"),
        ({"environment_config": {"frame_skip": 1}}, "environment_config.frame_skip"),
        ({"stop": {"agent_steps": 100}}, "stop.agent_steps"),
        ({"stop": {}}, "stop"),
        ({"checkpoint": foreign.id}, "checkpoint"),
        ({"checkpoint": "../x"}, "checkpoint"),
        ({"algorithm": "paac"}, "algorithm"),
        ({"name": "\0"}, "name"),
        ({"seed": -1}, "seed"),
        ({"config": {"\0": 1}}, "config.\0.[key]"),
    ]
    for body, field in wrong:
        with subtests.test(body=str(body)):
            answer = service.client.post(url, json=body)
            assert answer.status_code == 422
            assert field in [e["field"] for e in answer.json()["errors"]]
    service.artifacts.delete(parent.id, "checkpoints", checkpoint.file)
    assert service.client.post(url).status_code == 409
    new = make_run(service.engine)
    assert service.client.post(f"/api/v1/runs/{new.id}/fork").status_code == 409
    assert service.client.get("/api/v1/runs").json()["total"] == 3


def test_fork_at_its_bound_is_rejected_with_reason(service: RunningService, tmp_path: Path) -> None:
    parent, _ = _parent(service, tmp_path, 60_000)
    with writing(service.engine) as session:
        session.execute(update(Checkpoint).values(score=1234567.5, episodes=100))
    body = {"stop": {"agent_steps": 60_000, "wall_time_s": 59.99, "score": 1_000_000}}
    errors = service.client.post(f"/api/v1/runs/{parent.id}/fork", json=body).json()["errors"]
    assert [error["message"] for error in errors] == [
        "the checkpoint has 60,000 agent steps already: set a higher limit",
        "the checkpoint has 60 s of training already: set a higher limit",
        "the checkpoint has the score 1,234,567.5 already: set a higher limit",
    ]


def test_fork_above_its_target_score_is_rejected(service: RunningService, tmp_path: Path) -> None:
    stop = {"agent_steps": 10_000, "score": 195.0}
    parent, (checkpoint,) = _parent(service, tmp_path, 100, stop=stop)
    url = f"/api/v1/runs/{parent.id}/fork"
    with writing(service.engine) as session:
        row = session.get_one(Checkpoint, checkpoint.id)
        row.score, row.episodes = 197.5, 100
    answer = service.client.post(url)
    assert (answer.status_code, [e["field"] for e in answer.json()["errors"]]) == (422, ["stop.score"])
    assert service.client.post(url, json={"stop": stop | {"score": 198.0}}).status_code == 201
    with writing(service.engine) as session:
        session.get_one(Checkpoint, checkpoint.id).episodes = 99  # no window of the score is full yet
    assert service.client.post(url).status_code == 201


def test_fork_cannot_change_settings_of_network_shape(service: RunningService, tmp_path: Path) -> None:
    pong = {"environment": "ALE/Pong-v5", "config": {"network": "nips"}}
    for algorithm, body, field in (
        ("paac", {"environment_config": {"full_action_set": True}}, "environment_config.full_action_set"),
        ("a3c", {"config": {"recurrent": True}}, "config.recurrent"),
        ("ga3c", {"config": {"first_layer_stride": 2}}, "config.first_layer_stride"),
    ):
        parent, _ = _parent(service, tmp_path, 100, algorithm=algorithm, **pong)
        url = f"/api/v1/runs/{parent.id}/fork"
        answer = service.client.post(url, json=body)
        assert (answer.status_code, [e["field"] for e in answer.json()["errors"]]) == (422, [field])
        assert service.client.post(url, json={"environment_config": {"noop_max": 5}}).status_code == 201


def _fail(*arguments: object, **fields: object) -> None:
    raise Unavailable("the database is away", retry_after_s=1)


def test_clean_up_deletes_the_copy_of_a_fork_that_was_not_committed_and_no_other(
    service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, _ = _parent(service, tmp_path, 100)
    url, runs = f"/api/v1/runs/{parent.id}/fork", service.settings.home_dir / "artifacts" / "runs"
    with monkeypatch.context() as failing:
        failing.setattr("backend.runs.forks.endpoints.RunOut.of", _fail)
        assert service.client.post(url).status_code == 503
    [left] = runs.glob("*/checkpoints/a0-*.pt")
    fork = service.client.post(url).json()
    context = Context.from_settings(service.settings)
    try:
        assert delete_removed_files(context, grace_s=SHORT_GRACE_S) == 0, "their requests may still commit"
        with writing(service.engine) as session:
            session.execute(update(RemovedFile).values(removed_at=datetime(2020, 1, 1, tzinfo=UTC)))
        assert delete_removed_files(context, grace_s=SHORT_GRACE_S) == 1
    finally:
        context.close()
    assert not left.exists()
    assert [path.parts[-3] for path in runs.glob("*/checkpoints/a0-*.pt")] == [fork["id"]]
