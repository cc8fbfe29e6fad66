import csv
import io
from typing import Any

import numpy as np
import pytest
from httpx import Client
from sqlalchemy import Engine, select

from backend.analysis.metrics import repository as series
from backend.analysis.metrics.chunks import CHUNK_ROWS
from backend.db import Run
from backend.db.engine import writing
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.support.rows import evaluation_row, external_request, make_fork, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

COMPARISONS = "/api/v1/comparisons"


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def make_scored_run(engine: Engine, values: list[float], **changes: Any) -> str:
    """Create a run whose episodes of 10 agent steps have these returns. Return its id."""
    run = make_run(engine, **changes)
    _append_episodes(engine, run.id, values)
    return run.id


def _append_episodes(engine: Engine, run_id: str, values: list[float], start: int = 0) -> None:
    steps = [start + 10 * (at + 1) for at in range(len(values))]
    points = PointsEvent(
        metric="rollout/episode_return",
        agent_steps=steps,
        frames=steps,
        wall_time_s=[step / 100 for step in steps],
        episodes=list(range(len(values))),
        value=values,
    )
    with writing(engine) as session:
        series.append(session, run_id, 1, 1, [points])
        session.get_one(Run, run_id).agent_steps = max(steps, default=start)


def make_scored_fork(
    engine: Engine, parent_id: str, at_agent_steps: int, values: list[float], **changes: Any
) -> str:
    """As `make_scored_run`, of a fork whose episodes follow its first agent step."""
    fork = make_fork(engine, parent_id, at_agent_steps, **changes)
    _append_episodes(engine, fork.id, values, at_agent_steps)
    return fork.id


def add_evaluation(
    engine: Engine, run_id: str, agent_steps: int, score: float, protocol: str = "plain"
) -> None:
    with writing(engine) as session:
        row = evaluation_row(
            run_id, agent_steps, score, protocol=protocol, frames=agent_steps, wall_time_s=agent_steps / 100
        )
        session.add(row)


def two_rates(engine: Engine, seeds: int = 3) -> tuple[list[str], list[str]]:
    """Seeds with a learning rate that reaches 200 after 100 episodes, and as many that never do."""
    good = [
        make_scored_run(engine, [0.0] * 100 + [200.0 + seed] * 150, seed=seed, config={"learning_rate": 0.01})
        for seed in range(seeds)
    ]
    bad = [
        make_scored_run(engine, [0.0] * 100 + [50.0 + seed] * 100, seed=seed, config={"learning_rate": 0.1})
        for seed in range(seeds)
    ]
    return good, bad


def test_comparison_of_two_learning_rates_reports_iqm_improvement_and_threshold(
    client: Client, engine: Engine
) -> None:
    good, bad = two_rates(engine, 5)
    answer = client.get(COMPARISONS, params={"run": bad + good, "threshold": 200}).json()
    by_rate = {"0.01" in group["name"]: group for group in answer["groups"]}
    better, worse = by_rate[True], by_rate[False]
    assert {run["run"] for run in better["runs"]} == set(good)
    assert (better["n"], worse["n"]) == (5, 5)
    assert worse["iqm"]["value"] == pytest.approx(52.0)
    # At the shorter runs' length, 200 episodes, of which the last 100 have return 200 + seed.
    assert (better["at_agent_steps"], worse["at_agent_steps"]) == (2000, 2000)
    assert better["iqm"] == {"value": pytest.approx(202.0), "low": None, "high": None}
    assert better["median"] == pytest.approx({"value": 202.0, "low": 200.0, "high": 204.0})

    (pair,) = answer["improvements"]
    assert (pair["a"], pair["b"], pair["better"]) == (better["id"], worse["id"], better["id"])
    assert pair["probability"] == {"value": 1.0, "low": None, "high": None}
    assert pair["p_value"] == pair["p_adjusted"] == pytest.approx(2 / 252)
    # Of the 25 differences between 146 and 154, the third lowest and highest.
    assert pair["difference"] == pytest.approx({"value": 150.0, "low": 147.0, "high": 153.0})
    assert pair["seeds_to_differ"] is None

    assert (better["n_reached"], worse["n_reached"]) == (5, 0)
    steps = [run["agent_steps_to_threshold"] for run in better["runs"]]
    assert steps[0] == 2000
    assert better["agent_steps_to_threshold"]["value"] == pytest.approx(np.median(steps))
    assert better["wall_time_s_to_threshold"] == pytest.approx(
        {"value": np.median(steps) / 100, "low": min(steps) / 100, "high": max(steps) / 100}
    )
    assert worse["agent_steps_to_threshold"] == {"value": None, "low": None, "high": None}


def test_too_few_seeds_give_no_verdict_but_the_number_that_could(client: Client, engine: Engine) -> None:
    good, bad = two_rates(engine, 2)
    answer = client.get(COMPARISONS, params={"run": good + bad}).json()
    (pair,) = answer["improvements"]
    assert pair["probability"]["value"] == 1.0
    assert pair["p_value"] == pytest.approx(1 / 3)
    assert (pair["better"], pair["seeds_to_differ"]) == (None, 4)
    assert pair["difference"]["low"] is None
    assert [group["median"]["low"] for group in answer["groups"]] == [None, None]
    (verdict,) = answer["best"]
    best, rival = (group["id"] for group in answer["groups"])
    assert (verdict["group"], verdict["rival"]) == (best, rival)
    assert (verdict["seeds"], verdict["are_fewest"]) == (4, True)
    assert [(item["group"], item["n"]) for item in verdict["missing"]] == [(best, 2), (rival, 2)]

    items = [{"run": item["run"], "n": item["n"]} for item in verdict["missing"]]
    created = client.post(f"{COMPARISONS}/seeds", json={"items": items}).json()["items"]
    assert [run["seed"] for run in created] == [2, 3, 2, 3]
    again = client.get(COMPARISONS, params={"run": good + bad}).json()
    assert [group["others"] for group in again["groups"]] == [
        [created[1]["id"], created[0]["id"]],
        [created[3]["id"], created[2]["id"]],
    ]
    assert [(item["n"], item["n_queued"]) for item in again["best"][0]["missing"]] == [(0, 2), (0, 2)]


def test_more_seeds_of_what_cannot_be_repeated_are_refused(client: Client, engine: Engine) -> None:
    external = client.post("/api/v1/runs", json=external_request()).json()["items"][0]["id"]
    own = make_scored_run(engine, [1.0] * 100)
    for item, status in (
        ({"run": external, "n": 1}, 409),
        ({"run": own, "n": 0}, 422),
        ({"run": own, "n": 101}, 422),
        ({"run": "01JD3QZ6W9K0Y5T8H2V4B7N1XC", "n": 1}, 404),
    ):
        assert client.post(f"{COMPARISONS}/seeds", json={"items": [item]}).status_code == status
    with writing(engine) as session:
        session.get_one(Run, own).departures = {"learning_rate": "0.1, 0.2"}
    answer = client.post(f"{COMPARISONS}/seeds", json={"items": [{"run": own, "n": 1}]})
    assert answer.status_code == 409
    assert "changed during training" in answer.json()["detail"]


def test_copies_of_one_seed_give_no_verdict(client: Client, engine: Engine) -> None:
    runs = [
        make_scored_run(engine, [level] * 100, seed=0, config={"learning_rate": rate})
        for level, rate in ((200.0, 0.01), (50.0, 0.1))
        for _ in range(4)
    ]
    answer = client.get(COMPARISONS, params={"run": runs}).json()
    assert [group["n"] for group in answer["groups"]] == [1, 1]
    assert [[run["counted"] for run in group["runs"]] for group in answer["groups"]] == [
        [False, False, False, True]
    ] * 2
    assert answer["improvements"] == []


def test_forks_of_one_checkpoint_give_no_verdict(client: Client, engine: Engine) -> None:
    """Of A3C, whose runs of one seed differ: the forks share their training up to the checkpoint."""
    late = make_scored_run(engine, [100.0] * 200, algorithm="a3c")
    runs = [
        make_scored_fork(
            engine,
            late,
            2000,
            [level + seed] * 100,
            algorithm="a3c",
            seed=seed,
            config={"learning_rate": rate},
        )
        for level, rate in ((200.0, 0.01), (50.0, 0.02))
        for seed in range(4)
    ]
    answer = client.get(COMPARISONS, params={"run": runs}).json()
    assert [group["n"] for group in answer["groups"]] == [1, 1]
    assert [[run["counted"] for run in group["runs"]] for group in answer["groups"]] == [
        [False, False, False, True]
    ] * 2
    assert answer["improvements"] == []


def test_extended_run_counts_where_it_has_a_score(client: Client, engine: Engine) -> None:
    """The fork of one of two seeds trained further; the other seed ends where it starts."""
    first = make_scored_run(engine, [10.0] * 200, seed=0)
    second = make_scored_run(engine, [20.0] * 200, seed=1)
    fork = make_scored_fork(engine, first, 2000, [90.0] * 100, seed=0)
    for at, counted, value in (("common", first, 15.0), ("end", fork, 55.0)):
        ask: dict[str, Any] = {"run": [first, second, fork], "at": at}
        (group,) = client.get(COMPARISONS, params=ask).json()["groups"]
        assert {run["run"] for run in group["runs"] if run["counted"]} == {counted, second}
        assert (group["n"], group["median"]["value"]) == (2, value)


def test_charts_groups_and_comparisons_count_the_same_runs(client: Client, engine: Engine) -> None:
    """Two forks of one parent with different seeds, of a method whose runs of one seed differ; and a run."""
    parent = make_scored_run(engine, [1.0] * 100, algorithm="a3c", seed=0)
    forks = [
        make_scored_fork(engine, parent, 1000, [2.0] * n, algorithm="a3c", seed=seed)
        for n, seed in ((50, 1), (60, 2))
    ]
    other = make_scored_run(engine, [3.0] * 200, algorithm="a3c", seed=3)
    with writing(engine) as session:
        for row in session.scalars(select(Run)):
            row.score = 1.0
    shown = [parent, *forks, other]
    for runs, counted in (
        (shown, {forks[1], other}),
        (shown[:2], {forks[0]}),
        (forks, {forks[1]}),  # their parent is not shown
    ):
        (group,) = client.get(COMPARISONS, params={"run": runs}).json()["groups"]
        assert {run["run"] for run in group["runs"] if run["counted"]} == counted
        ask: dict[str, Any] = {"run": runs, "metric": "rollout/episode_return"}
        (curve,) = client.get("/api/v1/series", params=ask | {"group_by": "seed"}).json()["groups"]
        assert set(curve["runs"]) == counted
        drawn = client.get("/api/v1/figures/seed_curve", params=ask).json()["data"]
        number = f"{len(counted)})"
        assert {trace["name"].rpartition(" ")[2] for trace in drawn} == {number}
    (row,) = client.get(f"{COMPARISONS}/groups", params={"by": "seed"}).json()["items"]
    assert (row["n"], row["n_scored"]) == (4, 2)


def test_verdicts_are_corrected_for_the_number_of_comparisons(client: Client, engine: Engine) -> None:
    good, bad = two_rates(engine, 4)
    worst = [
        make_scored_run(engine, [seed / 9] * 300, seed=seed, config={"learning_rate": 0.2})
        for seed in range(4)
    ]
    answer = client.get(COMPARISONS, params={"run": good + bad + worst, "pairs": "all"}).json()
    improvements = answer["improvements"]
    assert [pair["p_value"] for pair in improvements] == pytest.approx([2 / 70] * 3)
    assert [pair["p_adjusted"] for pair in improvements] == pytest.approx([6 / 70] * 3)
    assert [(pair["better"], pair["seeds_to_differ"]) for pair in improvements] == [(None, 5)] * 3


def test_comparison_at_end_has_no_common_agent_steps(client: Client, engine: Engine) -> None:
    good, bad = two_rates(engine)
    ask: dict[str, Any] = {"run": good + bad, "at": "end"}
    for group in client.get(COMPARISONS, params=ask).json()["groups"]:
        assert group["at_agent_steps"] is None
        assert group["agent_steps_to_threshold"] is None


def test_long_run_is_scored_at_shortest_runs_length(client: Client, engine: Engine) -> None:
    rng = np.random.default_rng(0)
    long, short = rng.normal(size=(2, 3 * CHUNK_ROWS))
    runs = [
        make_scored_run(engine, long.tolist(), seed=0),
        make_scored_run(engine, short[: CHUNK_ROWS + 50].tolist(), seed=1),
    ]
    for at, ends in (("common", (CHUNK_ROWS + 50,) * 2), ("end", (3 * CHUNK_ROWS, CHUNK_ROWS + 50))):
        (group,) = client.get(COMPARISONS, params={"run": runs, "at": at}).json()["groups"]
        expected = [values[end - 100 : end].mean() for values, end in zip((long, short), ends, strict=True)]
        assert [run["score"] for run in group["runs"]] == pytest.approx(expected)


def test_score_is_of_the_last_finite_returns_with_and_without_a_threshold(
    client: Client, engine: Engine
) -> None:
    """More than 100 returns that are not finite fill the latest chunks."""
    run_id = make_scored_run(engine, [10.0] * CHUNK_ROWS)
    for n_nan, start in ((200, CHUNK_ROWS), (1, CHUNK_ROWS + 200)):
        _append_episodes(engine, run_id, [float("nan")] * n_nan, 10 * start)
    for more in ({}, {"threshold": 5}):
        (group,) = client.get(COMPARISONS, params={"run": run_id, **more}).json()["groups"]
        assert [run["score"] for run in group["runs"]] == [10.0]


def test_evaluation_score_uses_protocol_of_the_run(client: Client, engine: Engine) -> None:
    run_id = make_scored_run(engine, [1.0] * 10)
    add_evaluation(engine, run_id, 50, 100.0)
    add_evaluation(engine, run_id, 100, 30.0)
    add_evaluation(engine, run_id, 100, 999.0, protocol="plain_greedy")
    ask: dict[str, Any] = {"run": run_id, "score": "evaluation", "threshold": 90}
    (group,) = client.get(COMPARISONS, params=ask).json()["groups"]
    assert group["protocol"] == "plain"
    assert group["iqm"] == group["median"] == {"value": 30.0, "low": None, "high": None}
    assert group["runs"][0]["agent_steps_to_threshold"] == 50
    assert group["runs"][0]["wall_time_s_to_threshold"] == 0.5
    (group,) = client.get(COMPARISONS, params=ask | {"protocol": "plain_greedy"}).json()["groups"]
    assert (group["protocol"], group["iqm"]["value"]) == ("plain_greedy", 999.0)


def test_evaluation_score_uses_another_protocol_without_one_of_the_config(
    client: Client, engine: Engine
) -> None:
    sticky = {"environment": "ALE/Pong-v5", "environment_config": {"sticky_actions": 0.25}}
    run_id = make_scored_run(engine, [1.0] * 10, **sticky)
    add_evaluation(engine, run_id, 50, 7.0, protocol="noop_starts")
    ask: dict[str, Any] = {"run": run_id, "score": "evaluation"}
    (group,) = client.get(COMPARISONS, params=ask).json()["groups"]
    assert (group["protocol"], group["iqm"]["value"]) == ("noop_starts", 7.0)


def test_only_scores_of_one_protocol_are_compared(client: Client, engine: Engine) -> None:
    runs = []
    for algorithm in ("paac", "dqn"):
        for seed in range(2):
            run_id = make_scored_run(engine, [1.0], seed=seed, algorithm=algorithm, environment="ALE/Pong-v5")
            add_evaluation(engine, run_id, 50, seed, protocol="noop_starts_5min")
            if algorithm == "paac":
                add_evaluation(engine, run_id, 50, seed, protocol="noop_starts")
            runs.append(run_id)
    ask: dict[str, Any] = {"run": runs, "score": "evaluation"}
    answer = client.get(COMPARISONS, params=ask).json()
    assert {group["protocol"] for group in answer["groups"]} == {"noop_starts", "noop_starts_5min"}
    assert answer["improvements"] == []
    assert answer["protocols"] == ["noop_starts", "noop_starts_5min"]
    answer = client.get(COMPARISONS, params=ask | {"protocol": "noop_starts_5min"}).json()
    assert {group["n"] for group in answer["groups"]} == {2}
    assert len(answer["improvements"]) == 1
    assert answer["protocols"] == ["noop_starts", "noop_starts_5min"]
    assert client.get(COMPARISONS, params={"run": runs}).json()["protocols"] == []


def test_runs_of_different_environments_are_not_compared(client: Client, engine: Engine) -> None:
    cartpole = [make_scored_run(engine, [1.0] * 5, seed=seed) for seed in range(2)]
    pong = [make_scored_run(engine, [9.0] * 3, seed=seed, environment="ALE/Pong-v5") for seed in range(2)]
    answer = client.get(COMPARISONS, params={"run": cartpole + pong}).json()
    assert answer["improvements"] == []
    ends = {group["environment"]: group["at_agent_steps"] for group in answer["groups"]}
    assert ends == {"CartPole-v1": 50, "ALE/Pong-v5": 30}


@pytest.mark.parametrize(
    ("changes", "training", "evaluation"),
    [
        ({"config": {"beta": 0.5}}, True, True),
        ({"environment_config": {"life_loss_terminal": True}}, True, True),
        # Evaluations have no-ops and caps of their own.
        ({"environment_config": {"noop_max": 5}}, False, True),
        ({"environment_config": {"max_frames": 18_000}}, False, True),
        ({"environment_config": {"fire_at_reset": True}}, False, True),
        ({"environment_config": {"crop": True}}, False, False),
        ({"environment_config": {"full_action_set": True}}, False, False),
    ],
)
def test_scores_are_compared_if_they_were_measured_alike(
    client: Client, engine: Engine, changes: dict[str, Any], training: bool, evaluation: bool
) -> None:
    runs = []
    for difference in ({}, changes):
        for seed in range(2):
            run_id = make_scored_run(engine, [9.0] * 3, seed=seed, environment="ALE/Pong-v5", **difference)
            add_evaluation(engine, run_id, 10, seed, protocol="noop_starts")
            runs.append(run_id)
    for score, alike in (("training", training), ("evaluation", evaluation)):
        answer = client.get(COMPARISONS, params={"run": runs, "score": score}).json()
        assert len(answer["improvements"]) == alike, score


def test_runs_with_older_specs_are_compared(client: Client, engine: Engine) -> None:
    pong = {"environment": "ALE/Pong-v5"}
    plain, before = (
        [make_scored_run(engine, [9.0] * 3, seed=seed, **pong, **changes) for seed in range(2)]
        for changes in ({}, {"config": {"beta": 0.5}})
    )
    with writing(engine) as session:
        for run_id in before:
            run = session.get_one(Run, run_id)
            kept = {name: v for name, v in run.spec["environment_config"].items() if name != "difficulty"}
            run.spec = run.spec | {"environment_config": kept}
    answer = client.get(COMPARISONS, params={"run": plain + before}).json()
    assert len(answer["improvements"]) == 1


def test_run_that_counts_iterations_reaches_a_threshold_by_time_alone(client: Client, engine: Engine) -> None:
    run_id = make_scored_run(engine, [9.0] * 200)
    with writing(engine) as session:
        session.get_one(Run, run_id).step_unit = "iterations"
    (group,) = client.get(COMPARISONS, params={"run": run_id, "threshold": 4}).json()["groups"]
    assert group["n_reached"] == 1
    assert group["runs"][0]["agent_steps_to_threshold"] is None
    assert group["wall_time_s_to_threshold"]["value"] == group["runs"][0]["wall_time_s_to_threshold"] > 0


def test_run_without_episodes_has_no_score(client: Client, engine: Engine) -> None:
    runs = [make_scored_run(engine, [3.0] * 4), make_run(engine, seed=1).id]
    (group,) = client.get(COMPARISONS, params={"run": runs, "threshold": 1}).json()["groups"]
    assert (group["n"], group["at_agent_steps"]) == (1, 40)
    assert [run["score"] for run in group["runs"]] == [3.0, None]
    assert group["iqm"]["value"] == 3.0


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"threshold": "inf"}, "threshold"),
        ({"score": "luck"}, "score"),
        ({"at": "noon"}, "at"),
        ({"run": "not-an-id"}, "run"),
    ],
)
def test_invalid_query_returns_422_with_field(client: Client, more: dict[str, str], field: str) -> None:
    ask: dict[str, Any] = {"run": "01ARZ3NDEKTSV4RRFFQ69G5FAV"} | more
    answer = client.get(COMPARISONS, params=ask)
    assert answer.status_code == 422
    assert field in answer.json()["errors"][0]["field"]


def test_unknown_run_returns_404(client: Client) -> None:
    answer = client.get(COMPARISONS, params={"run": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
    assert answer.status_code == 404


def end_in(engine: Engine, run_id: str, state: RunState, **columns: Any) -> None:
    with writing(engine) as session:
        run = session.get_one(Run, run_id)
        run.state = state
        for name, value in columns.items():
            setattr(run, name, value)


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.LOST, RunState.STOPPED])
def test_run_that_broke_off_does_not_set_the_length_of_the_others(
    client: Client, engine: Engine, state: RunState
) -> None:
    good, bad = two_rates(engine, 5)
    crashed = make_scored_run(engine, [0.0] * 5, seed=5, config={"learning_rate": 0.1})
    end_in(engine, crashed, state)
    answer = client.get(COMPARISONS, params={"run": [*good, *bad, crashed], "threshold": 50}).json()
    assert {group["at_agent_steps"] for group in answer["groups"]} == {2_000}
    (length,) = answer["lengths"]
    assert length["run"] in bad
    assert (length["at_agent_steps"], length["median_agent_steps"]) == (2_000, 2_250)
    group = next(group for group in answer["groups"] if crashed in [run["run"] for run in group["runs"]])
    assert (group["n"], group["n_broken_off"]) == (5, 1)
    assert next(run["left_out"] for run in group["runs"] if run["run"] == crashed) == "broke_off"
    assert group["n_reached"] == 5, "the crashed run counts as one that never reached it"
    assert all([length["run"]] == other["depends_on"] for other in answer["groups"] if other is not group)
    ends = client.get(COMPARISONS, params={"run": [*bad, crashed], "at": "end"}).json()["groups"][0]
    assert (ends["n"], ends["n_broken_off"]) == (5, 1)
    alone = client.get(COMPARISONS, params={"run": crashed}).json()["groups"][0]
    assert (alone["n"], alone["at_agent_steps"]) == (1, 50), "its own end is the best known"


def test_failed_seed_changes_no_other_configs_numbers(client: Client, engine: Engine) -> None:
    good, bad = two_rates(engine, 5)
    config = {"learning_rate": 0.2}
    first, second = (make_scored_run(engine, [9.0 + seed] * 200, seed=seed, config=config) for seed in (0, 1))
    failed = make_scored_run(engine, [9.0] * 5, seed=1, config=config)
    end_in(engine, failed, RunState.FAILED)

    def numbers(*third: str) -> list[Any]:
        answer = client.get(COMPARISONS, params={"run": [*good, *bad, *third]}).json()
        names = ("id", "n", "iqm", "median", "at_agent_steps")
        groups = [{name: group[name] for name in names} for group in answer["groups"][:2]]
        return [*groups, answer["n_comparisons"], answer["improvements"][0]["p_adjusted"]]

    assert numbers(first, failed) == numbers(first, second)


def test_groups_are_compared_with_one_baseline(client: Client, engine: Engine) -> None:
    rates = (0.1, 0.2, 0.3, 0.4)
    groups = [
        [
            make_scored_run(engine, [rate + seed / 9] * 150, seed=seed, config={"learning_rate": rate})
            for seed in range(4)
        ]
        for rate in rates
    ]
    ask = {"run": [run for group in groups for run in group]}
    answer = client.get(COMPARISONS, params=ask).json()
    ids = [group["id"] for group in answer["groups"]]
    assert answer["baselines"] == ids[:1]
    assert len(answer["improvements"]) == 3
    chosen = client.get(COMPARISONS, params=ask | {"baseline": ids[2]}).json()
    assert chosen["baselines"] == [ids[2]]
    assert all(ids[2] in (pair["a"], pair["b"]) for pair in chosen["improvements"])
    assert len(client.get(COMPARISONS, params=ask | {"pairs": "all"}).json()["improvements"]) == 6


def test_seeds_chosen_by_score_are_named(client: Client, engine: Engine) -> None:
    runs = [make_scored_run(engine, [float(seed)] * 150, seed=seed) for seed in range(5)]
    for seed, run in enumerate(runs):
        end_in(engine, run, RunState.FINISHED, score=float(seed))
    best = client.get(COMPARISONS, params={"run": runs[3:]}).json()["groups"][0]
    assert (set(best["others"]), best["are_best"]) == (set(runs[:3]), True)
    mixed = client.get(COMPARISONS, params={"run": runs[1:3]}).json()["groups"][0]
    assert (len(mixed["others"]), mixed["are_best"]) == (3, False)
    assert not client.get(COMPARISONS, params={"run": runs}).json()["groups"][0]["others"]


def test_early_score_is_no_sample(client: Client, engine: Engine) -> None:
    runs = [make_scored_run(engine, [1.0] * 50, seed=seed) for seed in range(3)]
    end_in(engine, runs[0], RunState.RUNNING, early_agent_steps=500)
    (group,) = client.get(COMPARISONS, params={"run": runs}).json()["groups"]
    assert group["n"] == 2
    short = make_scored_run(engine, [1.0] * 9, seed=4)
    end_in(engine, short, RunState.RUNNING, early_agent_steps=90)
    (with_short,) = client.get(COMPARISONS, params={"run": [*runs, short]}).json()["groups"]
    assert (with_short["at_agent_steps"], with_short["runs"][3]["left_out"]) == (500, "early")
    assert [run["left_out"] for run in group["runs"]] == ["early", None, None]
    end_in(engine, runs[0], RunState.RUNNING, early_agent_steps=400)
    assert client.get(COMPARISONS, params={"run": runs}).json()["groups"][0]["n"] == 3


def test_tables_of_a_comparison_are_files_for_papers(client: Client, engine: Engine) -> None:
    good, bad = two_rates(engine, 5)
    ask: dict[str, Any] = {"run": bad + good}
    answer = client.get(f"{COMPARISONS}/table", params=ask | {"table": "differences"})
    assert answer.headers["content-disposition"] == 'attachment; filename="comparison-differences.csv"'
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (row["A"], row["B"], row["n"], row["Difference"]) == ("lr 0.01", "lr 0.1", "5 + 5", "150.0")
    assert row["Difference: lower bound (95 %)"] == "147.0"
    table = client.get(f"{COMPARISONS}/table", params=ask | {"format": "latex"}).text
    assert "lr 0.01 & 5 & 202 [200, 204] & 202" in table
    assert "PAAC · CartPole. Scores (mean of the last 100 training returns) at 2,000 agent steps." in table


def test_tables_of_several_environments_name_them(client: Client, engine: Engine) -> None:
    runs = [
        make_scored_run(engine, [1.0] * 100, environment=environment, group="a_b & c", config=config)
        for environment, config in (("CartPole-v1", {}), ("Catch-v0", {}), ("Catch-v0", {"beta": 0.5}))
    ]
    table = client.get(f"{COMPARISONS}/table", params={"run": runs, "format": "latex"}).text
    assert r"Config & Environment & n" in table
    assert r"a\_b \& c" in table
