import math
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import pytest
from httpx import Client
from sqlalchemy import Engine, update

from backend.analysis.figures import lines
from backend.analysis.metrics import computed
from backend.analysis.metrics import repository as metrics
from backend.db import Series
from backend.db.engine import writing
from backend.runs.runs import service as runs
from backend.specs.events import PointsEvent
from tests.backend.drawing.lines import numbers
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

LINES = "/api/v1/figures/lines"
Points = Sequence[tuple[int, float]]


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def make_recorded(engine: Engine, of: Mapping[str, Points], **changes: Any) -> str:
    """A run with these points (agent steps, value) by metric; a second for each 100 agent steps."""
    run = make_run(engine, **changes)
    add(engine, run.id, of)
    return run.id


def add(engine: Engine, run_id: str, of: Mapping[str, Points]) -> None:
    with writing(engine) as session:
        revision = runs.bump_revision(session, run_id, ["series"])
        row = runs.get(session, run_id)
        row.agent_steps = max([row.agent_steps, *(step for points in of.values() for step, _ in points)])
        row.wall_time_s = row.agent_steps / 100
        events = [
            PointsEvent(
                metric=metric,
                source="",
                agent_steps=[step for step, _ in points],
                frames=[4 * step for step, _ in points],
                wall_time_s=[step / 100 for step, _ in points],
                episodes=[step // 10 for step, _ in points],
                value=[value for _, value in points],
            )
            for metric, points in of.items()
        ]
        metrics.append(session, run_id, 1, revision, events)


A: Points = [(100, 4.0), (300, 6.0), (500, -2.0)]
B: Points = [(200, 2.0), (300, 0.0), (600, 1.0)]


def drawn(answer: dict[str, Any]) -> dict[str, tuple[list[Any], list[Any]]]:
    """The lines by name."""
    go.Figure({"data": answer["data"], "layout": answer.get("layout")})  # refuses what Plotly does not know
    return {
        trace["name"]: (numbers(trace["x"]), numbers(trace["y"]))
        for trace in answer["data"]
        if trace["meta"]["kind"] == "line"
    }


def test_formula_is_evaluated_at_the_agent_steps_of_its_metrics(client: Client, engine: Engine) -> None:
    run = make_recorded(engine, {"a": A, "b/c": B})
    ask: dict[str, Any] = {"run": run, "formula": ["a / b/c", "diff(a)"], "metric": "a", "smooth": 0}
    answer = client.get(LINES, params=ask).json()
    assert drawn(answer) == {
        "a": ([100, 300, 500], [4.0, 6.0, -2.0]),
        "a / b/c": ([200, 300, 500, 600], [2.0, None, None, -2.0]),
        "diff(a)": ([100, 300, 500], [None, 2.0, -8.0]),
    }
    assert (answer["missing"], answer["x"]) == ([], "agent_steps")
    by_time = client.get(LINES, params=ask | {"x": "wall_time_s"}).json()
    assert drawn(by_time)["a / b/c"] == ([2.0, 3.0, 5.0, 6.0], [2.0, None, None, -2.0])
    part = client.get(LINES, params=ask | {"x_from": 400, "x_to": 500}).json()
    assert drawn(part)["a / b/c"] == ([300, 500, 600], [None, None, -2.0])


def test_metric_alone_is_drawn_as_its_curve(client: Client, engine: Engine) -> None:
    points = [(10 * n, math.sin(n)) for n in range(1, 3000)]
    run = make_recorded(engine, {"loss/value": points})
    for more in ({}, {"smooth": 0.9}, {"smoothing": "ema", "scale": 500}, {"x_from": 5000, "x_to": 9000}):
        ask: dict[str, Any] = {"run": run, "points": 200} | more
        curve = client.get("/api/v1/figures/curve", params=ask | {"metric": "loss/value"}).json()
        [expected] = drawn(curve).values()
        [as_metric] = drawn(client.get(LINES, params=ask | {"metric": "loss/value"}).json()).values()
        assert as_metric == expected
        if "x_from" in more:
            continue  # a formula has only the points of the range, a metric whole roll-ups of them
        [as_formula] = drawn(client.get(LINES, params=ask | {"formula": "loss/value * 1"}).json()).values()
        assert as_formula[0] == pytest.approx(expected[0])
        assert as_formula[1] == pytest.approx(expected[1])


def test_any_metric_is_an_axis(client: Client, engine: Engine) -> None:
    run = make_recorded(engine, {"a": A, "b": B})
    ask: dict[str, Any] = {"run": run, "metric": "a", "x_metric": "b", "smooth": 0}
    answer = client.get(LINES, params=ask).json()
    # At 200, 300, 500 and 600.
    assert drawn(answer) == {"a": ([2.0, 0.0, 0.0, 1.0], [4.0, 6.0, -2.0, -2.0])}
    assert (answer["x"], answer["layout"]["xaxis"]["title"]["text"]) == (None, "B")
    refused = client.get(LINES, params=ask | {"x": "frames"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "x")
    refused = client.get(LINES, params=ask | {"x_to": 3})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "x_from")


def test_groups_have_the_mean_of_their_seeds(client: Client, engine: Engine) -> None:
    seeds = [
        make_recorded(
            engine, {"a": [(64, 1.0 + seed), (128, 3.0 + seed)], "b": [(64, 2.0), (128, 4.0)]}, seed=seed
        )
        for seed in (0, 1)
    ]
    other = make_recorded(
        engine, {"a": [(64, 8.0), (128, 8.0)], "b": [(64, 2.0), (128, 4.0)]}, config={"learning_rate": 0.01}
    )
    ask: dict[str, Any] = {
        "run": [*seeds, other],
        "formula": ["a / b", "2 * b"],
        "group_by": "seed",
        "smooth": 0,
        "points": 2,
    }
    answer = client.get(LINES, params=ask).json()
    means = {name: y for name, (x, y) in drawn(answer).items() if x == [64.0, 128.0]}
    assert [*means.values()] == [[0.75, 0.875], [4.0, 8.0], [4.0, 2.0], [4.0, 8.0]]
    lines = [trace for trace in answer["data"] if trace["meta"]["kind"] == "line"]
    colours = [(trace["line"]["color"], trace["line"].get("dash", "solid")) for trace in lines]
    assert len(set(colours)) == 4
    assert colours[0][0] == colours[1][0] != colours[2][0] == colours[3][0]
    assert [dash for _, dash in colours] == ["solid", "dash", "solid", "dash"]
    across = client.get(LINES, params=ask | {"formula": "a", "x_metric": "b"}).json()
    assert [x for x, _ in drawn(across).values()] == [[2.0, 4.0], [2.0, 4.0]]


def test_lines_of_one_run_have_colours_of_their_own(client: Client, engine: Engine) -> None:
    run = make_recorded(engine, {"a": A, "b": B})
    answer = client.get(LINES, params={"run": run, "metric": ["a", "b"]}).json()
    lines = [trace["line"] for trace in answer["data"] if trace["meta"]["kind"] == "line"]
    assert len({line["color"] for line in lines}) == 2
    assert not any("dash" in line for line in lines)


def test_what_runs_lack_is_named(client: Client, engine: Engine) -> None:
    both, single = make_recorded(engine, {"a": A, "b": B}), make_recorded(engine, {"a": A}, seed=1)
    ask: dict[str, Any] = {"run": [both, single], "metric": ["a", "nothing"], "formula": "a * b"}
    answer = client.get(LINES, params=ask).json()
    assert answer["missing"] == [
        {"line": "nothing", "metrics": ["nothing"], "n_runs": 2, "is_empty": True},
        {"line": "a * b", "metrics": ["b"], "n_runs": 1, "is_empty": False},
    ]
    assert [text["text"] for text in answer["layout"]["annotations"]] == ["No values of nothing"]
    assert len(drawn(answer)) == 3


@pytest.mark.parametrize(
    ("ask", "field", "why"),
    [
        (
            {"formula": ["a", "sin(a)"]},
            "formula.1",
            'at character 1: unknown function "sin": use ema, diff or log',
        ),
        ({"formula": "a" * 201}, "formula.0", "at most 200"),
        ({"formula": "(" * 21 + "a" + ")" * 21}, "formula.0", "too deep"),
        ({}, "metric", "at least one"),
        (
            {"metric": ["a", "b", "c", "d", "e", "f"], "formula": ["-a", "-b", "-c", "-d", "-e"]},
            "metric",
            "at most 10",
        ),
    ],
)
def test_wrong_request_is_refused_by_its_field(
    client: Client, engine: Engine, ask: dict[str, Any], field: str, why: str
) -> None:
    refused = client.get(LINES, params=ask | {"run": make_run(engine).id})
    [problem] = refused.json()["errors"]
    assert (refused.status_code, problem["field"]) == (422, field)
    assert why in problem["message"]


def test_client_gets_nothing_or_whole_formulas(client: Client, engine: Engine) -> None:
    run = make_recorded(engine, {"a": A})
    ask: dict[str, Any] = {"run": run, "formula": "a * 2", "smooth": 0}
    whole = client.get(LINES, params=ask).json()
    had = ask | {"since_revision": whole["revisions"]}
    nothing = client.get(LINES, params=had).json()
    assert (nothing["data"], nothing["revisions"], "layout" in nothing) == ([], whole["revisions"], False)
    add(engine, run, {"a": [(700, 1.0)]})
    later = client.get(LINES, params=had).json()
    assert drawn(later) == {"a * 2": ([100, 300, 500, 700], [8.0, 12.0, -4.0, 2.0])}


def test_lines_are_exported(client: Client, engine: Engine) -> None:
    ids = [make_recorded(engine, {"a": A, "b": B}, seed=seed) for seed in (0, 1)]
    ask: dict[str, Any] = {
        "run": ids,
        "formula": ["a / b", "a", "b", "-a", "-b", "a-b", "a+b", "a*b"],
        "smooth": 0,
    }
    table = client.get(LINES, params=ask | {"format": "csv"}).text.splitlines()
    assert any(row.startswith('1,"seed 0, a / b",line,') for row in table)
    script = client.get(LINES, params=ask | {"format": "matplotlib"}).text
    compile(script, "lines.py", "exec")
    assert "(0, (5.0, 1.0, 1.0, 1.0, 1.0, 1.0))" in script
    assert "a / b" in client.get(LINES, params=ask | {"format": "caption"}).text


def test_metric_of_the_axis_is_smoothed_as_the_others(client: Client, engine: Engine) -> None:
    steps = range(10, 210, 10)
    points = {name: [(step, float(step % n)) for step in steps] for name, n in (("a", 40), ("b", 30))}
    run = make_recorded(engine, points)
    ask: dict[str, Any] = {"run": run, "metric": "a", "x_metric": "b", "smoothing": "window", "scale": 40}
    [(x, y)] = drawn(client.get(LINES, params=ask).json()).values()
    windows = [[step for step in steps if last - 40 < step <= last] for last in steps]
    means = {
        name: [sum(float(step % n) for step in window) / len(window) for window in windows]
        for name, n in (("a", 40), ("b", 30))
    }
    assert x == pytest.approx(means["b"])
    assert y == pytest.approx(means["a"])


def test_range_has_no_more_points_than_asked_for(client: Client, engine: Engine) -> None:
    run = make_recorded(engine, {"a": [(step, 1.0) for step in range(1, 1000)]})
    for low in range(300, 320, 3):
        ask: dict[str, Any] = {"run": run, "formula": "-a", "smooth": 0, "points": 8}
        answer = client.get(LINES, params=ask | {"x_from": low, "x_to": low + 31}).json()
        [(x, _)] = drawn(answer).values()
        assert len(x) <= 8
        assert x[-1] >= low + 31


def test_series_that_count_other_steps_enter_no_formula_together(client: Client, engine: Engine) -> None:
    run = make_recorded(engine, {"a": A, "b": B})
    with writing(engine) as session:
        session.execute(update(Series).where(Series.metric == "b").values(step_unit="seconds"))
    answer = client.get(LINES, params={"run": run, "formula": "a * b"}).json()
    assert answer["missing"] == [{"line": "a * b", "metrics": ["b"], "n_runs": 1, "is_empty": True}]


def test_too_many_series_for_formulas_are_refused(
    client: Client, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_SERIES", 2)
    ids = [make_recorded(engine, {"a": A, "b": B}, seed=seed) for seed in (0, 1)]
    assert client.get(LINES, params={"run": ids, "formula": "-a"}).status_code == 200
    assert client.get(LINES, params={"run": ids, "metric": ["a", "b"]}).status_code == 200
    refused = client.get(LINES, params={"run": ids, "formula": "a - b"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "run")
    assert "4 series enter the formulas: at most 2" in refused.text


def test_formula_of_a_long_series_is_of_means_of_its_points(
    client: Client, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [(step, float(step % 5)) for step in range(1, 2001)]
    run = make_recorded(engine, {"a": points, "b": points[:3]})
    ask: dict[str, Any] = {"run": run, "formula": ["-a", "-b"], "smooth": 0, "points": 10_000}
    monkeypatch.setattr(computed, "FINE_BUCKETS", 500)
    curves = drawn(client.get(LINES, params=ask).json())
    assert curves["-a"][1] == [-sum(float(s % 5) for s in range(i, i + 4)) / 4 for i in range(1, 2001, 4)]
    assert curves["-b"] == ([1, 2, 3], [-1.0, -2.0, -3.0])
