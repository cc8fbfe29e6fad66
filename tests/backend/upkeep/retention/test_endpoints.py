from itertools import count
from pathlib import Path
from typing import Any

import pytest

from backend.db.engine import reading, writing
from backend.fleet.jobs import service as jobs
from backend.platform.principals import Role
from backend.specs.states import RunState
from backend.upkeep.retention import removals
from backend.upkeep.retention import service as rules
from backend.upkeep.retention.policy import InstallationPolicy
from backend.upkeep.retention.removals import Policies
from tests.support.artifacts import make_episode
from tests.support.rows import add_attempt, episode_row, make_checkpoint, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

URL = "/api/v1/retention"


def _fill(service: RunningService, n: int = 3, **changes: Any) -> str:
    run = make_run(service.engine, RunState.FINISHED, **changes)
    for at in range(n):
        make_checkpoint(service.engine, run, 100 * at + 100, size_bytes=10)
        with writing(service.engine) as session:
            video = {"video": "v.mp4", "video_bytes": 5} if at == 0 else {}
            session.add(episode_row(run.id, 100 * at, replay=f"{at}.npz", replay_bytes=7, **video))
    add_attempt(service.engine, run.id, log_offset_bytes=1_000)
    return run.id


def test_settings_of_installation_and_groups_by_role(service: RunningService) -> None:
    defaults = service.client.get(URL).json()
    assert defaults["groups"] == []
    assert {name for name, value in defaults["installation"].items() if value is not None} == {
        "event_logs",
        "event_logs_days",
    }
    operator = service.client_as(Role.OPERATOR)
    assert operator.put(f"{URL}/installation", json={"videos_days": 7}).status_code == 403
    assert service.client.put(f"{URL}/installation", json={"videos_days": 7}).status_code == 200
    of_group = {"group": "a/b", "policy": {"checkpoints_last": 2}}
    assert operator.put(f"{URL}/groups", json=of_group).status_code == 200
    body = operator.get(URL).json()
    assert body["installation"]["videos_days"] == 7
    assert [(row["group"], row["policy"]["checkpoints_last"]) for row in body["groups"]] == [("a/b", 2)]
    wrong = {"group": "a/b", "policy": {"checkpoints_last": 0, "audit_days": 1}}
    answer = operator.put(f"{URL}/groups", json=wrong)
    assert answer.status_code == 422
    fields = {error["field"] for error in answer.json()["errors"]}
    assert fields == {"policy.checkpoints_last", "policy.audit_days"}
    assert operator.get(URL).json() == body, "nothing has changed"
    for status in (204, 404):
        assert operator.delete(f"{URL}/groups", params={"group": "a/b"}).status_code == status
    operator.close()


def test_preview_is_what_clean_up_removes(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "monotonic", lambda: 0.0)  # however long it takes
    run_id, _ = _fill(service), _fill(service, group="g")
    policy = {"checkpoints_last": 1, "episodes_best": 1, "episodes_last": 1}
    answer = service.client.post(f"{URL}/preview", json={"policy": policy}).json()
    assert (answer["runs_checked"], answer["runs_total"]) == (2, 2)
    assert answer["checkpoints"] == {"files": 4, "n_bytes": 40}
    of_group = service.client.post(f"{URL}/preview", json={"group": "g", "policy": policy}).json()
    assert (of_group["runs_total"], of_group["checkpoints"]["files"]) == (1, 2)
    with writing(service.engine) as session:
        policies = Policies(InstallationPolicy.model_validate(policy), {})
        removal = rules.apply(session, run_id, policies)
    assert removal is not None
    assert len(removal.checkpoints) == of_group["checkpoints"]["files"]
    assert len(removal.episodes) == of_group["episodes"]["files"]
    shown = service.client.get(f"/api/v1/runs/{run_id}/episodes").json()["items"]
    assert len(shown) == 3 - of_group["episodes"]["files"]


def test_episodes_that_branches_and_saliency_maps_await_are_kept(
    service: RunningService, tmp_path: Path
) -> None:
    run = make_run(service.engine, RunState.FINISHED, environment="Catch-v0")
    make_checkpoint(service.engine, run)
    branched, mapped, other, _ = (
        make_episode(service.engine, run, service.artifacts, tmp_path, agent_steps=at, replay=f"{at}.npz")
        for at in (100, 200, 300, 400)
    )
    policies = Policies(InstallationPolicy(episodes_last=1), {})

    def removed() -> list[str]:
        with reading(service.engine) as session:
            [removal] = removals.of_runs(session, [run.id], policies)
        return sorted(episode.id for episode in removal.episodes)

    assert removed() == sorted([branched.id, mapped.id, other.id])
    branch = service.client.post("/api/v1/branches", json={"episode": branched.id, "decision": 1})
    saliency = service.client.get(f"/api/v1/episodes/{mapped.id}/saliency", params={"decision": 1})
    assert (branch.status_code, saliency.status_code) == (201, 202)
    assert removed() == [other.id]
    with writing(service.engine) as session:
        while (job := jobs.claim(session, "a", 60.0, ["Catch-v0"])) is not None:
            assert jobs.finish(session, job.id, job.tries)
    assert removed() == sorted([branched.id, mapped.id, other.id])


def test_preview_stops_at_its_time_limit(service: RunningService) -> None:
    _fill(service)
    with reading(service.engine) as session:
        assert list(rules.preview(session, None, InstallationPolicy(), limit_s=0)) == []
        assert rules.count_runs(session, None) == 1


def test_preview_checks_its_time_limit_after_each_run(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        _fill(service)
    seconds = count()
    monkeypatch.setattr(rules, "monotonic", lambda: float(next(seconds)))
    with reading(service.engine) as session:
        assert len(list(rules.preview(session, None, InstallationPolicy(), limit_s=2.5))) == 2
        assert rules.count_runs(session, None) == 3


def test_storage_by_kind_and_by_run(service: RunningService) -> None:
    small, large = _fill(service, 1), _fill(service, 3)
    answer = service.client.get("/api/v1/storage").json()
    assert {row["kind"]: (row["files"], row["n_bytes"]) for row in answer["kinds"]} == {
        "checkpoints": (4, 40),
        "replays": (4, 28),
        "videos": (2, 10),
        "media": (0, 0),
        "event_logs": (2, 2_000),
    }
    assert answer["database_bytes"] > 10_000
    rows = service.client.get("/api/v1/storage/runs").json()["items"]
    assert [(row["run_id"], row["total"]) for row in rows] == [(large, 1_056), (small, 1_022)]
    assert sum(rows[0][kind] for kind in ("checkpoints", "replays", "videos", "event_logs")) == 1_056
