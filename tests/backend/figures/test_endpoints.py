import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.db import Attempt, Checkpoint, Episode, Evaluation, LiveSettings
from backend.db.engine import writing
from backend.db.ids import new_id
from tests.backend.metrics.oracle import Life
from tests.support.service import RunningService

pytestmark = pytest.mark.service

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ("rollout/episode_return", "")
FIGURES = "/api/v1/figures"


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def checkpoint(life: Life, agent_steps: int, **more) -> Checkpoint:
    return Checkpoint(
        **{
            "id": new_id(),
            "run_id": life.run_id,
            "attempt": 1,
            "recorded_at": NOW,
            "agent_steps": agent_steps,
            "frames": 4 * agent_steps,
            "updates": 1,
            "episodes": agent_steps // 100,
            "wall_time_s": agent_steps / 1000,
            "file": f"{agent_steps}.pt",
            "sha256": "",
            "size_bytes": 1,
        }
        | more
    )


def evaluation(life: Life, agent_steps: int, mean_return: float | None) -> Evaluation:
    return Evaluation(
        id=new_id(),
        run_id=life.run_id,
        attempt=1,
        requested_at=NOW,
        protocol="plain",
        n_episodes=30,
        seed=0,
        agent_steps=agent_steps,
        frames=4 * agent_steps,
        wall_time_s=agent_steps / 1000,
        checkpoint=f"{agent_steps}.pt",
        returns=[] if mean_return is None else [mean_return] * 30,
        lengths_frames=[],
        mean_return=mean_return,
    )


@pytest.fixture
def life(engine: Engine) -> Life:
    life = Life(engine, 0)
    life.append({KEY: 3000})
    with writing(engine) as session:
        session.add_all([checkpoint(life, 1000), checkpoint(life, 2000, removed=True)])
        session.add_all([checkpoint(life, 3000, superseded=True)])
        session.add_all([evaluation(life, 2000, 99.0), evaluation(life, 1000, None)])
        session.add_all(
            Attempt(
                run_id=life.run_id,
                number=n,
                host="h",
                claimed_at=NOW + timedelta(minutes=minute),
                resumed_from_agent_steps=steps,
            )
            for n, minute, steps in ((1, 0, 0), (2, 10, 2000))
        )
    return life


def traces(answer: dict, **meta) -> list[dict]:
    return [t for t in answer["data"] if meta.items() <= t.get("meta", {}).items()]


def test_a_learning_curve_without_and_with_its_numbers(client: Client, life: Life) -> None:
    ask = {"run": life.run_id, "points": 1000, "x": "episodes"}
    bare = client.get(f"{FIGURES}/learning_curve", params=ask).json()
    full = client.get(f"{FIGURES}/learning_curve", params=ask | {"data": True}).json()
    chart = client.get("/api/v1/series", params=ask | {"metric": KEY[0], "smooth": 0.9}).json()["series"][0]
    for column in ("min", "max", "smoothed"):
        (empty,) = traces(bare, run=life.run_id, metric=KEY[0], y=column)
        (trace,) = traces(full, run=life.run_id, metric=KEY[0], y=column)
        assert (empty["x"], empty["y"]) == ([], [])
        assert (trace["x"], trace["y"]) == (chart["x"], chart[column])
    assert bare["layout"]["xaxis"]["title"]["text"] == "Training episodes"
    assert "PAAC" in bare["layout"]["title"]["text"]


@pytest.mark.parametrize(
    ("x", "at"), [("agent_steps", 2000), ("frames", 8000), ("wall_time_s", 2.0), ("episodes", 20)]
)
def test_marks_stand_where_things_happened(client: Client, life: Life, x: str, at: float) -> None:
    answer = client.get(f"{FIGURES}/learning_curve", params={"run": life.run_id, "x": x}).json()
    (scored,) = traces(answer, run=life.run_id, protocol="plain")
    assert (scored["x"], scored["y"], scored["text"]) == ([at], [99.0], ["mean of 30 episodes"])
    (saved,) = traces(answer, run=life.run_id, marks="checkpoints")
    assert saved["x"] == [at / 2]
    (again,) = traces(answer, run=life.run_id, marks="restarts")
    assert (again["x"], again["text"][0]) == ([at, at, None], "attempt 2")


def settings_change(
    life: Life, version: int, agent_steps: int | None, minute: int, **changes
) -> LiveSettings:
    return LiveSettings(
        run_id=life.run_id,
        version=version,
        requested_at=NOW + timedelta(minutes=minute),
        changes=changes,
        state="asked" if agent_steps is None else "applied",
        agent_steps=agent_steps,
        frames=None if agent_steps is None else 4 * agent_steps,
        wall_time_s=None if agent_steps is None else agent_steps / 1000,
    )


@pytest.mark.parametrize(("x", "unit"), [("agent_steps", 1), ("frames", 4), ("wall_time_s", 0.001)])
def test_setting_changes_stand_where_their_points_begin(
    engine: Engine, client: Client, life: Life, x: str, unit: float
) -> None:
    with writing(engine) as session:
        session.add_all(
            [
                # Before the second attempt went on from 2,000, from behind there: it had this from its start.
                settings_change(life, 1, 2500, 9, beta=0.02),
                settings_change(life, 2, 2700, 11, beta=0.03, learning_rate=0.001),
                settings_change(life, 3, None, 12, beta=0.04),
                settings_change(life, 4, 500, 8, beta=0.05),
            ]
        )
    answer = client.get(f"{FIGURES}/learning_curve", params={"run": life.run_id, "x": x}).json()
    (marks,) = traces(answer, run=life.run_id, marks="setting changes")
    assert marks["x"][::3] == pytest.approx([500 * unit, 2000 * unit, 2700 * unit])
    assert marks["text"][::3] == [
        "beta = 0.05 from here on",
        "beta = 0.02 from here on",
        "beta = 0.03, learning_rate = 0.001 from here on",
    ]


def test_marks_of_several_runs_say_whose_they_are(engine: Engine, client: Client, life: Life) -> None:
    other = Life(engine, 1)
    other.append({KEY: 10})
    ask = {"run": [life.run_id, other.run_id]}
    answer = client.get(f"{FIGURES}/learning_curve", params=ask).json()
    (saved,) = traces(answer, marks="checkpoints")
    assert saved["text"] == ["paac CartPole-v1 seed 0: checkpoint at 1,000 agent steps"]


def test_a_run_that_has_no_points_yet_has_its_trace(engine: Engine, client: Client) -> None:
    young = Life(engine, 0, changes={"name": "<b>young</b>"})
    ask = {"run": [young.run_id, Life(engine, 1).run_id]}
    answer = client.get(f"{FIGURES}/learning_curve", params=ask).json()
    names = {trace["name"] for trace in traces(answer, run=young.run_id)}
    assert names == {"&lt;b&gt;young&lt;/b&gt;"}, "what people typed is no HTML"


def test_published_levels_where_the_world_is_scored_alike(engine: Engine, client: Client) -> None:
    def levels(**changes) -> list[str]:
        life = Life(engine, 0, changes={"environment": "ALE/Pong-v5"} | changes)
        life.append({KEY: 5})
        answer = client.get(f"{FIGURES}/learning_curve", params={"run": life.run_id}).json()
        return [note["text"] for note in answer["layout"].get("annotations", [])]

    assert any("random" in text and "no-op starts" in text for text in levels())
    assert levels(environment_config={"life_loss_terminal": True}) == levels()
    cropped = {"picture_size": "42x42", "crop": True}
    assert levels(config={"network": "compact"}, environment_config=cropped) == levels()
    assert levels(environment_config={"noop_max": 5}) == []


def test_any_metric(engine: Engine, client: Client) -> None:
    life = Life(engine, 0)
    life.append({("loss/value", "actor 1"): 10, ("loss/value", "actor 2"): 10})
    ask = {"run": life.run_id, "metric": "loss/value", "data": True, "smooth": 0, "theme": "dark"}
    answer = client.get(f"{FIGURES}/curve", params=ask).json()
    assert {t["meta"]["source"] for t in answer["data"]} == {"actor 1", "actor 2"}
    assert answer["layout"]["yaxis"]["title"]["text"] == "Value loss"
    assert len(traces(answer, source="actor 1", y="mean")[0]["y"]) == 10


def test_seeds_as_one_curve_with_the_numbers_of_its_series(engine: Engine, client: Client) -> None:
    lives = [Life(engine, seed) for seed in range(3)]
    other = Life(engine, 0, changes={"config": {"n_e": 8}})
    for life in (*lives, other):
        life.append({KEY: 400})
    ask = {"run": [life.run_id for life in (*lives, other)], "points": 100, "smooth": 0.5, "interval": "sd"}
    bare = client.get(f"{FIGURES}/seed_curve", params=ask).json()
    full = client.get(f"{FIGURES}/seed_curve", params=ask | {"data": True}).json()
    chart = client.get("/api/v1/series", params=ask | {"metric": KEY[0], "group_by": "seed"}).json()
    assert len(chart["groups"]) == 2
    for group in chart["groups"]:
        for column in ("low", "high", "mean"):
            (empty,) = traces(bare, group=group["id"], metric=KEY[0], y=column)
            (trace,) = traces(full, group=group["id"], metric=KEY[0], y=column)
            assert (empty["x"], empty["y"]) == ([], [])
            assert (trace["x"], trace["y"]) == (group["x"], group[column])
        assert traces(full, group=group["id"], y="mean")[0]["customdata"] == group["n"]
    names = [trace["name"] for trace in traces(full, y="mean")]
    assert [name.partition(" (")[2] for name in names] == ["n_e = 16), 3 seeds", "n_e = 8), 1 seed"]
    assert "± 1 s.d." in full["layout"]["title"]["subtitle"]["text"]


def test_a_page_stands_alone(client: Client, life: Life) -> None:
    answer = client.get(f"{FIGURES}/learning_curve", params={"run": life.run_id, "format": "html"})
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-disposition"] == 'attachment; filename="learning_curve.html"'
    assert len(answer.text) > 3_000_000  # plotly.js is inside
    assert "<script src=" not in answer.text
    assert "Learning curve" in answer.text


def test_an_episode_from_within(engine: Engine, service: RunningService, life: Life, tmp_path: Path) -> None:
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
    path = tmp_path / "made.npz"
    path.write_bytes(replay.getvalue())
    service.artifacts.put(path, life.run_id, "replays")
    episode = Episode(
        id=new_id(),
        run_id=life.run_id,
        attempt=1,
        kind="training",
        recorded_at=NOW,
        agent_steps=1000,
        frames=1000,
        wall_time_s=1.0,
        seed=0,
        episode_return=40.0,
        length_steps=length,
        length_frames=length,
        replay="made.npz",
    )
    with writing(engine) as session:
        session.add(episode)
    ask = {"episode": episode.id, "width": 390}
    answer = service.client.get(f"{FIGURES}/episode_trace", params=ask).json()
    named = {trace["name"]: trace for trace in answer["data"]}
    assert list(named) == ["Reward", "Discounted return", "V", "left", "right"]
    assert named["Discounted return"]["y"][-2:] == pytest.approx([1.99, 1.0])
    assert answer["layout"]["width"] == 390
    assert "return 40" in answer["layout"]["title"]["text"].replace("<br>", " ")


def test_wrong_and_unknown(client: Client, life: Life) -> None:
    for name, ask, field in (
        ("learning_curve", {"run": []}, "run"),
        ("learning_curve", {"run": life.run_id, "width": 3}, "width"),
        ("learning_curve", {"run": life.run_id, "theme": "pink"}, "theme"),
        ("curve", {"run": life.run_id}, "metric"),
        ("seed_curve", {"run": life.run_id, "interval": "iqr"}, "interval"),
        ("episode_trace", {"episode": "x"}, "episode"),
    ):
        answer = client.get(f"{FIGURES}/{name}", params=ask)
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == [field]
    nobody = "0" * 26
    assert client.get(f"{FIGURES}/learning_curve", params={"run": nobody}).status_code == 404
    assert client.get(f"{FIGURES}/episode_trace", params={"episode": nobody}).status_code == 404
    assert client.get(f"{FIGURES}/nonsense").status_code == 404


def test_a_figure_is_strict_json(client: Client, life: Life) -> None:
    text = client.get(f"{FIGURES}/learning_curve", params={"run": life.run_id, "data": True}).text

    def refuse(word: str):
        raise AssertionError(word)

    assert json.loads(text, parse_constant=refuse)["data"]
