import itertools
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from backend.specs.states import RunState
from tests.backend.analysis.comparisons.test_endpoints import make_scored_run, two_rates
from tests.support.service import RunningService

pytestmark = pytest.mark.service

SCORES = "/api/v1/figures/scores"


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def make_grid(engine: Engine, seeds: Sequence[int] = (0, 1)) -> list[str]:
    """Learning rates of 0.1 and 0.01 with entropies of 0 and 0.5; the former alone matter."""
    return [
        make_scored_run(
            engine,
            [1000 * rate + seed] * 100,
            seed=seed,
            config={"learning_rate": rate, "beta": entropy},
        )
        for rate, entropy, seed in itertools.product((0.01, 0.1), (0.0, 0.5), seeds)
    ]


def ask(client: Client, runs: Sequence[str], kind: str, **more: Any) -> dict[str, Any]:
    response = client.get(SCORES, params={"run": runs, "kind": kind} | more)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    go.Figure({"data": answer["data"], "layout": answer["layout"]})  # refuses what Plotly does not know
    return answer


def test_bars_have_the_medians_and_intervals_of_the_comparison(client: Client, engine: Engine) -> None:
    good, bad = two_rates(engine, 5)
    answer = ask(client, bad + good, "bars")
    groups = client.get("/api/v1/comparisons", params={"run": bad + good}).json()["groups"]
    [bars] = answer["data"]
    assert bars["y"] == ["lr 0.01", "lr 0.1"]  # the best first, from the top
    assert answer["layout"]["yaxis"]["categoryarray"] == ["lr 0.1", "lr 0.01"]
    by_id = {group["id"]: group["median"] for group in groups}
    medians = [by_id[id_] for id_ in bars["customdata"]]
    assert bars["x"] == [median["value"] for median in medians]
    ends = [
        (x - below, x + above)
        for x, below, above in zip(
            bars["x"], bars["error_x"]["arrayminus"], bars["error_x"]["array"], strict=True
        )
    ]
    assert ends == [(median["low"], median["high"]) for median in medians]
    curves = client.get("/api/v1/figures/seed_curve", params={"run": bad + good}).json()["data"]
    colours = {t["meta"]["group"]: t["line"]["color"] for t in curves if t["meta"]["kind"] == "line"}
    assert bars["marker"]["color"] == [colours[id_] for id_ in bars["customdata"]]
    assert (answer["n_runs"], answer["n_left_out"], answer["notes"]) == (10, 0, [])


def test_failed_seed_is_said_and_changes_no_other_config(client: Client, engine: Engine) -> None:
    good, bad = two_rates(engine, 3)
    with writing(engine) as session:
        for run in [*good, *bad]:
            session.get_one(Run, run).state = RunState.FINISHED
    before = ask(client, good + bad, "strips", at="end")
    with writing(engine) as session:
        session.get_one(Run, good[0]).state = RunState.FAILED
    after = ask(client, good + bad, "strips", at="end")

    def of(answer: dict[str, Any], name: str) -> list[tuple[float, str]]:
        seeds = next(trace for trace in answer["data"] if trace["meta"]["kind"] == "seed")
        rows = zip(seeds["x"], seeds["y"], seeds["marker"]["symbol"], strict=True)
        return [(x, symbol) for x, y, symbol in rows if y == name]

    assert of(after, "lr 0.1") == of(before, "lr 0.1") == [(50.0 + n, "circle") for n in range(3)]
    assert of(after, "lr 0.01 (2 of 3 finished)") == [
        (200.0, "circle-open"), (201.0, "circle"), (202.0, "circle")
    ]  # fmt: skip
    assert after["layout"]["yaxis"]["categoryarray"] == ["lr 0.01 (2 of 3 finished)", "lr 0.1"]
    assert after["notes"] == [
        "1 of 2 configs with runs that did not finish, placed last",
        "1 run left out: failed, was lost or was stopped before",
    ]
    bars = ask(client, good + bad, "bars", at="end")["data"]
    assert [("pattern" in trace["marker"], trace["y"]) for trace in bars] == [
        (False, ["lr 0.1"]),
        (True, ["lr 0.01 (2 of 3 finished)"]),
    ]


def test_strips_over_a_setting_join_the_interquartile_means(client: Client, engine: Engine) -> None:
    good, bad = two_rates(engine, 3)
    answer = ask(client, good + bad, "strips", setting="config.learning_rate")
    seeds, centres = answer["data"]
    assert sorted(zip(seeds["x"], seeds["y"], seeds["customdata"], strict=True)) == sorted(
        [(0.01, 200.0 + n, run) for n, run in enumerate(good)]
        + [(0.1, 50.0 + n, run) for n, run in enumerate(bad)]
    )
    assert (centres["x"], centres["y"], centres["mode"]) == ([0.01, 0.1], [201.0, 51.0], "lines+markers")


def test_heat_map_has_the_interquartile_mean_of_each_cell(client: Client, engine: Engine) -> None:
    runs = make_grid(engine)
    names = {"setting": "config.learning_rate", "other_setting": "config.beta"}
    [cells] = ask(client, runs, "heatmap", **names)["data"]
    assert (cells["x"], cells["y"]) == (["0.01", "0.1"], ["0", "0.5"])
    assert cells["z"] == [[10.5, 100.5], [10.5, 100.5]]
    assert cells["text"][0][0] == "10.5<br>n = 2"
    pooled = ask(client, runs, "heatmap", setting="config.learning_rate", other_setting="algorithm")
    assert pooled["data"][0]["text"] == [["10.5<br>n = 4, 2 configs", "100.5<br>n = 4, 2 configs"]]
    assert pooled["notes"] == ["cells of several configs have the interquartile mean over all their seeds"]


def test_importance_has_the_seed_as_a_bar(client: Client, engine: Engine) -> None:
    answer = ask(client, make_grid(engine), "importance")
    shares = {share["title"]: share["share"] for share in answer["shares"]}
    assert [*shares] == ["Learning rate", "Entropy weight", "Combinations of settings", "Seed"]
    assert sum(shares.values()) == pytest.approx(1)
    # 1/2 within each config; 7 times that of the sum of squares, which is 8 times 45 squared and 2.
    assert shares["Seed"] == pytest.approx(3.5 / (8 * 45**2 + 2))
    assert answer["data"][0]["x"] == [*shares.values()]
    assert answer["shares"][0]["settings"] == ["config.learning_rate"]


def test_importance_says_when_there_are_too_few_runs(client: Client, engine: Engine) -> None:
    answer = ask(client, make_grid(engine, [0]), "importance")
    assert (answer["data"], answer["shares"]) == ([], [])
    assert answer["notes"][-1].startswith("Too few runs: 4 scores of 4 configs")
    assert "Too few runs" in answer["layout"]["annotations"][0]["text"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"kind": "heatmap", "setting": "config.learning_rate"}, "other_setting"),
        ({"kind": "heatmap", "other_setting": "config.learning_rate"}, "setting"),
        ({"kind": "heatmap", "setting": "config.beta", "other_setting": "config.beta"}, "other_setting"),
        ({"kind": "strips", "setting": "config.nothing_at_all"}, "setting"),
        ({"kind": "strips", "setting": "loss/value"}, "setting"),
        ({"kind": "bars", "environment": "ALE/Pong-v5"}, "environment"),
        ({"kind": "heatmap", "setting": "seed", "other_setting": "algorithm", "format": "csv"}, "format"),
        ({"kind": "pie"}, "kind"),
    ],
)  # fmt: skip
def test_wrong_request_is_refused_by_its_field(
    client: Client, engine: Engine, more: dict[str, Any], field: str
) -> None:
    run = make_scored_run(engine, [1.0] * 100)
    refused = client.get(SCORES, params={"run": run} | more)
    assert (refused.status_code, [error["field"] for error in refused.json()["errors"]]) == (422, [field])


def test_runs_of_several_environments_need_a_choice(client: Client, engine: Engine) -> None:
    runs = [
        make_scored_run(engine, [1.0] * 100),
        make_scored_run(engine, [5.0] * 100, environment="Acrobot-v1"),
    ]
    refused = client.get(SCORES, params={"run": runs, "kind": "bars"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "environment")
    [bars] = ask(client, runs, "bars", environment="Acrobot-v1")["data"]
    assert bars["x"] == [5.0]


def test_run_without_a_score_leaves_an_empty_figure_that_says_so(client: Client, engine: Engine) -> None:
    run = make_scored_run(engine, [])
    for kind in ("bars", "strips"):
        answer = ask(client, [run], kind)
        assert answer["data"] == []
        assert "has a score" in answer["layout"]["annotations"][0]["text"]


@pytest.mark.parametrize("kind", ["bars", "strips", "importance"])
def test_scores_are_exported(client: Client, engine: Engine, kind: str) -> None:
    runs = make_grid(engine)
    for form in ("csv", "matplotlib", "caption", "html"):
        response = client.get(SCORES, params={"run": runs, "kind": kind, "format": form})
        assert response.status_code == 200
        if form == "matplotlib":
            compile(response.text, "scores.py", "exec")


def test_runs_that_changed_a_setting_have_no_place_on_it(client: Client, engine: Engine) -> None:
    runs = make_grid(engine)
    before = ask(client, runs, "importance")
    changed = make_scored_run(engine, [9000.0] * 100, seed=7, config={"learning_rate": 0.01, "beta": 0.0})
    with writing(engine) as session:
        session.get_one(Run, changed).departures = {"learning_rate": "0.01 → 0.5 at 10"}
    names = {"setting": "config.learning_rate", "other_setting": "config.beta"}
    [cells] = ask(client, [*runs, changed], "heatmap", **names)["data"]
    assert cells["text"][0][0] == "10.5<br>n = 2"
    seeds = ask(client, [*runs, changed], "strips", setting="config.learning_rate")["data"][0]
    assert set(seeds["customdata"]) == set(runs)
    assert ask(client, [*runs, changed], "importance")["shares"] == before["shares"]
    rows = ask(client, [*runs, changed], "strips")["data"][0]
    assert changed in rows["customdata"]


def test_importance_is_of_the_scores_that_count(client: Client, engine: Engine) -> None:
    runs = make_grid(engine, range(3))
    with writing(engine) as session:
        for run in runs:
            session.get_one(Run, run).state = RunState.FINISHED
    without = ask(client, runs[1:], "importance", at="end")
    with writing(engine) as session:
        session.get_one(Run, runs[0]).state = RunState.FAILED
    answer = ask(client, runs, "importance", at="end")
    shares = ([share["share"] for share in figure["shares"]] for figure in (answer, without))
    assert next(shares) == pytest.approx(next(shares))
    assert (answer["n_runs"], answer["n_left_out"]) == (11, 1)
