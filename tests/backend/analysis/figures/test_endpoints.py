import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import plotly.graph_objects as go
import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.analysis.metrics import repository as metrics
from backend.db import Attempt, LiveSettings, Run
from backend.db.engine import writing
from backend.specs.events import PointsEvent
from tests.backend.analysis.comparisons.test_endpoints import two_rates
from tests.backend.analysis.metrics.oracle import RecordedRun
from tests.backend.drawing.lines import numbers
from tests.support.rows import checkpoint_row, episode_row, evaluation_row
from tests.support.service import RunningService
from tests.support.start_sets import add_recording

pytestmark = pytest.mark.service

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ("rollout/episode_return", "")
FIGURES = "/api/v1/figures"


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


@pytest.fixture
def recorded(engine: Engine) -> RecordedRun:
    recorded = RecordedRun(engine, 0)
    recorded.append({KEY: 3000})
    with writing(engine) as session:
        session.add_all(
            [checkpoint_row(recorded.run_id, 1000), checkpoint_row(recorded.run_id, 2000, removed=True)]
        )
        session.add_all([checkpoint_row(recorded.run_id, 3000, superseded=True)])
        session.add_all(
            [
                evaluation_row(recorded.run_id, 2000, 99.0),
                evaluation_row(recorded.run_id, 1000, None),
                # The best parameters, evaluated again at the end.
                evaluation_row(recorded.run_id, 3000, 500.0, checkpoint="a1-s000000001000.pt"),
            ]
        )
        session.add_all(
            Attempt(
                run_id=recorded.run_id,
                number=n,
                host="h",
                claimed_at=NOW + timedelta(minutes=minute),
                resumed_from_agent_steps=steps,
            )
            for n, minute, steps in ((1, 0, 0), (2, 10, 2000))
        )
    return recorded


def traces(answer: dict[str, Any], **meta: Any) -> list[dict[str, Any]]:
    return [t for t in answer["data"] if meta.items() <= t.get("meta", {}).items()]


def test_learning_curve_has_the_numbers_of_the_series(client: Client, recorded: RecordedRun) -> None:
    ask: dict[str, Any] = {"run": recorded.run_id, "points": 1000, "x": "episodes", "smooth": 0.9}
    figure = client.get(f"{FIGURES}/learning_curve", params=ask).json()
    query = ask | {"metric": KEY[0], "merge_equal_x": True}
    chart = client.get("/api/v1/series", params=query).json()["series"][0]
    (trace,) = traces(figure, run=recorded.run_id, metric=KEY[0], kind="line")
    assert (numbers(trace["x"]), numbers(trace["y"])) == (chart["x"], chart["smoothed"])
    details = {name: numbers(trace["meta"][name]) for name in ("low", "high", "n", "bucket")}
    assert details == {
        "low": chart["min"],
        "high": chart["max"],
        "n": chart["count"],
        "bucket": chart["bucket"],
    }
    assert (figure["n_total"], figure["n_shown"]) == (chart["n_total"], chart["n_shown"])
    assert figure["layout"]["xaxis"]["title"]["text"] == "Training episodes"
    assert "PAAC" in figure["layout"]["title"]["text"]
    # Refuses what Plotly does not know.
    go.Figure({"data": figure["data"], "layout": figure["layout"]})


def test_figure_of_a_panel_has_neither_title_nor_tooltip(client: Client, recorded: RecordedRun) -> None:
    ask: dict[str, Any] = {"run": recorded.run_id, "embedded": True}
    layout = client.get(f"{FIGURES}/learning_curve", params=ask).json()["layout"]
    assert "title" not in layout
    assert (layout["hovermode"], layout["yaxis"]["fixedrange"], layout["margin"]["t"]) == (False, True, 8)


def test_figure_of_a_range_shows_it_and_no_more(client: Client, recorded: RecordedRun) -> None:
    ask: dict[str, Any] = {"run": recorded.run_id, "x_from": 1000, "x_to": 3000}
    assert client.get(f"{FIGURES}/learning_curve", params=ask).json()["layout"]["xaxis"]["range"] == [
        1000,
        3000,
    ]
    script = client.get(f"{FIGURES}/learning_curve", params=ask | {"format": "matplotlib"}).text
    assert re.search(r"'range': \[1000(\.0)?, 3000(\.0)?\]", script)
    # A page draws more than it shows, so that it can be moved.
    layout = client.get(f"{FIGURES}/learning_curve", params=ask | {"embedded": True}).json()["layout"]
    assert "range" not in layout["xaxis"]


@pytest.mark.parametrize(
    ("x", "at"), [("agent_steps", 2000), ("frames", 8000), ("wall_time_s", 2.0), ("episodes", 20)]
)
def test_marks_are_placed_on_every_x_axis(client: Client, recorded: RecordedRun, x: str, at: float) -> None:
    answer = client.get(f"{FIGURES}/learning_curve", params={"run": recorded.run_id, "x": x}).json()
    (scored,) = traces(answer, run=recorded.run_id, protocol="plain")
    assert (scored["x"], scored["y"], scored["text"]) == ([at], [99.0], ["mean of 30 episodes"])
    (saved,) = traces(answer, run=recorded.run_id, marks="checkpoints")
    assert saved["x"] == [at / 2]
    (again,) = traces(answer, run=recorded.run_id, marks="restarts")
    assert (again["x"], again["text"]) == ([at], ["attempt 2"])


def test_palette_has_a_hundred_styles(client: Client) -> None:
    palette = client.get(f"{FIGURES}/palette").json()
    assert len(palette["light"]) == len(palette["dark"]) == 2 * len(palette["names"]) == 20
    assert len(palette["names"]) * len(palette["symbols"]) == 100


def test_styles_are_those_of_the_request(client: Client, recorded: RecordedRun) -> None:
    light = client.get(f"{FIGURES}/palette").json()["light"]

    def colour(kind: str, **more: Any) -> str:
        figure = client.get(f"{FIGURES}/{kind}", params={"run": recorded.run_id} | more).json()
        chosen: str = traces(figure, kind="line")[0]["line"]["color"]
        return chosen

    assert colour("learning_curve") == colour("seed_curve") == light[0]
    assert colour("learning_curve", style=3) == colour("curve", metric=KEY[0], style=3) == light[3]
    seeds = client.get(f"{FIGURES}/seed_curve", params={"run": recorded.run_id}).json()
    group = seeds["data"][0]["meta"]["group"]
    assert colour("seed_curve", group_style=f"{group}:4") == light[4]


@pytest.mark.parametrize(
    "wrong",
    [{"style": 100}, {"style": -1}, {"group_style": "a"}, {"group_style": "a:100"}, {"group_style": ":1"}],
)
def test_unknown_styles_are_refused(client: Client, recorded: RecordedRun, wrong: dict[str, Any]) -> None:
    answer = client.get(f"{FIGURES}/seed_curve", params={"run": recorded.run_id} | wrong)
    assert answer.status_code == 422


def settings_change(
    recorded: RecordedRun, version: int, agent_steps: int | None, minute: int, **changes: Any
) -> LiveSettings:
    return LiveSettings(
        run_id=recorded.run_id,
        version=version,
        requested_at=NOW + timedelta(minutes=minute),
        changes=changes,
        state="asked" if agent_steps is None else "applied",
        agent_steps=agent_steps,
        frames=None if agent_steps is None else 4 * agent_steps,
        wall_time_s=None if agent_steps is None else agent_steps / 1000,
    )


@pytest.mark.parametrize(("x", "unit"), [("agent_steps", 1), ("frames", 4), ("wall_time_s", 0.001)])
def test_setting_change_marks_are_placed_at_first_affected_point(
    engine: Engine, client: Client, recorded: RecordedRun, x: str, unit: float
) -> None:
    with writing(engine) as session:
        session.add_all(
            [
                # Applied at 2,500, before attempt 2 resumed at 2,000: attempt 2 has it from its start.
                settings_change(recorded, 1, 2500, 9, beta=0.02),
                settings_change(recorded, 2, 2700, 11, beta=0.03, learning_rate=0.001),
                settings_change(recorded, 3, None, 12, beta=0.04),
                settings_change(recorded, 4, 500, 8, beta=0.05),
            ]
        )
    answer = client.get(f"{FIGURES}/learning_curve", params={"run": recorded.run_id, "x": x}).json()
    (marks,) = traces(answer, run=recorded.run_id, marks="setting changes")
    assert marks["x"] == pytest.approx([500 * unit, 2000 * unit, 2700 * unit])
    assert marks["text"] == [
        "beta = 0.05",
        "beta = 0.02",
        "beta = 0.03, learning_rate = 0.001",
    ]


@pytest.mark.parametrize(
    ("x", "at"),
    [("agent_steps", 1500), ("frames", 6000), ("wall_time_s", 1.5), ("updates", 18.5), ("episodes", 15)],
)
def test_note_is_marked_at_its_step_on_every_axis(
    engine: Engine, client: Client, recorded: RecordedRun, x: str, at: float
) -> None:
    with writing(engine) as session:
        run = session.get_one(Run, recorded.run_id)
        run.agent_steps, run.frames, run.updates, run.episodes, run.wall_time_s = 3000, 12_000, 37, 30, 3.0
    note = {"agent_steps": 1500, "text": "<b>falls</b>\nfrom here"}
    client.post(f"/api/v1/runs/{recorded.run_id}/step-notes", json=note).raise_for_status()
    answer = client.get(f"{FIGURES}/learning_curve", params={"run": recorded.run_id, "x": x}).json()
    (marks,) = traces(answer, run=recorded.run_id, marks="notes")
    assert marks["x"] == pytest.approx([at])
    assert marks["text"] == ["note at 1,500 agent steps: &lt;b&gt;falls&lt;/b&gt; from here"]


def test_symptom_is_marked_where_it_began(engine: Engine, client: Client, recorded: RecordedRun) -> None:
    run_id, steps = recorded.run_id, [500, 1500, 2500]
    lost = PointsEvent(
        metric="loss/value", source="", agent_steps=steps, frames=steps, wall_time_s=[1.0, 2.0, 3.0],
        episodes=[0, 0, 0], value=[0.5, float("nan"), float("nan")],
    )  # fmt: skip
    with writing(engine) as session:
        metrics.append(session, run_id, 1, 1, [lost])
        session.get_one(Run, run_id).agent_steps = 3000
    (symptom,) = client.get(f"/api/v1/runs/{run_id}/symptoms").json()["items"]
    assert (symptom["rule"], symptom["since_agent_steps"]) == ("exploding_gradient", 1500)
    assert symptom["settings"] == ["learning_rate", "max_grad_norm", "reward_clip"]
    (marks,) = traces(
        client.get(f"{FIGURES}/learning_curve", params={"run": run_id}).json(), marks="symptoms"
    )
    words = "Exploding gradient or value since 1,500 agent steps: The value loss became NaN or infinite."
    assert (marks["x"], marks["text"]) == ([1500], [words])


def test_marks_of_several_runs_name_their_run(engine: Engine, client: Client, recorded: RecordedRun) -> None:
    other = RecordedRun(engine, 1)
    other.append({KEY: 10})
    ask: dict[str, Any] = {"run": [recorded.run_id, other.run_id]}
    answer = client.get(f"{FIGURES}/learning_curve", params=ask).json()
    (again,) = traces(answer, marks="restarts")
    assert again["text"] == ["seed 0: attempt 2"]


def test_name_of_a_run_is_escaped_for_plotly_and_whole_in_its_label(engine: Engine, client: Client) -> None:
    named, young = RecordedRun(engine, 0, changes={"name": "<b>named</b> %{x}"}), RecordedRun(engine, 1)
    named.append({KEY: 5})
    ask: dict[str, Any] = {"run": [named.run_id, young.run_id]}
    answer = client.get(f"{FIGURES}/learning_curve", params=ask).json()
    (line,) = traces(answer, kind="line")
    assert line["name"] == "&lt;b&gt;named&lt;/b&gt; %&#123;x}"
    assert line["meta"]["label"] == {"name": "<b>named</b> %{x}"}
    assert line["meta"]["run"] == named.run_id, "a run without points has no line"


PAPER_LEVELS = {"random", "human", "DQN", "Gorila"}
"""Measured over episodes of at most 5 minutes; PAAC's are not."""


@pytest.fixture
def levels(engine: Engine, client: Client) -> Callable[..., set[str]]:
    """Labels of the published scores beside runs on Pong, given each run's changes and evaluations."""

    def level_names(*several: dict[str, Any], evaluated: Sequence[Sequence[str]] = ()) -> set[str]:
        ids = []
        for at, changes in enumerate(several):
            recorded = RecordedRun(engine, at, changes={"environment": "ALE/Pong-v5"} | changes)
            recorded.append({KEY: 5})
            ids.append(recorded.run_id)
            with writing(engine) as session:
                session.add_all(
                    evaluation_row(recorded.run_id, 1000, 1.0, protocol=protocol)
                    for protocol in (evaluated[at] if evaluated else ())
                )
        answer = client.get(f"{FIGURES}/learning_curve", params={"run": ids}).json()
        text = " ".join(note["text"] for note in answer["layout"].get("annotations", []))
        return {label for label in (*PAPER_LEVELS, *NOOP_LEVELS, "A3C FF") if label in text}

    return level_names


Levels = Callable[..., set[str]]
NOOP_LEVELS = {"random", "human", "A3C", "PAAC nips", "PAAC nature"}
DQN: dict[str, Any] = {"algorithm": "dqn"}
CROPPED: dict[str, Any] = {"environment_config": {"crop": True}}


def test_published_levels_have_the_protocol_of_the_runs_evaluations(levels: Levels) -> None:
    assert levels({}) == NOOP_LEVELS
    assert levels(DQN) == PAPER_LEVELS
    assert levels(DQN, {}) == set(), "evaluated in different ways"
    assert levels({"config": {"evaluation_protocol": "noop_starts_5min"}}, DQN) == PAPER_LEVELS
    assert levels({"config": {"evaluation_protocol": "noop_starts_greedy"}}) == set()


def test_published_levels_follow_evaluations_rather_than_the_config(levels: Levels) -> None:
    both = [["noop_starts", "noop_starts_5min"]]
    assert levels({}, evaluated=both) == PAPER_LEVELS | NOOP_LEVELS
    sticky = {"environment_config": {"sticky_actions": 0.25}}
    assert levels(sticky) == set()
    assert levels(sticky, evaluated=[["noop_starts"]]) == NOOP_LEVELS


@pytest.mark.parametrize(
    ("figure", "query"),
    [("seed_curve", {}), ("curve", {"metric": "eval/noop_starts/mean_return"})],
    ids=["seeds", "evaluations"],
)
def test_published_levels_are_beside_seeds_and_evaluations(
    engine: Engine, client: Client, figure: str, query: dict[str, Any]
) -> None:
    recorded = RecordedRun(engine, 0, changes={"environment": "ALE/Pong-v5"})
    recorded.append({KEY: 5, ("eval/noop_starts/mean_return", ""): 2})
    layout = client.get(f"{FIGURES}/{figure}", params={"run": recorded.run_id} | query).json()["layout"]
    assert "human " in " ".join(note["text"] for note in layout["annotations"])
    assert {shape["line"]["dash"] for shape in layout["shapes"]} == {"dash"}
    other = client.get(f"{FIGURES}/curve", params={"run": recorded.run_id, "metric": "loss/value"}).json()
    assert "shapes" not in other["layout"]


@pytest.mark.parametrize("figure", ["learning_curve", "seed_curve"])
def test_panel_of_an_environment_has_its_runs_in_the_styles_of_all(
    engine: Engine, client: Client, figure: str
) -> None:
    pole, pong = RecordedRun(engine, 0), RecordedRun(engine, 1, changes={"environment": "ALE/Pong-v5"})
    for recorded in (pole, pong):
        recorded.append({KEY: 5})
    ask: dict[str, Any] = {"run": [pole.run_id, pong.run_id]}

    def lines(**more: Any) -> list[Any]:
        answer = client.get(f"{FIGURES}/{figure}", params=ask | more).json()
        assert len(answer["revisions"]) == 2
        return [(trace["name"], trace["line"]["color"]) for trace in traces(answer, kind="line")]

    apart = [lines(environment=name) for name in ("CartPole-v1", "ALE/Pong-v5")]
    assert [len(panel_runs) for panel_runs in apart] == [1, 1]
    assert apart[0] + apart[1] == lines()
    assert lines(environment="nothing") == []


@pytest.mark.parametrize(
    "settings",
    [{"noop_max": 5}, {"max_frames": 18_000}, {"fire_at_reset": True}, {"life_loss_terminal": True}],
)
def test_published_levels_ignore_settings_of_training_alone(levels: Levels, settings: dict[str, Any]) -> None:
    assert levels({"environment_config": settings}) == NOOP_LEVELS


@pytest.mark.parametrize(
    "changes",
    [
        CROPPED,
        {"environment_config": {"observation_size": "42x42"}, "config": {"network": "compact"}},
        {"environment_config": {"full_action_set": True}},
        {"environment_config": {"frame_skip": 2}},
        {"environment_config": {"mode": 1}},
    ],
)
def test_published_levels_are_not_shown_for_agents_with_other_observations_or_actions(
    levels: Levels, changes: dict[str, Any]
) -> None:
    assert levels(changes) == set()
    assert levels({}, changes) == set()


def test_curve_draws_every_source_of_any_metric(engine: Engine, client: Client) -> None:
    recorded = RecordedRun(engine, 0)
    recorded.append({("loss/value", "actor 1"): 10, ("loss/value", "actor 2"): 10})
    ask: dict[str, Any] = {
        "run": recorded.run_id,
        "metric": "loss/value",
        "smooth": 0,
        "theme": "dark",
    }
    answer = client.get(f"{FIGURES}/curve", params=ask | {"theme": "dark"}).json()
    assert {t["meta"]["source"] for t in traces(answer, kind="line")} == {"actor 1", "actor 2"}
    assert answer["layout"]["yaxis"]["title"]["text"] == "Value loss"
    assert len(numbers(traces(answer, source="actor 1", kind="line")[0]["y"])) == 10


@pytest.mark.parametrize("metric", ["system/rss_bytes", "queue/held_bytes"])
def test_bytes_are_drawn_in_mib(engine: Engine, client: Client, metric: str) -> None:
    recorded_runs = [RecordedRun(engine, seed) for seed in range(2)]
    for recorded in recorded_runs:
        recorded.append({(metric, ""): 30})
    ids = [recorded.run_id for recorded in recorded_runs]
    ask: dict[str, Any] = {"metric": metric, "points": 100, "smooth": 0}
    curves = client.get(f"{FIGURES}/curve", params=ask | {"run": ids}).json()
    assert curves["layout"]["yaxis"]["title"]["text"].endswith("(MiB)")
    assert curves["layout"]["yaxis"]["rangemode"] == "tozero"
    groups = client.get(f"{FIGURES}/seed_curve", params=ask | {"run": ids, "seeds": True}).json()
    stored = [abs(row[4]) for recorded in recorded_runs for row in recorded.live[metric, ""]]
    largest = np.nanmax(stored) / 2**20
    for figure in (curves, groups):
        for trace in traces(figure, kind="line"):
            drawn = np.array(numbers(trace["y"]), "f8")
            assert 0 < np.nanmax(np.abs(drawn)) <= largest * (1 + 1e-9)


def test_seed_curve_has_the_data_of_grouped_series(engine: Engine, client: Client) -> None:
    recorded_runs = [RecordedRun(engine, seed) for seed in range(3)]
    other = RecordedRun(engine, 0, changes={"config": {"n_e": 8}})
    for recorded in (*recorded_runs, other):
        recorded.append({KEY: 400})
    ask: dict[str, Any] = {
        "run": [recorded.run_id for recorded in (*recorded_runs, other)],
        "points": 100,
        "smooth": 0.5,
        "interval": "sd",
    }
    full = client.get(f"{FIGURES}/seed_curve", params=ask).json()
    chart = client.get("/api/v1/series", params=ask | {"metric": KEY[0], "group_by": "seed"}).json()
    assert len(chart["groups"]) == 2
    for group in chart["groups"]:
        drawn = [trace for trace in traces(full, group=group["id"]) if trace["meta"]["kind"] != "partial"]
        for trace, column in zip(drawn, ("low", "high", "mean"), strict=True):
            shown = zip(group[column], group["n"], strict=True)
            whole = [value if n == len(group["runs"]) else None for value, n in shown]
            assert (numbers(trace["x"]), numbers(trace["y"])) == (group["x"], whole)
        assert numbers(drawn[-1]["customdata"]) == group["n"]
    labels = [trace["meta"]["label"] for trace in traces(full, kind="line")]
    assert labels == [{"name": "nₑ 16"}, {"name": "nₑ 8"}]
    assert "± 1 s.d." in full["layout"]["title"]["subtitle"]["text"]
    ask["interval"] = "ci95"  # too few seeds for it
    full = client.get(f"{FIGURES}/seed_curve", params=ask).json()
    chart = client.get("/api/v1/series", params=ask | {"metric": KEY[0], "group_by": "seed"}).json()
    for group in chart["groups"]:
        drawn = traces(full, group=group["id"], kind="line")
        assert [numbers(trace["y"]) for trace in drawn] == group["seed_values"]
        assert len(drawn) == len(group["runs"])


def test_html_export_is_self_contained(client: Client, recorded: RecordedRun) -> None:
    answer = client.get(f"{FIGURES}/learning_curve", params={"run": recorded.run_id, "format": "html"})
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-disposition"] == 'attachment; filename="learning_curve.html"'
    assert len(answer.text) > 3_000_000  # plotly.js is inside
    assert "<script src=" not in answer.text
    assert "Learning curve" in answer.text


def test_csv_of_a_seed_curve_has_the_numbers_of_the_figure(engine: Engine, client: Client) -> None:
    ask: dict[str, Any] = {"run": [], "interval": "se", "points": 50, "theme": "dark", "embedded": True}
    for seed, n_e in ((0, 16), (1, 16), (2, 16), (0, 8), (1, 8)):
        recorded = RecordedRun(engine, seed, changes={"config": {"n_e": n_e}})
        recorded.append({KEY: 300})
        ask["run"].append(recorded.run_id)
    figure = client.get(f"{FIGURES}/seed_curve", params=ask).json()
    answer = client.get(f"{FIGURES}/seed_curve", params=ask | {"format": "csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="seed_curve.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    lines = traces(figure, kind="line")
    assert len(lines) == 2
    for trace in lines:
        low, high, *_ = traces(figure, group=trace["meta"]["group"])
        trace_rows = [row for row in rows if row["series"] == trace["name"] and row["kind"] == "line"]
        for name, sent in (("x", trace["x"]), ("y", trace["y"]), ("low", low["y"]), ("high", high["y"])):
            assert [float(row[name]) if row[name] else None for row in trace_rows] == numbers(sent)
        assert [float(row["n"]) for row in trace_rows] == numbers(trace["customdata"])
    drawn = lines + traces(figure, kind="partial")
    assert len(rows) == sum(len(numbers(trace["x"])) for trace in drawn)


def test_caption_compares_the_groups_that_it_shows(engine: Engine, client: Client) -> None:
    good, bad = two_rates(engine, 4)
    ask: dict[str, Any] = {"run": good + bad, "format": "caption", "interval": "se", "smooth": 0.9}
    answer = client.get(f"{FIGURES}/seed_curve", params=ask)
    assert answer.headers["content-type"].startswith("text/plain")
    assert "(n = 4)" in answer.text
    assert "Mean over seeds. Band: ± 1 s.e. Each seed smoothed 0.9." in answer.text
    comparison = client.get("/api/v1/comparisons", params={"run": good + bad}).json()
    (pair,) = comparison["improvements"]
    assert f"(p = {pair['p_adjusted']:.2g})." in answer.text
    assert "at 2,000 agent steps" in answer.text
    assert comparison["method"] in answer.text


def test_caption_names_the_only_group_once(engine: Engine, client: Client) -> None:
    alike = two_rates(engine, 4)[0]
    caption = client.get(f"{FIGURES}/seed_curve", params={"run": alike, "format": "caption"}).text
    assert caption.startswith("Training return, PAAC on CartPole, 4 runs (n = 4). ")
    assert caption.count("PAAC on CartPole") == 1


def test_script_is_light_whatever_page_asks_and_has_the_requested_look(
    client: Client, recorded: RecordedRun
) -> None:
    ask: dict[str, Any] = {"run": recorded.run_id, "theme": "dark", "embedded": True, "format": "matplotlib"}
    look: dict[str, Any] = {"width_in": 3.25, "line_width_pt": 0.75, "legend": "right", "log_y": True}
    look |= {"heading": 'A "title"'}
    answer = client.get(f"{FIGURES}/learning_curve", params=ask | look)
    assert answer.headers["content-disposition"] == 'attachment; filename="learning_curve.py"'
    light, dark = (client.get(f"{FIGURES}/palette").json()[theme][0] for theme in ("light", "dark"))
    assert light in answer.text
    assert dark not in answer.text
    for line in ("'title': 'A \"title\"'", "'width_in': 3.25", "'line_width_pt': 0.75", "'legend': 'right'"):
        assert line in answer.text
    assert "'caption': 'Learning curve, " in answer.text


def test_script_of_the_archive_redraws_the_figure_from_the_csv_beside_it(
    client: Client, recorded: RecordedRun, tmp_path: Path
) -> None:
    ask: dict[str, Any] = {"run": recorded.run_id, "width_in": 3.25}
    answer = client.get(f"{FIGURES}/learning_curve", params=ask | {"format": "zip"})
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == 'attachment; filename="learning_curve.zip"'
    with ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(tmp_path)
    subprocess.run([sys.executable, "-W", "error", str(tmp_path / "learning_curve.py")], check=True)
    assert b"/MediaBox [ 0 0 234 " in (tmp_path / "learning_curve.pdf").read_bytes()
    for form, ending in (("csv", "csv"), ("matplotlib", "py")):
        alone = client.get(f"{FIGURES}/learning_curve", params=ask | {"format": form})
        assert (tmp_path / f"learning_curve.{ending}").read_bytes() == alone.content


def test_only_json_can_be_a_part_of_a_figure(client: Client, recorded: RecordedRun) -> None:
    ask: dict[str, Any] = {"run": recorded.run_id, "since_revision": 1, "format": "csv"}
    answer = client.get(f"{FIGURES}/learning_curve", params=ask)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "since_revision")


def test_episode_trace_draws_rewards_values_and_policy(
    engine: Engine, service: RunningService, recorded: RecordedRun, tmp_path: Path
) -> None:
    length, rng = 40, np.random.default_rng(0)
    replay = io.BytesIO()
    np.savez(
        replay,
        actions=np.zeros(length, "i4"),
        rewards=np.ones(length, "f4"),
        values=rng.normal(size=length).astype("f4"),
        policies=rng.dirichlet(np.ones(2), length).astype("f2"),
        frames_per_step=1,
        seed=0,
        lives=np.zeros(length, "i1"),
        action_names=np.array(["left", "right"]),
    )
    path = tmp_path / "episode.npz"
    path.write_bytes(replay.getvalue())
    service.artifacts.put(path, recorded.run_id, "replays")
    episode = episode_row(
        recorded.run_id,
        1000,
        episode_return=40.0,
        length_steps=length,
        length_frames=length,
        replay="episode.npz",
    )
    with writing(engine) as session:
        session.add(episode)
    ask: dict[str, Any] = {"episode": episode.id, "width": 390}
    answer = service.client.get(f"{FIGURES}/episode_trace", params=ask).json()
    named = {trace["name"]: trace for trace in answer["data"]}
    assert list(named) == ["Reward", "Discounted return", "V", "left", "right"]
    assert numbers(named["Discounted return"]["y"])[-2:] == pytest.approx([1.99, 1.0])
    assert answer["layout"]["width"] == 390
    assert "return 40" in answer["layout"]["title"]["text"].replace("<br>", " ")
    assert "discount 0.99" in answer["layout"]["title"]["subtitle"]["text"]

    timeline = ask | {"panel": ["reward", "value", "value_error"]}
    answer = service.client.get(f"{FIGURES}/episode_trace", params=timeline).json()
    named = {trace["name"]: trace for trace in answer["data"]}
    assert list(named) == ["Reward", "Discounted return", "V", "Value error"]
    v, r, error = (numbers(named[name]["y"]) for name in ("V", "Discounted return", "Value error"))
    assert error == pytest.approx(np.subtract(v, r))
    table = service.client.get(f"{FIGURES}/episode_trace", params=timeline | {"format": "csv"}).text
    rows = list(csv.DictReader(table.splitlines()))
    assert {row["kind"] for row in rows} == {"line"}
    assert [row["x"] for row in rows if row["series"] == "Reward"] == [str(step) for step in range(1, 41)]
    about = service.client.get(f"{FIGURES}/episode_trace", params=timeline | {"format": "caption"}).text
    assert "Reward; Discounted return; V; Value error. 40 agent steps. Discount 0.99" in about
    assert "Value error: V minus discounted return." in about
    assert service.client.get(f"{FIGURES}/episode_trace", params=ask | {"panel": "lives"}).status_code == 422


def test_rewards_of_a_game_are_a_figure_and_one_without_decisions_is_a_conflict(
    service: RunningService,
) -> None:
    client = service.client
    me = client.get("/api/v1/auth/me").json()["id"]
    game = add_recording(service.engine, me, n=6, rewards=[0, 1, 0, 0, 4, 0])
    answer = client.get(f"{FIGURES}/recording", params={"recording": game}).json()
    [reward] = answer["data"]
    assert (reward["name"], numbers(reward["y"])) == ("Reward", [0, 1, 0, 0, 4, 0])
    assert answer["layout"]["title"]["text"] == "Game of Breakout by owner, score 5"
    table = client.get(f"{FIGURES}/recording", params={"recording": game, "format": "csv"}).text
    assert [row["x"] for row in csv.DictReader(table.splitlines())] == ["1", "2", "3", "4", "5", "6"]
    empty = add_recording(service.engine, me, n=0, ended=False)
    assert client.get(f"{FIGURES}/recording", params={"recording": empty}).status_code == 409
    assert client.get(f"{FIGURES}/recording", params={"recording": "0" * 26}).status_code == 404


def test_invalid_queries_return_422_and_unknown_ids_404(client: Client, recorded: RecordedRun) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("learning_curve", {"run": []}, "run"),
        ("learning_curve", {"run": recorded.run_id, "width": 3}, "width"),
        ("learning_curve", {"run": recorded.run_id, "theme": "pink"}, "theme"),
        ("curve", {"run": recorded.run_id}, "metric"),
        ("curve", {"run": recorded.run_id, "metric": "eval/score", "format": "gif"}, "format"),
        ("seed_curve", {"run": recorded.run_id, "interval": "iqr"}, "interval"),
        ("episode_trace", {"episode": "x"}, "episode"),
    ]
    for name, ask, field in wrong:
        answer = client.get(f"{FIGURES}/{name}", params=ask)
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == [field]
    nobody = "0" * 26
    assert client.get(f"{FIGURES}/learning_curve", params={"run": nobody}).status_code == 404
    assert client.get(f"{FIGURES}/episode_trace", params={"episode": nobody}).status_code == 404
    assert client.get(f"{FIGURES}/nonsense").status_code == 404


def test_figure_is_strict_json(client: Client, recorded: RecordedRun) -> None:
    text = client.get(f"{FIGURES}/learning_curve", params={"run": recorded.run_id}).text

    def refuse(word: str) -> None:
        raise AssertionError(word)

    assert json.loads(text, parse_constant=refuse)["data"]
