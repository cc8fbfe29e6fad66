import csv
import io
import json
import math
import sys
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.analysis.metrics import repository
from backend.analysis.metrics.schemas import Chart
from backend.db import Run
from backend.db.engine import writing
from backend.external.endpoints import ARROW
from backend.specs import extras
from backend.specs.events import PointsEvent
from backend.statistics.grouping import Spread, interval_name
from tests.backend.analysis.metrics.oracle import METRICS, RecordedRun
from tests.support.external import SOURCE, create
from tests.support.rows import PROVENANCE, add_attempt
from tests.support.service import RunningService

pytestmark = pytest.mark.service

SERIES = "/api/v1/series"


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def strict(text: str) -> Any:
    """Parse JSON as browsers do: without NaN and Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_run_series_are_listed_with_point_counts(engine: Engine, client: Client) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 10, METRICS[2]: 3})
    answer = client.get(f"/api/v1/runs/{recorded.run_id}/series").json()
    assert [(s["metric"], s["source"], s["n_points"]) for s in answer["items"]] == [
        ("actor/eps", "3", 3),
        ("rollout/episode_return", "", 10),
    ]
    assert {s["revision"] for s in answer["items"]} == {recorded.revision}


@pytest.fixture
def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where the extra `parquet` is not installed."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    extras.installed.cache_clear()
    yield
    monkeypatch.undo()
    extras.installed.cache_clear()


@pytest.mark.usefixtures("without_pyarrow")
def test_server_without_pyarrow_names_the_extra_and_exports_the_other_formats(
    engine: Engine, client: Client
) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 10})
    of_run = f"/api/v1/runs/{recorded.run_id}/export?format="
    of_runs = f"/api/v1/runs/export?run={recorded.run_id}&format="
    for path in (of_run, of_runs):
        for name in ("csv", "parquet"):
            refused = client.get(path + name)
            assert (refused.status_code, refused.json()["code"]) == (422, "missing_extra")
            [problem] = refused.json()["errors"]
            assert problem["field"] == "format"
            assert "pip install 'callboard[parquet]'" in problem["message"]
        for name in ("npz", "tensorboard"):
            answer = client.get(path + name)
            assert answer.status_code == 200
            assert zipfile.ZipFile(io.BytesIO(answer.content)).testzip() is None
    assert "parquet" in client.get("/api/v1/auth/me").json()["missing_extras"]
    run = create(client)
    headers = {"Callboard-Source": SOURCE, "Callboard-Sequence": "1", "Content-Type": ARROW}
    refused = client.post(f"/api/v1/runs/{run['id']}/points", content=b"x", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (422, "missing_extra")
    assert "send JSON" in refused.json()["detail"]


def test_chart_then_incremental_update(engine: Engine, client: Client) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 2500})
    ask: dict[str, Any] = {
        "run": recorded.run_id,
        "metric": METRICS[0][0],
        "x": "frames",
        "points": 1000,
        "smooth": 0.9,
    }
    (whole,) = client.get(SERIES, params=ask).json()["series"]
    assert (whole["n_total"], whole["n_shown"], whole["bucket_rows"]) == (2500, 625, 4)
    assert whole["reset"]
    assert {len(whole[name]) for name in ("x", "mean", "min", "max", "last", "count", "smoothed")} == {625}
    assert whole["x"][-1] == recorded.live[METRICS[0]][-1][1]
    recorded.append({METRICS[0]: 1})
    (new,) = client.get(SERIES, params=ask | {"since_revision": whole["revision"]}).json()["series"]
    assert not new["reset"]
    assert new["first_bucket"] == 625
    assert len(new["x"]) == 1
    assert new["revision"] == recorded.revision


def test_chart_of_episodes_that_end_together_has_one_value_for_each_agent_step(
    engine: Engine, client: Client
) -> None:
    recorded = RecordedRun(engine, 0)
    ask: dict[str, Any] = {
        "run": recorded.run_id,
        "metric": "rollout/episode_return",
        "merge_equal_x": True,
    }

    def read(steps: list[int], returns: list[float], **more: Any) -> dict[str, Any]:
        n = len(steps)
        points = PointsEvent(
            metric="rollout/episode_return",
            agent_steps=steps,
            frames=steps,
            wall_time_s=[0.0] * n,
            episodes=[1] * n,
            value=returns,
        )
        with writing(engine) as session:
            recorded.revision = recorded.touch(session)
            repository.append(session, recorded.run_id, 1, recorded.revision, [points])
        (curve,) = client.get(SERIES, params=ask | more).json()["series"]
        return {name: curve[name] for name in ("bucket", "x", "count", "mean", "min", "max")} | {
            "shown": (curve["n_total"], curve["n_shown"], curve["first_bucket"], curve["revision"])
        }

    first = read([10, 10, 20], [0.0, 4.0, 6.0])
    assert first == {
        "bucket": [1, 2],
        "x": [10, 20],
        "count": [2, 1],
        "mean": [2, 6],
        "min": [0, 6],
        "max": [4, 6],
        "shown": (3, 3, 0, recorded.revision),
    }
    # A client drops the buckets from `first_bucket` on: 20 is sent again, with its new episode.
    assert read([20, 30], [8.0, 1.0], since_revision=first["shown"][-1]) == {
        "bucket": [3, 4],
        "x": [20, 30],
        "count": [2, 1],
        "mean": [7, 1],
        "min": [6, 1],
        "max": [8, 1],
        "shown": (5, 5, 2, recorded.revision),
    }


def test_since_revision_applies_per_run(engine: Engine, client: Client) -> None:
    recorded_runs = [RecordedRun(engine, seed) for seed in range(2)]
    for recorded in recorded_runs:
        recorded.append({METRICS[0]: 50})
    known_revisions = [recorded.revision for recorded in recorded_runs]
    recorded_runs[1].append({METRICS[0]: 5})
    ask: dict[str, Any] = {
        "run": [recorded.run_id for recorded in recorded_runs],
        "metric": METRICS[0][0],
        "since_revision": known_revisions,
    }
    answer = client.get(SERIES, params=ask).json()
    assert [(s["run"], s["first_bucket"], len(s["mean"])) for s in answer["series"]] == [
        (recorded_runs[0].run_id, 50, 0),
        (recorded_runs[1].run_id, 50, 5),
    ]


def test_infinite_values_are_text_in_json_and_nan_is_null(engine: Engine, client: Client) -> None:
    recorded = RecordedRun(engine, 0)
    with writing(engine) as session:
        values = [math.nan, math.inf, -math.inf, 1.0]
        n = list(range(4))
        points = PointsEvent(
            metric="m", agent_steps=n, frames=n, wall_time_s=[0.0] * 4, episodes=n, value=values
        )
        repository.append(session, recorded.run_id, 1, 2, [points])
    text = client.get(SERIES, params={"run": recorded.run_id, "metric": "m", "smooth": 0.5}).text
    (series,) = strict(text)["series"]
    for name in ("mean", "min", "max", "last"):
        assert series[name] == [None, "Infinity", "-Infinity", 1.0]
    assert series["smoothed"] == [None, None, None, 1.0]
    assert series["count"] == [0, 1, 1, 1]
    Chart.model_validate_json(text)
    coarse = client.get(SERIES, params={"run": recorded.run_id, "metric": "m", "points": 2}).text
    (series,) = strict(coarse)["series"]
    assert (series["max"], series["min"]) == (["Infinity", 1.0], ["Infinity", "-Infinity"])
    grouped = client.get(SERIES, params={"run": recorded.run_id, "metric": "m", "group_by": "seed"}).text
    assert strict(grouped)["groups"][0]["n_total"] == 4
    figures = client.get(
        "/api/v1/figures", params={"run": recorded.run_id, "figure": ["curve:m", "seed_curve:m"]}
    ).text
    assert len(strict(figures)["items"]) == 2


def test_chart_filters_by_source(engine: Engine, client: Client) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({("a", ""): 2, ("a", "1"): 2, ("b", "1"): 2, ("b", "2"): 2})

    def shown(**ask: Any) -> list[tuple[str, str]]:
        answer = client.get(SERIES, params={"run": recorded.run_id, "metric": ["b", "a"]} | ask).json()
        return [(s["metric"], s["source"]) for s in answer["series"]]

    assert shown() == [("b", "1"), ("b", "2"), ("a", "")]
    assert shown(source="1") == [("b", "1"), ("a", "1")]
    assert shown(source=["", "2"]) == [("b", "2"), ("a", "")]
    assert shown(source="*") == [("b", "1"), ("b", "2"), ("a", ""), ("a", "1")]


def test_seed_group_is_independent_of_other_runs(engine: Engine, client: Client) -> None:
    recorded_runs = [RecordedRun(engine, seed) for seed in range(6)]
    few = [RecordedRun(engine, seed, changes={"config": {"n_e": 8}}) for seed in range(2)]
    for recorded in [*recorded_runs, *few]:
        recorded.append({METRICS[0]: 200 + recorded.seed * 100})
    ask: dict[str, Any] = {"metric": METRICS[0][0], "group_by": "seed", "points": 64}
    alone = client.get(SERIES, params=ask | {"run": [recorded.run_id for recorded in recorded_runs]}).json()[
        "groups"
    ]
    both = client.get(
        SERIES, params=ask | {"run": [recorded.run_id for recorded in [*few, *recorded_runs]]}
    ).json()["groups"]
    assert [len(group["runs"]) for group in both] == [2, 6]
    assert both[1] == alone[0]
    (group,) = alone
    assert group["seeds"] == [0, 1, 2, 3, 4, 5]
    assert group["interval"] == interval_name(6, Spread("median", "ci95"))
    assert group["n"][0] == 6
    assert group["n"][-1] == 1
    assert group["low"][-1] is None
    assert np.all(np.array(group["low"][:5]) < np.array(group["median"][:5]))
    assert group["seed_values"] == []
    since = {"since_revision": group["revisions"]}
    new = client.get(SERIES, params=ask | {"run": group["runs"]} | since).json()["groups"][0]
    assert (new["reset"], new["first_bucket"], new["median"]) == (False, group["n_shown"], [])


def test_seed_group_has_one_run_of_each_seed(engine: Engine, client: Client) -> None:
    recorded_runs = [RecordedRun(engine, seed) for seed in (0, 0, 1)]
    for recorded in recorded_runs:
        recorded.append({METRICS[0]: 300})
    ask: dict[str, Any] = {"metric": METRICS[0][0], "group_by": "seed", "points": 64}
    ask["run"] = [recorded.run_id for recorded in recorded_runs]
    (group,) = client.get(SERIES, params=ask).json()["groups"]
    furthest = max(recorded_runs[:2], key=lambda run: (run.agent_steps, run.run_id))
    assert set(group["runs"]) == {furthest.run_id, recorded_runs[2].run_id}
    assert sorted(group["seeds"]) == [0, 1]


def test_seed_group_with_few_runs_has_their_values_instead_of_an_interval(
    engine: Engine, client: Client
) -> None:
    few = [RecordedRun(engine, seed) for seed in range(3)]
    for recorded in few:
        recorded.append({METRICS[0]: 300})
    ask: dict[str, Any] = {"metric": METRICS[0][0], "group_by": "seed", "points": 64}
    ask["run"] = [recorded.run_id for recorded in few]
    (group,) = client.get(SERIES, params=ask).json()["groups"]
    assert group["interval"] == interval_name(3, Spread("median", "ci95"))
    assert set(group["low"] + group["high"]) == {None}
    values = np.array(group["seed_values"], "f8")
    assert values.shape == (3, group["n_shown"])
    assert np.nanmedian(values, axis=0).tolist() == group["median"]
    few[1].append({METRICS[0]: 1})
    new = client.get(SERIES, params=ask | {"since_revision": group["revisions"]}).json()["groups"][0]
    assert new["first_bucket"] > 0
    assert {len(values) for values in new["seed_values"]} == {len(new["x"])}
    (deviation,) = client.get(SERIES, params=ask | {"interval": "sd"}).json()["groups"]
    assert (deviation["interval"], deviation["seed_values"]) == ("± 1 s.d.", [])
    assert deviation["low"][0] < deviation["mean"][0]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"points": 0}, "points"),
    ({"smooth": 1.0}, "smooth"),
    ({"smooth": "nan"}, "smooth"),
    ({"x": "time"}, "x"),
    ({"run": "nonsense"}, "run"),
    ({"run": []}, "run"),
    ({"metric": "a\0b"}, "metric"),
    ({"since_revision": [1, 2, 3]}, "since_revision"),
    ({"since_revision": -1}, "since_revision"),
    ({"group_by": "name"}, "group_by"),
    ({"interval": "ci50"}, "interval"),
]


def test_invalid_query_names_its_field(sqlite_service: RunningService) -> None:
    recorded, client = RecordedRun(sqlite_service.engine, 0), sqlite_service.client
    for change, field in WRONG:
        answer = client.get(SERIES, params={"run": recorded.run_id, "metric": "a"} | change)
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == [field]


@pytest.mark.parametrize("group_by", [None, "seed"])
def test_chart_response_matches_documented_schema(
    sqlite_service: RunningService, group_by: str | None
) -> None:
    recorded = RecordedRun(sqlite_service.engine, 0)
    recorded.append({METRICS[0]: 300})
    for smooth, since in ((0, None), (0.9, None), (0.9, recorded.revision)):
        ask: dict[str, Any] = {
            "run": recorded.run_id,
            "metric": METRICS[0][0],
            "points": 50,
            "smooth": smooth,
        }
        ask |= {"group_by": group_by} if group_by else {}
        ask |= {} if since is None else {"since_revision": since}
        answer = sqlite_service.client.get(SERIES, params=ask).json()
        # The response is not built from the models, so only this test ties them together.
        assert Chart.model_validate(answer).model_dump() == answer
        assert len(answer["groups" if group_by else "series"]) == 1


def test_chart_with_too_many_points_is_rejected(sqlite_service: RunningService) -> None:
    recorded, client = RecordedRun(sqlite_service.engine, 0), sqlite_service.client
    recorded.append({("a", str(at)): 1 for at in range(101)})
    ask: dict[str, Any] = {"run": recorded.run_id, "metric": "a", "points": 10_000}
    answer = client.get(SERIES, params=ask)
    assert answer.status_code == 422
    assert "101 series" in answer.json()["detail"]


def test_unknown_run_returns_404(client: Client) -> None:
    nobody = "0" * 26
    assert client.get(f"/api/v1/runs/{nobody}/series").status_code == 404
    assert client.get(f"/api/v1/runs/{nobody}/export").status_code == 404
    answer = client.get(SERIES, params={"run": nobody, "metric": "a"})
    assert answer.status_code == 404
    assert nobody in answer.json()["detail"]


def test_since_revision_beyond_current_resets_chart(engine: Engine, client: Client) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 5})
    ask: dict[str, Any] = {"run": recorded.run_id, "metric": METRICS[0][0], "since_revision": 10**6}
    (series,) = client.get(SERIES, params=ask).json()["series"]
    assert series["reset"]
    assert len(series["mean"]) == 5


@pytest.mark.parametrize(
    ("form", "begins"), [("csv", b'"metric","source"'), ("parquet", b"PAR1"), ("tensorboard", b"PK")]
)
def test_export_streams_every_point_in_each_format(
    engine: Engine, client: Client, form: str, begins: bytes
) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 70_000})
    add_attempt(engine, recorded.run_id, provenance=PROVENANCE.model_dump())
    answer = client.get(f"/api/v1/runs/{recorded.run_id}/export", params={"format": form})
    assert answer.status_code == 200
    assert answer.content.startswith(begins)
    assert recorded.run_id in answer.headers["content-disposition"]
    if form == "csv":
        header, *rows = csv.reader(io.StringIO(answer.text))
        assert len(rows) == 70_000
        [attempt] = json.loads(rows[0][header.index("provenance")])
        assert attempt == {"attempt": 1, "host": "a", **PROVENANCE.model_dump()}


def test_export_of_several_runs_is_one_file(engine: Engine, client: Client) -> None:
    runs = [RecordedRun(engine, seed) for seed in (1, 2)]
    for run in runs:
        run.append({METRICS[0]: 10})
    ask = {"run": [run.run_id for run in runs]}
    answer = client.get("/api/v1/runs/export", params=ask)
    assert answer.status_code == 200
    assert "2-runs.csv" in answer.headers["content-disposition"]
    assert len(answer.text.splitlines()) == 21
    assert client.get("/api/v1/runs/export", params={"run": "0" * 26}).status_code == 404
    assert client.get("/api/v1/runs/export").status_code == 422


def test_runs_that_match_a_filter_are_exported(engine: Engine, client: Client) -> None:
    runs = [RecordedRun(engine, seed) for seed in range(3)]
    for recorded in runs:
        recorded.append({METRICS[0]: 5})
    answer = client.get("/api/v1/runs/export", params={"filter": f"archived:false id!={runs[1].run_id}"})
    assert answer.status_code == 200, answer.text
    assert "callboard-2-runs.csv" in answer.headers["content-disposition"]
    rows = csv.DictReader(io.StringIO(answer.text))
    assert {row["run"] for row in rows} == {runs[0].run_id, runs[2].run_id}
    for bad in ({"filter": "tag:none"}, {"filter": "no_such:1"}, {"filter": "", "run": runs[0].run_id}):
        refused = client.get("/api/v1/runs/export", params=bad)
        assert refused.status_code == 422, bad


def test_fields_and_summaries_describe_settings_and_recorded_metrics(engine: Engine, client: Client) -> None:
    recorded = RecordedRun(engine, 0, {"group": "night", "tags": ["two words", "a"]})
    recorded.append({METRICS[0]: 100, METRICS[2]: 5})
    fields = {field["name"]: field for field in client.get("/api/v1/runs/fields").json()["items"]}
    assert fields["config.learning_rate"]["kind"] == "number"
    assert "nips" in fields["config.network"]["values"]
    assert fields["score"]["origin"] == "run"
    assert fields["tag"]["values"] == ["a", "two words"]
    assert fields["group"]["values"] == ["night"]
    assert {name for name in fields if fields[name]["origin"] == "metric"} == {METRICS[0][0]}
    ask = {"run": recorded.run_id, "metric": [METRICS[0][0], METRICS[2][0], "no/such"]}
    [summary] = client.get("/api/v1/runs/metrics", params=ask).json()["items"]
    values = [row[4] for row in recorded.live[METRICS[0]] if np.isfinite(row[4])]
    assert (summary["min"], summary["max"]) == (min(values), max(values))
    assert summary["best"] in (summary["min"], summary["max"])
    assert summary["mean"] == pytest.approx(float(np.mean(values)))


@pytest.mark.parametrize(
    "ask", [{"filter": "no/such>1"}, {"sort": "-no/such"}, {"sort": "tag"}, {"sort": "colour"}]
)
def test_unknown_metric_or_sort_field_is_refused(client: Client, ask: dict[str, str]) -> None:
    answer = client.get("/api/v1/runs", params=ask)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, next(iter(ask)))


def test_range_of_x_is_finer_and_counts_its_own_points(client: Client, engine: Engine) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 2000})
    ask: dict[str, Any] = {"run": recorded.run_id, "metric": METRICS[0][0], "points": 100}
    whole = client.get(SERIES, params=ask).json()["series"][0]
    low, high = whole["x"][50], whole["x"][53]
    zoomed = client.get(SERIES, params=ask | {"x_from": low, "x_to": high}).json()["series"][0]
    assert (whole["bucket_rows"], zoomed["bucket_rows"]) == (32, 2)
    assert zoomed["n_total"] < 200
    assert zoomed["x"][0] <= low
    assert zoomed["x"][-1] >= high


def test_window_is_a_round_share_of_what_the_runs_reached(client: Client, engine: Engine) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({METRICS[0]: 200})
    ask: dict[str, Any] = {"run": recorded.run_id, "metric": METRICS[0][0], "smoothing": "window"}

    def reach(agent_steps: int) -> None:
        with writing(engine) as session:
            session.get_one(Run, recorded.run_id).agent_steps = agent_steps

    reach(90_000)
    whole = client.get(SERIES, params=ask).json()
    assert whole["scales"] == [2000]
    known = {"since_revision": recorded.revision, "had_scale": 2000}
    assert not client.get(SERIES, params=ask | known).json()["series"][0]["reset"]
    reach(100_000)
    wider = client.get(SERIES, params=ask | known).json()
    assert (wider["scales"], wider["series"][0]["reset"]) == ([5000], True)
    given = client.get(SERIES, params=ask | known | {"scale": 300}).json()
    assert (given["scales"], given["series"][0]["reset"]) == ([300], False)
    assert client.get(SERIES, params={"run": recorded.run_id, "metric": METRICS[0][0]}).json()["scales"] == []


def test_window_of_a_run_does_not_depend_on_the_others(client: Client, engine: Engine) -> None:
    short, long = RecordedRun(engine, 0), RecordedRun(engine, 1)
    for recorded, n, agent_steps in ((short, 200, 20_000), (long, 2_000, 2_000_000)):
        recorded.append({METRICS[0]: n})
        with writing(engine) as session:
            session.get_one(Run, recorded.run_id).agent_steps = agent_steps
    ask: dict[str, Any] = {"metric": METRICS[0][0], "smoothing": "window"}
    alone = client.get(SERIES, params=ask | {"run": short.run_id}).json()
    beside = client.get(SERIES, params=ask | {"run": [short.run_id, long.run_id]}).json()
    assert beside["scales"][0] == alone["scales"][0] < beside["scales"][1]
    assert beside["series"][0] == alone["series"][0]
    figures = [
        client.get("/api/v1/figures/seed_curve", params={"run": runs, "metric": METRICS[0][0]}).json()
        for runs in ([short.run_id], [short.run_id, long.run_id])
    ]
    assert figures[1]["scales"] == beside["scales"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"x_from": 5, "x_to": 5}, "x_to"),
        ({"x_from": -1}, "x_from"),
        ({"x_to": "inf"}, "x_to"),
        ({"smoothing": "window", "had_scale": -1}, "had_scale"),
        ({"smoothing": "ema", "scale": 0}, "scale"),
        ({"interval": "se", "centre": "median"}, "interval"),
    ],
)
def test_wrong_range_smoothing_or_band_is_refused(
    client: Client, engine: Engine, wrong: dict[str, Any], field: str
) -> None:
    answer = client.get(
        SERIES, params={"run": RecordedRun(engine, 0).run_id, "metric": METRICS[0][0]} | wrong
    )
    assert answer.status_code == 422
    assert field in answer.text


def test_metrics_of_several_runs_are_listed_once(client: Client, engine: Engine) -> None:
    both, single = RecordedRun(engine, 0), RecordedRun(engine, 1)
    both.append({METRICS[0]: 3, METRICS[2]: 3})
    single.append({METRICS[0]: 3})
    items = client.get("/api/v1/metrics", params={"run": [both.run_id, single.run_id]}).json()["items"]
    assert {item["metric"]: item["n_runs"] for item in items} == {METRICS[0][0]: 2, METRICS[2][0]: 1}
