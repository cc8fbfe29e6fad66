from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.db import Evaluation, Run
from backend.db.engine import writing
from backend.db.ids import new_id
from backend.metrics import repository as series
from backend.metrics.chunks import CHUNK_ROWS
from backend.specs.events import Points
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

COMPARISONS = "/api/v1/comparisons"


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def made(engine: Engine, values: list[float], **changes: Any) -> str:
    """A run whose episodes of 10 agent steps have these returns; its id."""
    run = make_run(engine, **changes)
    steps = [10 * (at + 1) for at in range(len(values))]
    points = Points(
        metric="rollout/episode_return",
        agent_steps=steps,
        frames=steps,
        wall_time_s=[step / 100 for step in steps],
        episodes=list(range(len(values))),
        value=values,
    )
    with writing(engine) as session:
        series.append(session, run.id, 1, 1, [points])
    return run.id


def evaluated(engine: Engine, run_id: str, agent_steps: int, score: float, protocol: str = "plain") -> None:
    with writing(engine) as session:
        session.add(
            Evaluation(
                id=new_id(),
                run_id=run_id,
                attempt=1,
                requested_at=datetime(2026, 1, 1, tzinfo=UTC),
                protocol=protocol,
                n_episodes=30,
                seed=0,
                agent_steps=agent_steps,
                frames=agent_steps,
                wall_time_s=agent_steps / 100,
                checkpoint=f"{agent_steps}.pt",
                returns=[score] * 30,
                lengths_frames=[],
                mean_return=score,
            )
        )


def two_rates(engine: Engine) -> tuple[list[str], list[str]]:
    """Three seeds of a rate that reaches 200 after 100 episodes, and of one that never does."""
    good = [
        made(engine, [0.0] * 100 + [200.0 + seed] * 150, seed=seed, config={"learning_rate": 0.01})
        for seed in range(3)
    ]
    bad = [
        made(engine, [0.0] * 100 + [50.0 + seed] * 100, seed=seed, config={"learning_rate": 0.1})
        for seed in range(3)
    ]
    return good, bad


def test_which_of_two_rates_is_better(client: Client, engine: Engine) -> None:
    good, bad = two_rates(engine)
    answer = client.get(COMPARISONS, params={"run": bad + good, "threshold": 200}).json()
    by_rate = {"0.01" in group["name"]: group for group in answer["groups"]}
    better, worse = by_rate[True], by_rate[False]
    assert {one["run"] for one in better["runs"]} == set(good)
    assert (better["n"], worse["n"]) == (3, 3)
    assert worse["iqm"]["value"] == pytest.approx(51.0)
    # Where the shorter ones end, after 200 episodes: 100 of 200 + seed.
    assert (better["at_agent_steps"], worse["at_agent_steps"]) == (2000, 2000)
    assert better["iqm"]["value"] == pytest.approx(201.0)
    assert 200.0 <= better["iqm"]["low"] <= 201.0 <= better["iqm"]["high"] <= 202.0

    (pair,) = answer["improvements"]
    assert (pair["a"], pair["b"]) == (better["id"], worse["id"])
    assert pair["probability"] == {"value": 1.0, "low": 1.0, "high": 1.0}

    assert (better["n_reached"], worse["n_reached"]) == (3, 0)
    steps = [one["agent_steps_to_threshold"] for one in better["runs"]]
    assert steps[0] == 2000
    assert better["agent_steps_to_threshold"]["value"] == pytest.approx(np.median(steps))
    assert better["wall_time_s_to_threshold"]["value"] == pytest.approx(np.median(steps) / 100)
    assert worse["agent_steps_to_threshold"] == {"value": None, "low": None, "high": None}


def test_each_at_its_own_end(client: Client, engine: Engine) -> None:
    good, bad = two_rates(engine)
    ask = {"run": good + bad, "at": "end"}
    for group in client.get(COMPARISONS, params=ask).json()["groups"]:
        assert group["at_agent_steps"] is None
        assert group["agent_steps_to_threshold"] is None


def test_a_long_run_is_scored_where_a_short_one_ends(client: Client, engine: Engine) -> None:
    rng = np.random.default_rng(0)
    long, short = rng.normal(size=(2, 3 * CHUNK_ROWS))
    runs = [made(engine, long.tolist(), seed=0), made(engine, short[: CHUNK_ROWS + 50].tolist(), seed=1)]
    for at, ends in (("common", (CHUNK_ROWS + 50,) * 2), ("end", (3 * CHUNK_ROWS, CHUNK_ROWS + 50))):
        (group,) = client.get(COMPARISONS, params={"run": runs, "at": at}).json()["groups"]
        expected = [values[end - 100 : end].mean() for values, end in zip((long, short), ends, strict=True)]
        assert [one["score"] for one in group["runs"]] == pytest.approx(expected)


def test_by_evaluations_of_the_worlds_own_protocol(client: Client, engine: Engine) -> None:
    run_id = made(engine, [1.0] * 10)
    evaluated(engine, run_id, 50, 100.0)
    evaluated(engine, run_id, 100, 30.0)
    evaluated(engine, run_id, 100, 999.0, protocol="sticky_actions")
    ask = {"run": run_id, "score": "evaluation", "threshold": 90}
    (group,) = client.get(COMPARISONS, params=ask).json()["groups"]
    assert group["iqm"] == {"value": 30.0, "low": None, "high": None}
    assert group["runs"][0]["agent_steps_to_threshold"] == 50
    assert group["runs"][0]["wall_time_s_to_threshold"] == 0.5


def test_other_worlds_are_not_held_against_each_other(client: Client, engine: Engine) -> None:
    cartpole = [made(engine, [1.0] * 5, seed=seed) for seed in range(2)]
    pong = [made(engine, [9.0] * 3, seed=seed, environment="ALE/Pong-v5") for seed in range(2)]
    answer = client.get(COMPARISONS, params={"run": cartpole + pong}).json()
    assert answer["improvements"] == []
    ends = {group["environment"]: group["at_agent_steps"] for group in answer["groups"]}
    assert ends == {"CartPole-v1": 50, "ALE/Pong-v5": 30}


def test_what_an_agent_sees_and_when_it_was_made_part_no_runs_of_a_world(
    client: Client, engine: Engine
) -> None:
    pong = {"environment": "ALE/Pong-v5"}
    plain, cropped, before = (
        [made(engine, [9.0] * 3, seed=seed, **pong, **changes) for seed in range(2)]
        for changes in ({}, {"environment_config": {"crop": True}}, {"config": {"beta": 0.5}})
    )
    with writing(engine) as session:
        for run_id in before:
            run = session.get_one(Run, run_id)
            kept = {name: v for name, v in run.spec["environment_config"].items() if name != "difficulty"}
            run.spec = run.spec | {"environment_config": kept}
    for others in (cropped, before):
        answer = client.get(COMPARISONS, params={"run": plain + others}).json()
        assert len(answer["improvements"]) == 1


def test_a_run_without_episodes_has_no_score(client: Client, engine: Engine) -> None:
    runs = [made(engine, [3.0] * 4), make_run(engine, seed=1).id]
    (group,) = client.get(COMPARISONS, params={"run": runs, "threshold": 1}).json()["groups"]
    assert (group["n"], group["at_agent_steps"]) == (1, 40)
    assert [one["score"] for one in group["runs"]] == [3.0, None]
    assert group["iqm"]["value"] == 3.0


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"threshold": "inf"}, "threshold"),
        ({"score": "luck"}, "score"),
        ({"at": "noon"}, "at"),
        ({"run": "not-an-id"}, "run"),
    ],
)
def test_bad_input_names_its_field(client: Client, more: dict[str, str], field: str) -> None:
    ask = {"run": "01ARZ3NDEKTSV4RRFFQ69G5FAV"} | more
    answer = client.get(COMPARISONS, params=ask)
    assert answer.status_code == 422
    assert field in answer.json()["errors"][0]["field"]


def test_a_run_that_is_not_there(client: Client) -> None:
    answer = client.get(COMPARISONS, params={"run": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
    assert answer.status_code == 404
