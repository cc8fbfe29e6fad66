"""A client that adds what is new to its figures has those of a client that loads them."""

from typing import Any

import numpy as np
import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from tests.backend.analysis.metrics.oracle import RecordedRun
from tests.backend.drawing.lines import numbers
from tests.support.service import RunningService

pytestmark = pytest.mark.service

RETURN, LOSS = ("rollout/episode_return", ""), ("loss/value", "")
FIGURES = ["learning_curve", "curve:loss/value", "seed_curve:loss/value"]


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def report(run: RecordedRun) -> None:
    """Let the run's row state its score and how far it got, which the automatic width depends on."""
    with writing(run.engine) as session:
        row = session.get_one(Run, run.run_id)
        row.agent_steps, row.episodes, row.score = run.agent_steps, run.agent_steps // 300, 1.0


class Page:
    """Follows the figures of some runs as `GET /figures` describes it."""

    def __init__(self, client: Client, runs: list[str], path: str = "", **more: Any) -> None:
        self._client, self._path = client, path
        self._query: dict[str, Any] = {"run": runs, "figure": FIGURES, **more}
        self._items = self._load()
        self.n_whole = 1

    def _load(self, **more: Any) -> list[dict[str, Any]]:
        query = {name: value for name, value in (self._query | more).items() if value is not None}
        answer = self._client.get(f"/api/v1/figures{self._path}", params=query)
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = [answer.json()] if self._path else answer.json()["items"]
        return items

    def update(self) -> None:
        """Ask for what is new, and add it."""
        had = {"since_revision": self._items[0]["revisions"], "layout": True}
        updates = self._load(**had, had_scale=self._items[0]["scales"])
        figures = [_added(item, update) for item, update in zip(self._items, updates, strict=True)]
        if None in figures:
            self.n_whole += 1
            self._items = self._load()
        else:
            self._items = [figure for figure in figures if figure is not None]

    @property
    def shown(self) -> list[Any]:
        return [_shown(item) for item in self._items]

    @property
    def expected(self) -> list[Any]:
        """As a client without the figures gets them."""
        return [_shown(item) for item in self._load()]


def _points(trace: dict[str, Any]) -> dict[str, list[Any]]:
    """The numbers of a trace, by name, with the bucket of each point."""
    meta = {
        name: values
        for name, values in trace.get("meta", {}).items()
        if name in ("low", "high", "n", "bucket")
    }
    named = {name: trace[name] for name in ("x", "y", "customdata") if name in trace} | meta
    points = {name: numbers(values) for name, values in named.items()}
    first = trace.get("from", 0)
    return {"bucket": list(range(first, first + len(points.get("x", []))))} | points


def _added(figure: dict[str, Any], update: dict[str, Any]) -> dict[str, Any] | None:
    growing = {trace["uid"]: trace for trace in figure["data"] if "uid" in trace}
    for new in update["data"]:
        uid = new.get("uid")
        if uid is None:
            continue
        if uid not in growing:
            return None
        had = growing[uid]
        if "type" in new:
            growing[uid] = new
        elif "from" in new:
            before, after = _points(had), _points(new)
            kept = [bucket < new["from"] for bucket in before["bucket"]]
            joined = {
                name: [value for value, keep in zip(values, kept, strict=True) if keep] + after.get(name, [])
                for name, values in before.items()
            }
            tails = ("x", "y", "customdata", "meta", "from")
            changed = {name: value for name, value in new.items() if name not in tails}
            meta = {name: joined.pop(name) for name in ("low", "high", "n", "bucket") if name in joined}
            growing[uid] = had | joined | changed | {"meta": had["meta"] | meta}
        else:
            growing[uid] = had | new
    others = [trace for trace in update["data"] if "uid" not in trace]
    return update | {"data": [*growing.values(), *others]}


def _shown(figure: dict[str, Any]) -> dict[str, Any]:
    """What one sees: of an outline the corners, since an update adds a part of its own to it."""
    traces: dict[str, Any] = {}
    for trace in figure["data"]:
        if trace["meta"]["kind"] == "legend":  # once it is there, it stays until the figure is loaded anew
            continue
        points = _points(trace)
        del points["bucket"]
        look = {name: trace.get(name) for name in ("name", "line", "mode", "showlegend")}
        if trace.get("fill") == "toself":
            traces[trace["uid"]] = look, set(zip(points["x"], points["y"], strict=True)) - {(None, None)}
        else:
            traces[trace.get("uid", trace["name"])] = look, points
    return {name: figure[name] for name in ("layout", "n_total", "n_shown", "bands")} | {"data": traces}


@pytest.mark.parametrize(
    ("x", "more"),
    [
        ("agent_steps", {}),
        ("episodes", {}),
        ("agent_steps", {"smoothing": "window", "scale": 20_000, "band": "sd"}),
        ("episodes", {"smooth": 0.9, "band": "min_max"}),
    ],
    ids=["default", "episodes", "window", "points"],
)
def test_updated_figures_equal_loaded_ones(
    engine: Engine, client: Client, x: str, more: dict[str, Any]
) -> None:
    """While series grow past a doubling of the buckets, merge at equal x (episodes) and are cut."""
    runs = [RecordedRun(engine, seed) for seed in range(2)]
    for run in runs:
        run.append({RETURN: 60, LOSS: 700})
    page = Page(client, [run.run_id for run in runs], x=x, points=100, **more)
    for step, n in enumerate((1, 3, 40, 0, 7, 130, 9, 64, 2)):
        for run in runs[: 1 + step % 2]:
            run.append({RETURN: n, LOSS: 3 * n})
        if step == 6:
            runs[0].cut(0.5)
        for run in runs:
            report(run)
        page.update()
        assert page.shown == page.expected
    assert page.n_whole == 1


def _drawn(figures: list[Any]) -> list[Any]:
    """The points of the traces without gaps, of which an update may have one more between two stretches."""
    return [
        {
            uid: points
            if isinstance(points, set)
            else [row for row in zip(points["x"], points["y"], strict=True) if row[1] is not None]
            for uid, (_, points) in figure["data"].items()
        }
        for figure in figures
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"band": "min_max", "smooth": 0.9, "x": "episodes"},
        {"band": "min_max", "smooth": 0},
        {"group_by": "seed"},
    ],
    ids=["episodes", "plain", "groups"],
)
def test_updated_lines_equal_loaded_ones(engine: Engine, client: Client, more: dict[str, Any]) -> None:
    runs = [RecordedRun(engine, seed) for seed in range(2)]
    for run in runs:
        run.append({RETURN: 60, LOSS: 700})
    asked: dict[str, Any] = {
        "figure": None,
        "metric": [RETURN[0], LOSS[0]],
        "formula": "loss/value * 2",
        "points": 100,
    }
    # A panel: elsewhere the layout counts what is not finite, and the whole figure is sent.
    page = Page(client, [run.run_id for run in runs], "/lines", embedded=True, **asked, **more)
    for step, n in enumerate((1, 3, 40, 0, 130, 9)):
        for run in runs[: 1 + step % 2]:
            run.append({RETURN: n, LOSS: 3 * n})
        if step == 4:
            runs[0].cut(0.5)
        for run in runs:
            report(run)
        page.update()
        assert _drawn(page.shown) == _drawn(page.expected)
    assert page.n_whole == 1


def test_figure_with_a_new_series_is_loaded_anew(engine: Engine, client: Client) -> None:
    first, second = RecordedRun(engine, 0), RecordedRun(engine, 1)
    first.append({RETURN: 20, LOSS: 5})
    page = Page(client, [first.run_id, second.run_id])
    second.append({RETURN: 10, LOSS: 10})
    page.update()
    assert page.n_whole == 2
    assert page.shown == page.expected


def test_curve_over_seeds_has_nothing_of_a_run_that_no_longer_counts(engine: Engine, client: Client) -> None:
    """Of runs with equal seeds the one that trained furthest counts."""
    former, latter, *others = [RecordedRun(engine, seed) for seed in (0, 0, 1, 2, 3, 4)]
    latter.rng = np.random.default_rng(5)
    for run, n in ((former, 60), (latter, 55), *((other, 65) for other in others)):
        run.append({LOSS: n})
        report(run)
    runs = [run.run_id for run in (former, latter, *others)]
    page = Page(client, runs, figure="seed_curve:loss/value", smooth=0, embedded=True)
    latter.append({LOSS: 12})
    report(latter)
    page.update()
    assert page.n_whole == 2
    assert page.shown == page.expected


def test_update_without_layout_has_growing_traces_alone(engine: Engine, client: Client) -> None:
    run = RecordedRun(engine, 0)
    run.append({RETURN: 30})
    run.append({RETURN: 2})
    query: dict[str, Any] = {"run": run.run_id, "since_revision": run.revision - 1}
    assert "layout" in client.get("/api/v1/figures/learning_curve", params=query).json()
    query["had_scale"] = client.get("/api/v1/figures/learning_curve", params=query).json()["scales"]
    update = client.get("/api/v1/figures/learning_curve", params=query).json()
    assert "layout" not in update
    assert {trace["from"] for trace in update["data"]} == {30}
    assert update["revisions"] == [run.revision]
    query["since_revision"] = run.revision
    assert client.get("/api/v1/figures/learning_curve", params=query).json()["data"] == []


@pytest.mark.parametrize("name", ["nonsense", "curve", "curve:", "learning_curve:x", "diagnostic:x"])
def test_unknown_figure_is_refused(engine: Engine, client: Client, name: str) -> None:
    run = RecordedRun(engine, 0)
    answer = client.get("/api/v1/figures", params={"run": run.run_id, "figure": name})
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["figure"]
