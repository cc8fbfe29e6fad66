from typing import Any

import pytest
from httpx import Client
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from backend.drawing.palette import look
from backend.drawing.scatter import Dot, log_ticks, scatter_figure
from backend.runs.runs.groups import group_key
from backend.specs.states import RunState
from tests.backend.drawing.lines import valid
from tests.support.rows import make_run
from tests.support.service import RunningService

IDS = ["0" * 25 + letter for letter in "ABCD"]


def test_runs_are_dots_with_the_median_of_equal_settings() -> None:
    dots = [Dot(IDS[0], "a", 0.01, 3.0), Dot(IDS[1], "b", 0.0001, 1.0), Dot(IDS[2], "<c>", 0.01, 5.0)]
    figure = valid(scatter_figure(dots, x="config.learning_rate", y="Score", title="t"))
    runs, medians = figure.data
    assert (list(runs.x), list(runs.y)) == ([0.0001, 0.01, 0.01], [1.0, 3.0, 5.0])
    assert runs.text[2] == "&lt;c&gt;"
    assert (list(medians.x), list(medians.y), list(medians.text)) == ([0.01], [4.0], ["median of 2 runs"])
    assert figure.layout.xaxis.type == "log"
    assert list(figure.layout.xaxis.tickvals) == [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01]
    assert list(figure.layout.xaxis.ticktext)[1:4] == ["2e−4", "5e−4", "0.001"]
    assert figure.layout.xaxis.title.text == "config.learning_rate"


def test_settings_are_written_as_in_tables() -> None:
    values = (10_000.0, 100_000.0, 1_000_000.0)
    dots = [Dot(id_, "a", value, 0.0) for id_, value in zip(IDS, values, strict=False)]
    axis = valid(scatter_figure(dots, x="config.replay_capacity", y="Score", title="t")).layout.xaxis
    assert {"10.0k", "100k", "1.0M"} <= set(axis.ticktext)


def test_medians_do_not_mix_environments() -> None:
    tasks = ["PAAC on Pong", "PAAC on Breakout", "PAAC on Pong", "PAAC on Breakout"]
    dots = [
        Dot(id_, "a", 1.0, float(y), task, task) for y, (id_, task) in enumerate(zip(IDS, tasks, strict=True))
    ]
    _, medians = valid(scatter_figure(dots, x="x", y="y", title="t")).data
    assert list(zip(medians.x, medians.y, medians.text, strict=True)) == [
        (1.0, 2.0, "median of 2 runs, PAAC on Breakout"),
        (1.0, 1.0, "median of 2 runs, PAAC on Pong"),
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [((1, 19), "linear"), ((0, 100), "linear"), ((1, 20), "log"), ((1, "auto"), "category")],
)
def test_axis_is_logarithmic_only_over_a_wide_positive_range(
    values: tuple[float | str, ...], kind: str
) -> None:
    dots = [Dot(id_, "a", value, 0.0) for id_, value in zip(IDS, values, strict=False)]
    assert valid(scatter_figure(dots, x="x", y="y", title="t")).layout.xaxis.type == kind


def test_figure_without_runs_is_valid() -> None:
    assert len(valid(scatter_figure([], x="x", y="y", title="t")).data[0].x) == 0


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


@pytest.mark.service
def test_scatter_of_runs_over_rest(engine: Engine, client: Client) -> None:
    ids = []
    for seed, rate in ((1, 0.001), (1, 0.1), (2, 0.1)):
        run = make_run(engine, RunState.FINISHED, seed=seed, config={"learning_rate": rate})
        with writing(engine) as session:
            session.get_one(Run, run.id).score = 100.0 * rate + seed
        ids.append(run.id)
    unfinished = make_run(engine, seed=9)
    ask = {"run": [*ids, unfinished.id], "x": "config.learning_rate"}
    figure = client.get("/api/v1/figures/scatter", params=ask).json()
    assert figure["layout"]["xaxis"]["title"]["text"] == "Learning rate"
    assert "by Learning rate," in figure["layout"]["title"]["text"]
    runs, medians = figure["data"]
    assert (runs["x"], runs["y"]) == ([0.001, 0.1, 0.1], [1.1, 11.0, 12.0])
    assert medians["y"] == [11.5]
    by_seed = client.get("/api/v1/figures/scatter", params=ask | {"x": "seed"}).json()["data"][0]
    assert by_seed["x"] == [1, 1, 2]
    by_switch = client.get("/api/v1/figures/scatter", params=ask | {"x": "config.standardise"}).json()
    assert set(by_switch["data"][0]["x"]) <= {"True", "False"}, "Plotly places no dot at a truth value"
    assert by_switch["layout"]["xaxis"]["type"] == "category"


@pytest.mark.service
def test_scatter_over_seeds_has_the_styles_of_the_groups(engine: Engine, client: Client) -> None:
    ids = []
    for seed, rate in ((1, 0.001), (2, 0.001), (1, 0.1)):
        run = make_run(engine, RunState.FINISHED, seed=seed, config={"learning_rate": rate})
        with writing(engine) as session:
            session.get_one(Run, run.id).score = float(seed)
        ids.append(run.id)
    ask = {"run": ids, "x": "config.learning_rate", "group_by": "seed"}

    def colours_of(params: dict[str, Any]) -> list[str]:
        figure = client.get("/api/v1/figures/scatter", params=params).json()
        return list(figure["data"][0]["marker"]["color"])

    first, second = (look(style, "light").colour for style in (0, 1))
    assert colours_of(ask) == [first, first, second]
    wanted = f"{group_key(run)}:3"
    assert colours_of(ask | {"group_style": wanted}) == [first, first, look(3, "light").colour]


@pytest.mark.service
def test_scatter_has_a_median_of_each_environment_configuration(engine: Engine, client: Client) -> None:
    ids = []
    settings: list[dict[str, Any]] = [{}, {}, {"sticky_actions": 0.25}, {"sticky_actions": 0.25}]
    for score, changes in enumerate(settings):
        run = make_run(
            engine, RunState.FINISHED, environment="ALE/Pong-v5", seed=score, environment_config=changes
        )
        with writing(engine) as session:
            session.get_one(Run, run.id).score = float(score)
        ids.append(run.id)
    ask = {"run": ids, "x": "config.learning_rate"}
    _, medians = client.get("/api/v1/figures/scatter", params=ask).json()["data"]
    assert dict(zip(medians["text"], medians["y"], strict=True)) == {
        "median of 2 runs, sticky_actions 0": 0.5,
        "median of 2 runs, sticky_actions 0.25": 2.5,
    }


@pytest.mark.service
@pytest.mark.parametrize("x", ["config.learning_rat", "loss/value", ""])
def test_scatter_of_an_unknown_setting_is_refused(engine: Engine, client: Client, x: str) -> None:
    run = make_run(engine)
    refused = client.get("/api/v1/figures/scatter", params={"run": run.id, "x": x})
    assert refused.status_code == 422
    assert "x" in refused.text


@pytest.mark.parametrize(
    ("tried", "ticks"),
    [
        ([0.0003, 0.003, 0.03], [0.0003, 0.001, 0.003, 0.01, 0.03]),
        ([1.0, 20.0], [1, 2, 5, 10, 20]),
        ([1e-6, 1e-2], [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]),
        ([0.0005 * 1.3**n for n in range(14)], [0.0005, 0.001, 0.002, 0.005, 0.0005 * 1.3**13]),
    ],
)
def test_log_axis_has_what_was_tried_and_round_numbers_between(
    tried: list[float], ticks: list[float]
) -> None:
    assert log_ticks(tried) == pytest.approx(ticks)


@given(st.lists(st.floats(1e-8, 1e8), min_size=1, max_size=40, unique=True))
def test_log_ticks_include_few_tried_values_and_stay_in_their_range(tried: list[float]) -> None:
    ordered = sorted(tried)
    ticks = log_ticks(ordered)
    assert ticks == sorted(set(ticks))
    assert ordered[0] == ticks[0]
    assert ordered[-1] == ticks[-1]
    if len(ordered) <= 12:
        assert set(ordered) <= set(ticks)
