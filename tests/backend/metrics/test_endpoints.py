import csv
import io
import json
import math

import numpy as np
import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.db.engine import writing
from backend.metrics import repository
from backend.metrics.grouping import INTERVAL_NAMES
from backend.metrics.schemas import Chart
from backend.specs.events import Points
from tests.backend.metrics.oracle import METRICS, Life
from tests.support.service import RunningService

pytestmark = pytest.mark.service

SERIES = "/api/v1/series"


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def strict(text: str):
    """JSON as browsers read it: no NaN, no Infinity."""

    def refuse(word: str):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_series_of_a_run(engine: Engine, client: Client) -> None:
    life = Life(engine, 0)
    life.append({METRICS[0]: 10, METRICS[2]: 3})
    answer = client.get(f"/api/v1/runs/{life.run_id}/series").json()
    assert [(s["metric"], s["source"], s["n_points"]) for s in answer["items"]] == [
        ("actor/eps", "3", 3),
        ("rollout/episode_return", "", 10),
    ]
    assert {s["revision"] for s in answer["items"]} == {life.revision}


def test_a_chart_and_then_what_is_new(engine: Engine, client: Client) -> None:
    life = Life(engine, 0)
    life.append({METRICS[0]: 2500})
    ask = {"run": life.run_id, "metric": METRICS[0][0], "x": "frames", "points": 1000, "smooth": 0.9}
    (whole,) = client.get(SERIES, params=ask).json()["series"]
    assert (whole["n_total"], whole["n_shown"], whole["bucket_rows"]) == (2500, 625, 4)
    assert whole["reset"]
    assert {len(whole[name]) for name in ("x", "mean", "min", "max", "last", "count", "smoothed")} == {625}
    assert whole["x"][-1] == life.live[METRICS[0]][-1][1]
    life.append({METRICS[0]: 1})
    (new,) = client.get(SERIES, params=ask | {"since_revision": whole["revision"]}).json()["series"]
    assert not new["reset"]
    assert new["first_bucket"] == 625
    assert len(new["x"]) == 1
    assert new["revision"] == life.revision


def test_each_run_has_its_own_revision(engine: Engine, client: Client) -> None:
    lives = [Life(engine, seed) for seed in range(2)]
    for life in lives:
        life.append({METRICS[0]: 50})
    seen = [life.revision for life in lives]
    lives[1].append({METRICS[0]: 5})
    ask = {"run": [life.run_id for life in lives], "metric": METRICS[0][0], "since_revision": seen}
    answer = client.get(SERIES, params=ask).json()
    assert [(s["run"], s["first_bucket"], len(s["mean"])) for s in answer["series"]] == [
        (lives[0].run_id, 50, 0),
        (lives[1].run_id, 50, 5),
    ]


def test_what_is_no_finite_number_is_null(engine: Engine, client: Client) -> None:
    life = Life(engine, 0)
    with writing(engine) as session:
        values = [math.nan, math.inf, -math.inf, 1.0]
        n = list(range(4))
        points = Points(metric="m", agent_steps=n, frames=n, wall_time_s=[0.0] * 4, episodes=n, value=values)
        repository.append(session, life.run_id, 1, 2, [points])
    text = client.get(SERIES, params={"run": life.run_id, "metric": "m", "smooth": 0.5}).text
    (series,) = strict(text)["series"]
    assert series["last"] == [None, None, None, 1.0]
    assert series["smoothed"] == [None, None, None, 1.0]
    assert series["count"] == [0, 1, 1, 1]
    grouped = client.get(SERIES, params={"run": life.run_id, "metric": "m", "group_by": "seed"}).text
    assert strict(grouped)["groups"][0]["n_total"] == 4


def test_sources(engine: Engine, client: Client) -> None:
    life = Life(engine, 0)
    life.append({("a", ""): 2, ("a", "1"): 2, ("b", "1"): 2, ("b", "2"): 2})

    def shown(**ask) -> list[tuple[str, str]]:
        answer = client.get(SERIES, params={"run": life.run_id, "metric": ["b", "a"]} | ask).json()
        return [(s["metric"], s["source"]) for s in answer["series"]]

    assert shown() == [("b", "1"), ("b", "2"), ("a", "")]
    assert shown(source="1") == [("b", "1"), ("a", "1")]
    assert shown(source=["", "2"]) == [("b", "2"), ("a", "")]
    assert shown(source="*") == [("b", "1"), ("b", "2"), ("a", ""), ("a", "1")]


def test_seeds_make_a_group_that_nothing_else_moves(engine: Engine, client: Client) -> None:
    lives = [Life(engine, seed) for seed in range(3)]
    other = Life(engine, 9, changes={"config": {"n_e": 8}})
    for life in [*lives, other]:
        life.append({METRICS[0]: 200 + life.seed * 100})
    ask = {"metric": METRICS[0][0], "group_by": "seed", "points": 64}
    alone = client.get(SERIES, params=ask | {"run": [life.run_id for life in lives]}).json()["groups"]
    both = client.get(SERIES, params=ask | {"run": [life.run_id for life in [other, *lives]]}).json()[
        "groups"
    ]
    assert [len(group["runs"]) for group in both] == [1, 3]
    assert both[1] == alone[0]
    (group,) = alone
    assert group["seeds"] == [0, 1, 2]
    assert group["interval"] == INTERVAL_NAMES["ci95"]
    assert group["n"][0] == 3
    assert group["n"][-1] == 1
    assert group["low"][-1] is None
    assert np.all(np.array(group["low"][:5]) < np.array(group["mean"][:5]))
    since = {"since_revision": group["revisions"]}
    new = client.get(SERIES, params=ask | {"run": group["runs"]} | since).json()["groups"][0]
    assert (new["reset"], new["first_bucket"], new["mean"]) == (False, group["n_shown"], [])


WRONG = [
    ({"points": 0}, "points"),
    ({"smooth": 1.0}, "smooth"),
    ({"smooth": "nan"}, "smooth"),
    ({"x": "time"}, "x"),
    ({"run": "nonsense"}, "run.0"),
    ({"run": []}, "run"),
    ({"metric": "a\0b"}, "metric.0"),
    ({"since_revision": [1, 2, 3]}, "since_revision"),
    ({"since_revision": -1}, "since_revision.0"),
    ({"group_by": "name"}, "group_by"),
    ({"interval": "ci50"}, "interval"),
]


def test_wrong_fields_are_named(sqlite_service: RunningService) -> None:
    life, client = Life(sqlite_service.engine, 0), sqlite_service.client
    for change, field in WRONG:
        answer = client.get(SERIES, params={"run": life.run_id, "metric": "a"} | change)
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == [field]


@pytest.mark.parametrize("group_by", [None, "seed"])
def test_answers_are_as_documented(sqlite_service: RunningService, group_by: str | None) -> None:
    life = Life(sqlite_service.engine, 0)
    life.append({METRICS[0]: 300})
    for smooth, since in ((0, None), (0.9, None), (0.9, life.revision)):
        ask = {"run": life.run_id, "metric": METRICS[0][0], "points": 50, "smooth": smooth}
        ask |= {"group_by": group_by} if group_by else {}
        ask |= {} if since is None else {"since_revision": since}
        answer = sqlite_service.client.get(SERIES, params=ask).json()
        # The answer is not made from the models, so nothing else holds it to them.
        assert Chart.model_validate(answer).model_dump() == answer
        assert len(answer["groups" if group_by else "series"]) == 1


def test_too_large_an_answer_is_refused(sqlite_service: RunningService) -> None:
    life, client = Life(sqlite_service.engine, 0), sqlite_service.client
    life.append({("a", str(at)): 1 for at in range(101)})
    ask = {"run": life.run_id, "metric": "a", "points": 10_000}
    answer = client.get(SERIES, params=ask)
    assert answer.status_code == 422
    assert "101 series" in answer.json()["detail"]


def test_unknown_runs(client: Client) -> None:
    nobody = "0" * 26
    assert client.get(f"/api/v1/runs/{nobody}/series").status_code == 404
    assert client.get(f"/api/v1/runs/{nobody}/export").status_code == 404
    answer = client.get(SERIES, params={"run": nobody, "metric": "a"})
    assert answer.status_code == 404
    assert nobody in answer.json()["detail"]


def test_a_reader_from_the_future_starts_again(engine: Engine, client: Client) -> None:
    life = Life(engine, 0)
    life.append({METRICS[0]: 5})
    ask = {"run": life.run_id, "metric": METRICS[0][0], "since_revision": 10**6}
    (series,) = client.get(SERIES, params=ask).json()["series"]
    assert series["reset"]
    assert len(series["mean"]) == 5


@pytest.mark.parametrize(
    ("form", "begins"), [("csv", b'"metric","source"'), ("parquet", b"PAR1"), ("tensorboard", b"PK")]
)
def test_export(engine: Engine, client: Client, form: str, begins: bytes) -> None:
    life = Life(engine, 0)
    life.append({METRICS[0]: 70_000})
    answer = client.get(f"/api/v1/runs/{life.run_id}/export", params={"format": form})
    assert answer.status_code == 200
    assert answer.content.startswith(begins)
    assert life.run_id in answer.headers["content-disposition"]
    if form == "csv":
        assert len(list(csv.reader(io.StringIO(answer.text)))) == 70_001
