from typing import Any

import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

GROUPS = "/api/v1/comparisons/groups"


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def scored(engine: Engine, score: float | None, **changes: Any) -> str:
    run = make_run(engine, changes.pop("state", RunState.QUEUED), **changes)
    with writing(engine) as session:
        row = session.get_one(Run, run.id)
        row.score, row.best_return, row.agent_steps = score, score, 100
    return run.id


def test_seeds_of_one_setting_with_mean_and_interval(client: Client, engine: Engine) -> None:
    three = [scored(engine, score, seed=seed) for seed, score in enumerate((10.0, 20.0, 30.0))]
    other = scored(engine, None, config={"beta": 0.05}, state=RunState.RUNNING)
    answer = client.get(GROUPS, params={"by": "seed"}).json()
    assert answer["total"] == 2
    newest, seeds = answer["items"]
    assert (newest["runs"], newest["n_scored"], newest["states"]) == ([other], 0, {"running": 1})
    assert newest["score"] == {"value": None, "low": None, "high": None}
    assert "beta = 0.05" in newest["name"]
    assert seeds["runs"] == three[::-1]
    assert (seeds["n"], seeds["best_return"], seeds["agent_steps"]) == (3, 30.0, 300)
    # t(0.975, 2) = 4.3027, s = 10: 4.3027 * 10 / sqrt(3) = 24.841.
    assert seeds["score"]["value"] == 20.0
    assert seeds["score"]["low"] == pytest.approx(20 - 24.841, abs=1e-3)
    assert seeds["score"]["high"] == pytest.approx(20 + 24.841, abs=1e-3)


def test_scores_of_other_worlds_are_not_averaged(client: Client, engine: Engine) -> None:
    scored(engine, 10.0)
    scored(engine, -21.0, environment="ALE/Pong-v5")
    (both,) = client.get(GROUPS, params={"by": "algorithm"}).json()["items"]
    assert (both["key"], both["algorithm"], both["environment"]) == ("paac", "paac", None)
    assert (both["score"]["value"], both["best_return"]) == (None, None)
    worlds = client.get(GROUPS, params={"by": "environment"}).json()["items"]
    assert [(group["key"], group["score"]["value"]) for group in worlds] == [
        ("ALE/Pong-v5", -21.0),
        ("CartPole-v1", 10.0),
    ]


def test_pages_and_filters_are_those_of_the_list(client: Client, engine: Engine) -> None:
    for beta in (0.01, 0.02, 0.03):
        make_run(engine, config={"beta": beta}, tags=["few"] if beta < 0.025 else [])
    ask = {"by": "seed", "limit": 2}
    first = client.get(GROUPS, params=ask).json()
    second = client.get(GROUPS, params=ask | {"cursor": first["next_cursor"]}).json()
    assert (len(first["items"]), len(second["items"]), second["next_cursor"]) == (2, 1, None)
    assert len({group["key"] for group in first["items"] + second["items"]}) == 3
    assert client.get(GROUPS, params=ask | {"filter": "tag:few"}).json()["total"] == 2
    assert client.get(GROUPS, params=ask | {"state": "running"}).json()["total"] == 0


@pytest.mark.parametrize(
    ("more", "field", "status"),
    [({"by": "luck"}, "by", 422), ({"cursor": "x"}, "cursor", 404), ({"filter": "score>>"}, "filter", 422)],
)
def test_bad_input_names_its_field(client: Client, more: dict[str, str], field: str, status: int) -> None:
    answer = client.get(GROUPS, params={"by": "seed"} | more)
    assert answer.status_code == status
    assert field in answer.json()["errors"][0]["field"]
