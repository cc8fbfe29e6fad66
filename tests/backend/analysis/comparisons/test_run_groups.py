from typing import Any

import pytest
from httpx import Client
from sqlalchemy import Engine, event

from backend.db import Run
from backend.db.engine import writing
from backend.specs.states import RunState
from tests.support import external
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

GROUPS = "/api/v1/comparisons/groups"


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def make_scored_run(engine: Engine, score: float | None, **changes: Any) -> str:
    run = make_run(engine, changes.pop("state", RunState.QUEUED), **changes)
    with writing(engine) as session:
        row = session.get_one(Run, run.id)
        row.score, row.best_return, row.agent_steps = score, score, 100
    return run.id


def test_group_by_seed_returns_median_and_interval(client: Client, engine: Engine) -> None:
    five = [
        make_scored_run(engine, score, seed=seed) for seed, score in enumerate((10.0, 90.0, 20.0, 40.0, 30.0))
    ]
    few = [
        make_scored_run(engine, score, seed=seed, config={"beta": 0.05}) for seed, score in enumerate((1, 3))
    ]
    other = make_scored_run(engine, None, config={"beta": 0.1}, state=RunState.RUNNING)
    answer = client.get(GROUPS, params={"by": "seed"}).json()
    assert client.get(GROUPS, params={"by": "config"}).json() == answer
    assert answer["total"] == 3
    newest, pair, seeds = answer["items"]
    assert (newest["runs"], newest["n_scored"], newest["states"]) == ([other], 0, {"running": 1})
    assert newest["score"] == {"value": None, "low": None, "high": None}
    assert newest["name"] == "β 0.1"
    assert (pair["runs"], pair["score"]) == (few[::-1], {"value": 2.0, "low": None, "high": None})
    assert seeds["runs"] == five[::-1]
    assert (seeds["n"], seeds["best_return"], seeds["agent_steps"]) == (5, 90.0, 500)
    assert seeds["score"] == {"value": 30.0, "low": 10.0, "high": 90.0}


def test_group_across_environments_has_no_mean_score(client: Client, engine: Engine) -> None:
    make_scored_run(engine, 10.0)
    make_scored_run(engine, -21.0, environment="ALE/Pong-v5")
    (both,) = client.get(GROUPS, params={"by": "algorithm"}).json()["items"]
    assert (both["key"], both["algorithm"], both["environment"]) == ("paac", "paac", None)
    assert (both["score"]["value"], both["best_return"]) == (None, None)
    envs = client.get(GROUPS, params={"by": "environment"}).json()["items"]
    assert [(group["key"], group["score"]["value"]) for group in envs] == [
        ("ALE/Pong-v5", -21.0),
        ("CartPole-v1", 10.0),
    ]


def test_iterations_are_no_agent_steps_of_a_group(client: Client) -> None:
    for unit, last in (("iterations", 7), ("iterations", 8), ("agent_steps", 2_000)):
        run = external.create(client, algorithm="mine", step_unit=unit)
        external.send(client, run, "points", external.batch(1, [1.0], first=last))
    (group,) = client.get(GROUPS, params={"by": "algorithm"}).json()["items"]
    assert (group["n"], group["agent_steps"], group["iterations"]) == (3, 2_000, 15)


def test_groups_are_paged_and_filtered_like_the_run_list(client: Client, engine: Engine) -> None:
    for beta in (0.01, 0.02, 0.03):
        make_run(engine, config={"beta": beta}, tags=["few"] if beta < 0.025 else [])
    ask: dict[str, Any] = {"by": "seed", "limit": 2}
    first = client.get(GROUPS, params=ask).json()
    second = client.get(GROUPS, params=ask | {"cursor": first["next_cursor"]}).json()
    assert (len(first["items"]), len(second["items"]), second["next_cursor"]) == (2, 1, None)
    assert len({group["key"] for group in first["items"] + second["items"]}) == 3
    assert client.get(GROUPS, params=ask | {"filter": "tag:few"}).json()["total"] == 2
    assert client.get(GROUPS, params=ask | {"state": "running"}).json()["total"] == 0


@pytest.mark.parametrize(
    ("more", "field", "status"),
    [({"by": "luck"}, "by", 422), ({"cursor": "x"}, "cursor", 422), ({"filter": "score>>"}, "filter", 422)],
)
def test_invalid_query_returns_error_with_field(
    client: Client, more: dict[str, str], field: str, status: int
) -> None:
    answer = client.get(GROUPS, params={"by": "seed"} | more)
    assert answer.status_code == status
    assert field in answer.json()["errors"][0]["field"]


def test_groups_by_setting_are_named_and_sorted_by_its_value(engine: Engine, client: Client) -> None:
    for rate in (0.01, 0.001, 0.01):
        make_run(engine, config={"learning_rate": rate})
    answer = client.get(GROUPS, params={"by": "config.learning_rate"}).json()
    assert [(item["name"], item["n"]) for item in answer["items"]] == [
        ("Learning rate: 0.001", 1),
        ("Learning rate: 0.01", 2),
    ]
    (waiting,) = client.get(GROUPS, params={"by": "state"}).json()["items"]
    assert (waiting["name"], waiting["n"]) == ("State: queued", 3)
    refused = client.get(GROUPS, params={"by": "rollout/episode_return"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "by")


def test_groups_are_sorted_in_both_directions_with_those_without_a_value_last(
    client: Client, engine: Engine
) -> None:
    make_scored_run(engine, 5.0, config={"beta": 0.02})
    make_scored_run(engine, None, config={"beta": 0.03})
    for seed, score in enumerate((90.0, 10.0, 20.0)):
        make_scored_run(engine, score, seed=seed, config={"beta": 0.01})

    def order(sort: str, **more: Any) -> list[str]:
        answer = client.get(GROUPS, params={"by": "seed", "sort": sort} | more).json()
        return [group["name"][-4:] for group in answer["items"]]

    assert order("score") == ["0.02", "0.01", "0.03"]
    assert order("-score") == ["0.01", "0.02", "0.03"]
    assert order("best_return") == ["0.02", "0.01", "0.03"]
    assert order("-n")[0] == "0.01"
    assert order("-agent_steps")[0] == "0.01"
    assert order("name") == ["0.01", "0.02", "0.03"] == order("-name")[::-1]
    assert order("created_at") == ["0.02", "0.03", "0.01"]
    settings = {"by": "config.beta", "sort": "-name"}
    by_value = client.get(GROUPS, params=settings).json()["items"]
    assert [group["n"] for group in by_value] == [1, 1, 3]
    first = client.get(GROUPS, params={"by": "seed", "sort": "-score", "limit": 2}).json()
    rest = client.get(
        GROUPS, params={"by": "seed", "sort": "-score", "limit": 2, "cursor": first["next_cursor"]}
    ).json()
    assert [group["score"]["value"] for group in first["items"] + rest["items"]] == [20.0, 5.0, None]
    assert client.get(GROUPS, params={"by": "seed", "sort": "seed"}).status_code == 422


def test_names_of_groups_have_as_many_digits_as_tell_them_apart(client: Client, engine: Engine) -> None:
    for rate in (0.03659230766700693, 0.0123456):
        make_run(engine, config={"learning_rate": rate})
    groups = client.get(GROUPS, params={"by": "seed", "sort": "name"}).json()["items"]
    assert [group["name"] for group in groups] == ["lr 0.0123", "lr 0.0366"]
    make_run(engine, config={"learning_rate": 0.0123412})
    by_value = client.get(GROUPS, params={"by": "config.learning_rate"}).json()["items"]
    assert [group["name"].rpartition(": ")[2] for group in by_value] == ["0.01234", "0.01235", "0.03659"]


def test_specs_are_read_of_changed_runs_alone(client: Client, engine: Engine) -> None:
    ids = [make_scored_run(engine, 1.0, seed=seed, config={"beta": 0.02}) for seed in range(4)]
    ids += [make_scored_run(engine, 2.0, seed=seed, config={"beta": 0.03}) for seed in range(4)]
    before = client.get(GROUPS, params={"by": "seed"}).json()
    read: list[set[str]] = []

    def record(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        given = parameters.values() if isinstance(parameters, dict) else parameters
        if "spec" in statement.partition("FROM")[0] and "runs" in statement:
            read.append(set(ids) & {str(value) for value in given})

    event.listen(Engine, "before_cursor_execute", record)
    try:
        assert client.get(GROUPS, params={"by": "seed"}).json() == before
        by_name = client.get(GROUPS, params={"by": "seed", "sort": "name"}).json()
        assert [group["name"][-4:] for group in by_name["items"]] == ["0.02", "0.03"]
        assert read == []
        client.patch(f"/api/v1/runs/{ids[0]}", json={"group": "another"}).raise_for_status()
        read.clear()
        assert client.get(GROUPS, params={"by": "seed"}).json()["total"] == 3
        assert read == [{ids[0]}] * 2, "for its group and for its name"
        make_run(engine, group="alone", config={"beta": 0.5})
        read.clear()
        named = client.get(GROUPS, params={"by": "seed", "sort": "-name", "limit": 1}).json()["items"]
        assert "alone" not in named[0]["name"]
        assert read == [set()] * 2, "of no other run"
    finally:
        event.remove(Engine, "before_cursor_execute", record)


def test_group_with_runs_that_broke_off_stands_below(client: Client, engine: Engine) -> None:
    """Two of three seeds of the better one have failed; the score is that of the third."""
    for seed in range(3):
        make_scored_run(engine, 5.0, seed=seed, state=RunState.FINISHED)
    for seed, state in enumerate((RunState.FINISHED, RunState.FAILED, RunState.STOPPED)):
        make_scored_run(engine, (9.0, 1.0, 2.0)[seed], seed=seed, config={"beta": 0.1}, state=state)
    make_scored_run(engine, 7.0, config={"beta": 0.2}, state=RunState.LOST)
    for sort, scores in (("-score", [5.0, 9.0, 7.0]), ("score", [5.0, 7.0, 9.0])):
        rows = client.get(GROUPS, params={"by": "seed", "sort": sort}).json()["items"]
        assert [row["score"]["value"] for row in rows] == scores
    assert {row["score"]["value"]: row["n_broken_off"] for row in rows} == {5.0: 0, 9.0: 2, 7.0: 1}
