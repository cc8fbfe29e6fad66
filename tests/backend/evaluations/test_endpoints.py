from typing import Any

import pytest

from backend.db import Evaluation
from backend.db.engine import writing
from backend.jobs import repository as jobs
from backend.specs.environments import ENVIRONMENTS
from tests.support.artifacts import make_checkpoint
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_the_newest_checkpoint_is_scored_by_the_worlds_protocol(service: RunningService) -> None:
    run = make_run(service.engine, environment="ALE/Pong-v5")
    make_checkpoint(service.engine, run, 100)
    newest = make_checkpoint(service.engine, run, 300)
    make_checkpoint(service.engine, run, 400, superseded=True)
    url = f"/api/v1/runs/{run.id}/evaluations"
    made = service.client.post(url)
    assert made.status_code == 201
    evaluation = made.json()
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


def test_one_may_choose_checkpoint_episodes_and_seed(service: RunningService) -> None:
    run = make_run(service.engine)
    chosen = make_checkpoint(service.engine, run, 100)
    make_checkpoint(service.engine, run, 300)
    body = {"checkpoint": chosen.id, "episodes": 5, "seed": 9, "protocol": "plain"}
    url = f"/api/v1/runs/{run.id}/evaluations"
    made = service.client.post(url, json=body).json()
    assert (made["agent_steps"], made["n_episodes"], made["seed"]) == (100, 5, 9)
    assert not made["superseded"]
    superseded = make_checkpoint(service.engine, run, 400, superseded=True)
    assert service.client.post(url, json={"checkpoint": superseded.id}).json()["superseded"]


def test_what_cannot_be_evaluated_is_refused(service: RunningService, subtests: pytest.Subtests) -> None:
    run, other = make_run(service.engine), make_run(service.engine)
    url = f"/api/v1/runs/{run.id}/evaluations"
    without = service.client.post(url)
    assert (without.status_code, "no checkpoint" in without.json()["detail"]) == (409, True)
    make_checkpoint(service.engine, run)
    removed = make_checkpoint(service.engine, run, 50, removed=True)
    foreign = make_checkpoint(service.engine, other)
    wrong: list[dict[str, Any]] = [
        {"protocol": "noop_starts"},
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
