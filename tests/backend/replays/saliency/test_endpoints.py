from typing import Any

import pytest

from backend.db import Checkpoint, Episode, Job, Run, StoredSaliency
from backend.db.engine import reading, writing
from backend.fleet.jobs import service as jobs
from backend.replays.saliency import service as saliency
from backend.specs.saliency import SaliencyMap
from backend.upkeep.retention import service as retention
from tests.support.artifacts import N_STEPS, make_episode
from tests.support.rows import make_checkpoint, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

MAP = SaliencyMap(
    height=84, width=84, rows=[2, 7], columns=[2], policy=[[0.5], [0.25]], value=[[0.0], [1e-9]],
    frame="AAAA", channels=1,
)  # fmt: skip


def _episode(service: RunningService, **changes: Any) -> tuple[Run, Episode, Checkpoint]:
    run = make_run(service.engine, **({"environment": "Catch-v0"} | changes))
    episode = make_episode(service.engine, run, agent_steps=140)
    return run, episode, make_checkpoint(service.engine, run, 100)


def _url(episode: Episode) -> str:
    return f"/api/v1/episodes/{episode.id}/saliency"


def test_map_is_computed_on_the_first_request_and_then_kept(service: RunningService) -> None:
    run, episode, checkpoint = _episode(service)
    pending = service.client.get(_url(episode), params={"decision": 3})
    assert (pending.status_code, pending.json()["state"]) == (202, "queued")
    assert service.client.get(_url(episode), params={"decision": 3}).json() == pending.json()
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, ["Catch-v0"])
        assert job is not None
        assert (job.kind, job.run_id, job.id) == ("saliency", run.id, pending.json()["job"])
        assert jobs.finish(session, job.id, job.tries)
        saliency.record(session, job.target_id, MAP)
    answer = service.client.get(_url(episode), params={"decision": 3})
    assert answer.status_code == 200
    assert answer.json() == {
        "episode_id": episode.id, "decision": 3, "checkpoint": checkpoint.id, "run_id": run.id,
        "agent_steps": 100, "action_values": False, "map": MAP.model_dump(),
    }  # fmt: skip
    other = make_checkpoint(service.engine, make_run(service.engine, environment="Catch-v0"), 50)
    ask: dict[str, str | int] = {"decision": 3, "checkpoint": other.id}
    assert service.client.get(_url(episode), params=ask).status_code == 202


def test_failed_map_is_computed_again_on_request_only(service: RunningService) -> None:
    _, episode, _ = _episode(service)
    ask: dict[str, Any] = {"decision": 0}
    service.client.get(_url(episode), params=ask)
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, ["Catch-v0"])
        assert job is not None
        jobs.fail(session, job.id, job.tries, "no emulator")
    answer = service.client.get(_url(episode), params=ask)
    assert (answer.status_code, "no emulator" in answer.json()["detail"]) == (409, True)
    assert service.client.get(_url(episode), params=ask | {"again": True}).status_code == 202


def test_invalid_request_is_rejected_with_field_and_nothing_starts(
    service: RunningService, subtests: pytest.Subtests
) -> None:
    _, episode, _ = _episode(service)
    pong = make_checkpoint(service.engine, make_run(service.engine, environment="ALE/Pong-v5"))
    wrong: list[tuple[str, Any]] = [
        ("decision", N_STEPS),
        ("decision", -1),
        ("decision", "x"),
        ("checkpoint", "0" * 26),
        ("checkpoint", "../x"),
        ("checkpoint", pong.id),
    ]
    for field, value in wrong:
        with subtests.test(field=field, value=value):
            answer = service.client.get(_url(episode), params={"decision": 1} | {field: value})
            assert answer.status_code == 422
            assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert service.client.get(_url(episode)).status_code == 422
    nobody = f"/api/v1/episodes/{'0' * 26}/saliency"
    assert service.client.get(nobody, params={"decision": 1}).status_code == 404
    _, numbers, _ = _episode(service, environment="CartPole-v1")
    answer = service.client.get(_url(numbers), params={"decision": 1})
    assert (answer.status_code, "nothing can be blurred" in answer.json()["detail"]) == (409, True)
    with reading(service.engine) as session:
        assert session.query(Job).count() == 0


def test_waiting_and_kept_maps_are_bounded(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, episode, _ = _episode(sqlite_service)
    monkeypatch.setattr(saliency, "MAX_PER_EPISODE", 2)
    for decision in range(3):
        sqlite_service.client.get(_url(episode), params={"decision": decision})
    with reading(sqlite_service.engine) as session:
        assert sorted(row.decision for row in session.query(StoredSaliency)) == [1, 2]
        assert session.query(Job).count() == 2
    monkeypatch.setattr(saliency, "MAX_WAITING_OF_USER", 2)
    answer = sqlite_service.client.get(_url(episode), params={"decision": 4})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "10")


def test_checkpoint_of_a_waiting_map_is_kept_and_maps_go_with_their_episode(service: RunningService) -> None:
    run, episode, checkpoint = _episode(service)
    service.client.get(_url(episode), params={"decision": 1})
    with writing(service.engine) as session:
        retention.remove_thinned_checkpoints(session, run.id, [checkpoint.file])
        assert not session.get_one(Checkpoint, checkpoint.id).removed
        session.delete(session.get_one(Episode, episode.id))
    with reading(service.engine) as session:
        assert session.query(StoredSaliency).count() == 0
