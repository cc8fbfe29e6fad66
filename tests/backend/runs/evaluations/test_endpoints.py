from typing import Any

import pytest

from backend.db import Evaluation
from backend.db.base import new_id
from backend.db.engine import writing
from backend.db.job import THUMBNAIL
from backend.fleet.jobs import service as jobs
from backend.runs.evaluations import service as evaluations
from backend.specs.environments import ENVIRONMENTS
from backend.specs.run import parse_run_spec
from tests.support.rows import make_checkpoint, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_evaluation_defaults_to_newest_checkpoint_and_environment_protocol(service: RunningService) -> None:
    run = make_run(service.engine, environment="ALE/Pong-v5")
    make_checkpoint(service.engine, run, 100)
    newest = make_checkpoint(service.engine, run, 300)
    make_checkpoint(service.engine, run, 400, superseded=True)
    url = f"/api/v1/runs/{run.id}/evaluations"
    created = service.client.post(url)
    assert created.status_code == 201
    evaluation = created.json()
    expected = {
        "protocol": "noop_starts", "n_episodes": 30, "agent_steps": 300, "checkpoint": newest.file,
        "state": "queued", "returns": [], "mean_return": None, "attempt": None,
    }  # fmt: skip
    assert {name: evaluation[name] for name in expected} == expected
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, list(ENVIRONMENTS))
        assert job is not None
        assert (job.kind, job.target_id) == ("evaluation", evaluation["id"])
    assert service.client.get(url).json()["items"][0]["state"] == "running"
    with writing(service.engine) as session:
        row = session.get(Evaluation, evaluation["id"])
        assert row is not None
        row.returns, row.mean_return = [21.0, 20.0], 20.5
        assert jobs.finish(session, job.id, job.tries)
    done = service.client.get(url).json()["items"][0]
    assert (done["state"], done["mean_return"], done["returns"]) == ("done", 20.5, [21.0, 20.0])
    # Of 30 minutes, not of 5: random -20.7 and human 14.6 from no-op starts.
    assert done["human_normalised_pct"] == pytest.approx(100 * (20.5 + 20.7) / (14.6 + 20.7))
    by = [
        (reference["label"], reference["score"], reference["protocol"])
        for reference in done["human_normalised_by"]
    ]
    assert by == [("random", -20.7, "noop_starts"), ("human", 14.6, "noop_starts")]
    assert all("atari_data.py" in reference["source"] for reference in done["human_normalised_by"])


def test_evaluations_of_a_user_are_bounded_and_delay_no_thumbnail(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluations, "MAX_WAITING_OF_USER", 2)
    run = make_run(service.engine)
    make_checkpoint(service.engine, run, 100)
    answers = [service.client.post(f"/api/v1/runs/{run.id}/evaluations") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    with writing(service.engine) as session:
        later = jobs.request(session, THUMBNAIL, run.id, new_id(), queue="cpu")
        claimed = jobs.claim(session, "here", 10, list(ENVIRONMENTS))
        assert claimed is not None
        assert claimed.id == later.id


def test_evaluation_accepts_checkpoint_episodes_and_seed(service: RunningService) -> None:
    run = make_run(service.engine)
    chosen = make_checkpoint(service.engine, run, 100)
    make_checkpoint(service.engine, run, 300)
    body = {"checkpoint": chosen.id, "episodes": 5, "seed": 9, "protocol": "plain_greedy"}
    url = f"/api/v1/runs/{run.id}/evaluations"
    created = service.client.post(url, json=body).json()
    assert (created["agent_steps"], created["n_episodes"], created["seed"]) == (100, 5, 9)
    assert created["protocol"] == "plain_greedy"
    assert not created["superseded"]
    superseded = make_checkpoint(service.engine, run, 400, superseded=True)
    assert service.client.post(url, json={"checkpoint": superseded.id}).json()["superseded"]

    def n_listed(**params: bool) -> int:
        return len(service.client.get(url, params=params).json()["items"])

    assert n_listed(superseded=True) == n_listed() + 1


def test_invalid_evaluation_request_is_rejected_with_field(
    service: RunningService, subtests: pytest.Subtests
) -> None:
    run, other = make_run(service.engine), make_run(service.engine)
    url = f"/api/v1/runs/{run.id}/evaluations"
    without = service.client.post(url)
    assert (without.status_code, "no checkpoint" in without.json()["detail"]) == (409, True)
    make_checkpoint(service.engine, run)
    removed = make_checkpoint(service.engine, run, 50, removed=True)
    foreign = make_checkpoint(service.engine, other)
    wrong: list[dict[str, Any]] = [
        {"protocol": "noop_starts"},
        {"protocol": "human_starts"},
        {"checkpoint": foreign.id},
        {"checkpoint": removed.id},
        {"checkpoint": "../x"},
        {"episodes": 0},
        {"episodes": 10**9},
        {"seed": -1},
        {"colour": 1},
    ]
    for body in wrong:
        with subtests.test(body=body):
            answer = service.client.post(url, json=body)
            assert answer.status_code == 422
            assert [e["field"] for e in answer.json()["errors"]] == list(body)
    assert service.client.get(url).json()["items"] == []


@pytest.mark.parametrize(
    ("changes", "default"),
    [
        ({"algorithm": "paac"}, "noop_starts"),
        ({"algorithm": "dqn"}, "noop_starts_5min"),
        ({"algorithm": "paac", "environment_config": {"sticky_actions": 0.25}}, "sticky_actions_5min"),
        (
            {"algorithm": "paac", "config": {"evaluation_protocol": "noop_starts_greedy"}},
            "noop_starts_greedy",
        ),
    ],
)
def test_protocols_are_listed_with_default_and_reason_of_unavailable_ones(
    service: RunningService, changes: dict[str, Any], default: str
) -> None:
    run = make_run(service.engine, environment="ALE/Pong-v5", **changes)
    make_checkpoint(service.engine, run)
    url = f"/api/v1/runs/{run.id}/evaluations"
    listed = service.client.get(f"{url}/protocols").json()
    assert listed["default"] == default
    unavailable = {item["id"]: item["unavailable"] for item in listed["items"]}
    assert list(unavailable)[:2] == ["noop_starts", "noop_starts_greedy"]
    for protocol, reason in unavailable.items():
        answer = service.client.post(url, json={"protocol": protocol})
        if reason is None:
            assert (answer.status_code, answer.json()["protocol"]) == (201, protocol)
        else:
            assert protocol.removesuffix("_greedy") in ("human_starts", "agent_starts")
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "protocol")
            assert reason in answer.json()["errors"][0]["message"]
    assert service.client.post(url).json()["protocol"] == default


RANDOM = "/api/v1/evaluations/random"


@pytest.mark.parametrize(
    ("body", "protocol", "frame_skip"),
    [
        ({"environment": "ALE/Pong-v5"}, "noop_starts_5min", 6),
        ({"environment": "ALE/Pong-v5", "rate": "each_decision"}, "noop_starts_5min", 4),
        ({"environment": "ALE/Pong-v5", "protocol": "sticky_actions_30min_greedy"}, None, 6),
        ({"environment": "Hopper-v5"}, "plain", None),
    ],
)
def test_random_agent_is_evaluated_as_a_run_of_one_decision(
    service: RunningService, body: dict[str, Any], protocol: str | None, frame_skip: int | None
) -> None:
    created = service.client.post(RANDOM, json={"episodes": 7, "seed": 5} | body)
    assert created.status_code == 201, created.text
    run = service.client.get(f"/api/v1/runs/{created.json()['id']}").json()
    spec = run["spec"]
    assert (run["algorithm"], run["seed"], spec["stop"]["agent_steps"]) == ("random", 5, 1)
    assert spec["config"]["evaluation_episodes"] == 7
    assert parse_run_spec(spec).evaluation_protocol == protocol or body["protocol"]
    assert spec["environment_config"].get("frame_skip") == frame_skip


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({}, "environment", "is required"),
        ({"environment": "Pong"}, "environment", "unknown environment"),
        ({"environment": "CartPole-v1", "rate": "10_hz"}, "rate", "10_hz is for Atari games"),
        ({"environment": "ALE/Pong-v5", "rate": "60_hz"}, "rate", "must be"),
        (
            {"environment": "ALE/Pong-v5", "environment_config": {"frame_skip": 4}},
            "environment_config.frame_skip",
            "10_hz is a new action every 6 frames",
        ),
        ({"environment": "CartPole-v1", "protocol": "noop_starts"}, "protocol", "has no protocol"),
        ({"environment": "ALE/Pong-v5", "protocol": "agent_starts:none"}, "protocol", "no start set none"),
        ({"environment": "CartPole-v1", "episodes": 0}, "episodes", "at least 1"),
        ({"environment": "CartPole-v1", "environment_config": {"x": 1}}, "environment_config.x", "no such"),
    ],
)
def test_evaluation_of_a_random_agent_names_what_is_invalid(
    service: RunningService, body: dict[str, Any], field: str, message: str
) -> None:
    answer = service.client.post(RANDOM, json=body)
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert error["field"] == field
    assert message in error["message"]
