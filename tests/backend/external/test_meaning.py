"""What runs of other libraries mean: their returns, what their steps count, and settings that come late."""

from typing import Any

import pytest

from callboard.known_tags import return_candidates, return_metric, series_units
from tests.backend.drawing.lines import numbers
from tests.support.external import SOURCE, batch, checkpoint, create, send, upload
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

Tags = dict[str, int]
"""Tag -> its steps are multiples of this number."""


@pytest.mark.parametrize(
    ("tags", "metric", "unit", "units"),
    [
        ({"charts/episodic_return": 7, "losses/value_loss": 7}, "charts/episodic_return", "agent_steps", {}),
        ({"rollout/ep_rew_mean": 2048, "time/fps": 2048}, "rollout/ep_rew_mean", "agent_steps", {}),
        (
            {"rewards/iter": 1, "rewards/time": 12, "rewards/step": 65_536, "losses/a_loss": 65_536},
            "rewards/step",
            "agent_steps",
            {"rewards/iter": "iterations", "rewards/time": "seconds"},
        ),
        (
            {"Loss/value": 1, "Train/mean_reward": 1, "Train/mean_reward/time": 2, "Perf/total_fps": 1},
            "Train/mean_reward",
            "iterations",
            {"Train/mean_reward/time": "seconds"},
        ),
        ({"Reward / Total reward (mean)": 100}, "Reward / Total reward (mean)", "agent_steps", {}),
        ({"Environment/Cumulative Reward": 9}, "Environment/Cumulative Reward", "agent_steps", {}),
        (
            {"ray/tune/env_runners/episode_return_mean": 4},
            "ray/tune/env_runners/episode_return_mean",
            "agent_steps",
            {},
        ),
        ({"eval/mean": 5, "agent/average_q": 5}, "eval/mean", "agent_steps", {}),
        ({"my/return": 5, "my/loss": 5}, None, "agent_steps", {}),
    ],
)
def test_run_of_a_known_library_has_its_score_and_its_step_unit(
    sqlite_service: RunningService, tags: Tags, metric: str | None, unit: str, units: dict[str, str]
) -> None:
    client = sqlite_service.client
    run = create(client)
    for sequence, (tag, factor) in enumerate(tags.items(), 1):
        steps = [factor * at for at in range(1, 4)]
        body = batch(sequence, [1.0, 3.0, 2.0], metric=tag, agent_steps=steps, wall_time_s=[0.0, 1.0, 2.0])
        send(client, run, "points", body)
    after = client.get(f"/api/v1/runs/{run['id']}").json()
    assert (after["return_metric"], after["step_unit"]) == (metric, unit)
    if metric is not None:
        assert (after["score"], after["best_return"]) == (2.0, 3.0)
    series = client.get(f"/api/v1/runs/{run['id']}/series").json()
    assert {item["metric"]: item["step_unit"] for item in series["items"]} == dict.fromkeys(
        tags, unit
    ) | units
    assert series["return_candidates"] == ([] if metric else ["my/return"])
    assert after["agent_steps"] == 3 * max(tags[tag] for tag in tags if units.get(tag, unit) == unit)
    drawn = client.get("/api/v1/series", params={"run": run["id"], "metric": list(tags)}).json()
    assert {curve["metric"]: curve["step_unit"] for curve in drawn["series"]} == dict.fromkeys(
        tags, unit
    ) | units
    by_frames = client.get("/api/v1/series", params={"run": run["id"], "metric": list(tags), "x": "frames"})
    others = [tag for tag in tags if units.get(tag, unit) != "agent_steps"]
    assert by_frames.json()["n_left_out"] == len(others)
    if metric is not None:
        compared = client.get("/api/v1/comparisons", params={"run": run["id"]}).json()
        [group] = compared["groups"]
        assert (group["runs"][0]["score"], group["step_unit"]) == (2.0, unit)
        query: dict[str, Any] = {"run": run["id"], "metric": ["rollout/episode_return", metric]}
        curves = client.get("/api/v1/series", params=query).json()["series"]
        assert [curve["metric"] for curve in curves] == ["rollout/episode_return", metric]
        assert [curve["last"] for curve in curves] == [[1.0, 3.0, 2.0]] * 2
        query["metric"] = "rollout/episode_return"
        figure = client.get("/api/v1/figures/curve", params=query).json()
        title = {"agent_steps": "Agent steps", "iterations": "Iterations"}[unit]
        assert (figure["layout"]["xaxis"]["title"]["text"], figure["x"]) == (title, unit)
        curve = client.get("/api/v1/figures/learning_curve", params={"run": run["id"]}).json()
        assert curve["x"] == unit


def test_iterations_and_agent_steps_are_never_drawn_on_one_axis(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    runs = [create(client, step_unit=unit) for unit in ("iterations", "agent_steps")]
    for run in runs:
        send(client, run, "points", batch(1, [1.0, 2.0], metric="a/b"))
    query: dict[str, Any] = {"run": [run["id"] for run in runs], "metric": "a/b"}
    for group_by in (None, "seed"):
        drawn = client.get(
            "/api/v1/series", params=query | ({"group_by": group_by} if group_by else {})
        ).json()
        shown = drawn["groups"] if group_by else drawn["series"]
        assert ([curve["step_unit"] for curve in shown], drawn["n_left_out"]) == (["agent_steps"], 1)
    alone = client.get("/api/v1/series", params=query | {"run": runs[0]["id"]}).json()
    assert [curve["step_unit"] for curve in alone["series"]] == ["iterations"]
    assert client.get("/api/v1/series", params=query | {"x": "frames"}).json()["n_left_out"] == 1
    assert client.get("/api/v1/series", params=query | {"x": "wall_time_s"}).json()["n_left_out"] == 0


def test_default_chart_of_returns_shows_the_metric_that_was_named(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    run = create(client, return_metric="true/return")
    send(client, run, "points", batch(1, [1.0, 2.0], metric="rollout/episode_return"))
    send(client, run, "points", batch(2, [30.0, 40.0], metric="true/return"))
    query: dict[str, Any] = {"run": run["id"]}

    def drawn(figure: str) -> list[float]:
        answer = client.get(f"/api/v1/figures/{figure}", params=query | {"smooth": 0}).json()
        [y] = [trace["y"] for trace in answer["data"] if trace["meta"]["kind"] == "line"]
        return [value for value in numbers(y) if value is not None]

    assert drawn("learning_curve") == [30.0, 40.0]
    grid = drawn("seed_curve")
    assert (grid[0], grid[-1]) == (30.0, 40.0)
    query["metric"] = "rollout/episode_return"
    assert drawn("curve") == [1.0, 2.0]
    for scored, values in ((True, [30.0, 40.0]), (False, [1.0, 2.0])):
        [curve] = client.get("/api/v1/series", params=query | {"scored": scored}).json()["series"]
        assert (curve["metric"], curve["mean"]) == ("rollout/episode_return", values)


def test_charts_and_groups_name_the_metric_that_counts_as_the_return(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    metrics = ("true/return", "shaped/return")
    settings: list[dict[str, Any]] = [{"a": at, "b": at, "c": at, "step_unit": "own"} for at in range(2)]
    runs = [
        create(client, return_metric=metric, config=config)
        for metric, config in zip(metrics, settings, strict=True)
    ]
    ids = [run["id"] for run in runs]

    def title(figure: str, shown: list[str]) -> str:
        query: dict[str, Any] = {"run": shown}
        query |= {"metric": "rollout/episode_return"} if figure == "curve" else {}
        drawn = client.get(f"/api/v1/figures/{figure}", params=query).json()
        text: str = drawn["layout"]["yaxis"]["title"]["text"]
        return text

    send(client, runs[0], "points", batch(1, [1.0], metric="rollout/episode_return"))
    assert title("learning_curve", ids[:1]) == "Return (true score)"  # until the other has points
    for sequence, run, metric in zip((2, 1), runs, metrics, strict=True):
        send(client, run, "points", batch(sequence, [1.0, 2.0], metric=metric))
    assert title("curve", ids[:1]) == "Return (true score)"
    assert title("curve", ids[1:]) == "Return (shaped/return)"
    for figure in ("learning_curve", "seed_curve"):
        assert title(figure, ids[:1]) == "Return (true/return)"
        assert title(figure, ids) == "Return (the metric of each run)"
    compared = client.get("/api/v1/comparisons", params={"run": ids}).json()
    assert {group["name"] for group in compared["groups"]} == {
        "return_metric true/return · a 0 · b 0 · c 0",
        "return_metric shaped/return · a 1 · b 1 · c 1",
    }
    configs: tuple[dict[str, Any], ...] = ({"return_metric": "own"}, {})
    equal = [
        create(client, return_metric=metric, config=config)
        for metric, config in zip(metrics, configs, strict=True)
    ]
    compared = client.get("/api/v1/comparisons", params={"run": [run["id"] for run in equal]}).json()
    assert {group["name"] for group in compared["groups"]} == {
        "run.return_metric true/return · config.return_metric own",
        "run.return_metric shaped/return · no config.return_metric",
    }
    long = create(client, return_metric="a/very/long/name/of/a/metric/that/is/the/return")
    send(client, long, "points", batch(1, [1.0], metric="a/very/long/name/of/a/metric/that/is/the/return"))
    assert title("curve", [long["id"]]) == "Return (a/very/long/name/of/a/metric/that/is/the/return)"
    panel = {"run": long["id"], "metric": "rollout/episode_return", "embedded": True}
    drawn = client.get("/api/v1/figures/curve", params=panel).json()
    assert drawn["layout"]["yaxis"]["title"]["text"] == "Return (…/of/a/metric/that/is/the/return)"


def test_checkpoint_of_a_run_that_counts_iterations_is_marked_with_them(
    sqlite_service: RunningService,
) -> None:
    client = sqlite_service.client
    run = create(client, step_unit="iterations")
    upload(client, run, b"x")
    send(client, run, "checkpoints", checkpoint(1, b"x", agent_steps=12))
    figure = client.get("/api/v1/figures/learning_curve", params={"run": run["id"]}).text
    assert "checkpoint at 12 iterations" in figure


def test_config_that_comes_later_is_merged_once_and_names_what_was_not_known(service: RunningService) -> None:
    client = service.client
    run = create(client, algorithm="unknown", environment="unknown", config={"a": 1, "b": 2}, seed=None)
    body = {
        "source": SOURCE,
        "sequence": 1,
        "config": {"b": 3, "学习率": 0.1, "seed": 7},
        "config_details": {"b": {"type": "int"}},
        "algorithm": "ppo",
        "environment": "CartPole-v1",
    }
    for _ in range(2):
        assert send(client, run, "config", body)["sequence"] == 1
    later = {"source": SOURCE, "sequence": 2, "algorithm": "other", "environment": "other", "seed": 9}
    send(client, run, "config", later)
    after = client.get(f"/api/v1/runs/{run['id']}").json()
    assert after["spec"]["config"] == {"a": 1, "b": 3, "学习率": 0.1, "seed": 7}
    assert after["spec"]["config_details"] == {"b": {"type": "int"}}
    assert (after["algorithm"], after["environment"], after["seed"]) == ("ppo", "CartPole-v1", 7)
    refused = client.post(
        f"/api/v1/runs/{run['id']}/config", json=later | {"sequence": 3, "config": {"x\n": 1}}
    )
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "config.x\n")
    matching = client.get("/api/v1/runs", params={"filter": "config.学习率=0.1 environment:CartPole"}).json()
    assert [item["id"] for item in matching["items"]] == [run["id"]]


def test_return_metric_that_is_named_later_scores_the_run(service: RunningService) -> None:
    run = create(service.client)
    send(service.client, run, "points", batch(1, [1.0, 2.0, 6.0], metric="my curve"))
    body = {"source": SOURCE, "sequence": 2, "return_metric": "my curve", "step_unit": "iterations"}
    send(service.client, run, "config", body)
    after = service.client.get(f"/api/v1/runs/{run['id']}").json()
    assert (after["score"], after["best_return"], after["step_unit"]) == (3.0, 6.0, "iterations")
    send(service.client, run, "points", batch(3, [7.0], first=3, metric="my curve"))
    assert service.client.get(f"/api/v1/runs/{run['id']}").json()["score"] == 4.0


def test_return_metric_of_a_run_can_be_changed(service: RunningService) -> None:
    client = service.client
    run = create(client)
    url = f"/api/v1/runs/{run['id']}"
    send(client, run, "points", batch(1, [1.0, 2.0, 6.0], metric="my curve"))
    send(client, run, "points", batch(2, [8.0, 9.0], metric="charts/episodic_return"))
    before = client.get(url).json()
    assert (before["return_metric"], before["best_return"]) == ("charts/episodic_return", 9.0)
    after = client.patch(url, json={"return_metric": "my curve", "name": "new"}).json()
    assert (after["return_metric"], after["score"], after["best_return"]) == ("my curve", 3.0, 6.0)
    assert after["name"] == "new"
    assert after["revision"] > before["revision"]
    send(client, run, "points", batch(3, [7.0], first=3, metric="my curve"))
    [group] = client.get("/api/v1/comparisons", params={"run": run["id"]}).json()["groups"]
    assert group["runs"][0]["score"] == client.get(url).json()["score"] == 4.0
    wrong = client.patch(url, json={"return_metric": "my curv", "name": "newer"})
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "return_metric")
    assert client.get(url).json()["name"] == "new"
    known = client.patch(url, json={"return_metric": None}).json()
    assert (known["return_metric"], known["best_return"]) == ("charts/episodic_return", 9.0)
    own = make_run(service.engine)
    assert client.patch(f"/api/v1/runs/{own.id}", json={"return_metric": "a/b"}).status_code == 422


def test_seed_that_no_script_has_named_is_not_known(service: RunningService) -> None:
    client = service.client
    unknown, known = create(client, seed=None, name=None), create(client, seed=0, name=None)
    assert [run["seed_is_known"] for run in (unknown, known)] == [False, True]
    assert ("seed" in unknown["name"], known["name"].endswith(" seed 0")) == (False, True)
    send(client, unknown, "config", {"source": SOURCE, "sequence": 1, "seed": 0})
    make_run(service.engine)
    listed = client.get("/api/v1/runs").json()["items"]
    assert [run["seed_is_known"] for run in listed] == [True] * 3


def test_seed_that_comes_with_the_first_config_is_the_given_one(service: RunningService) -> None:
    run = create(service.client, seed=None)
    send(service.client, run, "config", {"source": SOURCE, "sequence": 1, "seed": 5, "config": {"seed": 1}})
    send(service.client, run, "config", {"source": SOURCE, "sequence": 2, "config": {"seed": 2}})
    assert service.client.get(f"/api/v1/runs/{run['id']}").json()["seed"] == 5


@pytest.mark.parametrize(
    ("first", "later"),
    [({"seed": 0}, "seed"), ({"seed": 0}, "torch.seed"), ({"random_seed": 0}, "random_seed"), ({}, "seed")],
    ids=range(4),
)
def test_five_seeds_that_replace_a_default_of_the_config_are_one_group(
    sqlite_service: RunningService, first: dict[str, int], later: str
) -> None:
    client = sqlite_service.client
    runs = [create(client, config=first | {"lr": 0.1}, seed=None, name=None) for _ in range(5)]
    seeds = []
    for seed, run in enumerate(runs):
        named = {later: seed} | ({} if later in first else dict.fromkeys(first, seed))
        send(client, run, "config", {"source": SOURCE, "sequence": 1, "config": named, "seed": seed})
        after = client.get(f"/api/v1/runs/{run['id']}").json()
        seeds.append(after["seed"])
        assert after["name"].endswith(f" seed {seed}")
    assert seeds == [*range(5)]
    compared = client.get("/api/v1/comparisons", params={"run": [run["id"] for run in runs]}).json()
    assert [len(group["runs"]) for group in compared["groups"]] == [5]


def test_seed_that_was_given_stays_whatever_the_config_names_later(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    given = create(client, config={"seed": 3}, seed=3, name="mine")
    later = create(client, config={}, seed=None)
    other = create(client, config={"a.seed": 4}, seed=None)
    body = {"source": SOURCE, "sequence": 1, "seed": 5}
    send(client, given, "config", body | {"config": {"seed": 5}})
    send(client, later, "config", body)
    send(client, later, "config", body | {"sequence": 2, "config": {"seed": 6}, "seed": 6})
    send(client, other, "config", {"source": SOURCE, "sequence": 1, "config": {"b.seed": 7}})
    runs = [client.get(f"/api/v1/runs/{run['id']}").json() for run in (given, later, other)]
    assert [run["seed"] for run in runs] == [3, 5, 4]
    assert [run["seed_is_known"] for run in runs] == [True] * 3
    assert runs[0]["name"] == "mine"


def test_known_tags_prefer_returns_of_training_by_agent_steps() -> None:
    assert return_metric(["rewards/iter", "rewards/step"]) == "rewards/step"
    assert return_metric(["eval/mean_reward", "rollout/ep_rew_mean"]) == "rollout/ep_rew_mean"
    assert return_metric(["rollout/ep_rew_mean", "rollout/episode_return"]) == "rollout/episode_return"
    assert return_candidates(["loss", "a/score", "Reward/max", "Reward/mean", "brewery"]) == [
        "Reward/mean",
        "a/score",
        "Reward/max",
    ]
    assert series_units({"a/time", "b/time", "b/step", "c/iter"}, "agent_steps") == {
        "a/time": "agent_steps",
        "b/time": "seconds",
        "b/step": "agent_steps",
        "c/iter": "agent_steps",
    }
