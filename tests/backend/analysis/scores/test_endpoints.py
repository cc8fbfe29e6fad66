"""The table of scores over REST: which runs count, which configuration is the best, and what is compared."""

import csv
from typing import Any

import pytest
from httpx import Client, Response
from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from backend.drawing.palette import look
from backend.specs.algorithms import ALGORITHMS
from backend.specs.states import RunState
from tests.backend.drawing.lines import numbers
from tests.support.rows import evaluation_row, external_request, make_fork, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

SCORES = "/api/v1/scores"
PONG: dict[str, Any] = {"environment": "ALE/Pong-v5", "algorithm": "paac"}
BREAKOUT: dict[str, Any] = PONG | {"environment": "ALE/Breakout-v5"}


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def make_scored(
    engine: Engine,
    score: float,
    protocol: str = "noop_starts",
    state: RunState = RunState.FINISHED,
    agent_steps: int = 10_000,
    **changes: Any,
) -> str:
    """A run whose last evaluation has this score. Return its id."""
    run = make_run(engine, state, **changes)
    with writing(engine) as session:
        session.get_one(Run, run.id).agent_steps = agent_steps
        session.add(evaluation_row(run.id, agent_steps // 2, score - 5, protocol=protocol))
        session.add(evaluation_row(run.id, agent_steps, score, protocol=protocol))
    return run.id


def read(client: Client, **params: Any) -> dict[str, Any]:
    answer = client.get(SCORES, params=params)
    assert answer.status_code == 200, answer.text
    table: dict[str, Any] = answer.json()
    return table


def cell(table: dict[str, Any], environment: str, column: str) -> dict[str, Any] | None:
    shown = [column["id"] for column in table["columns"] if column["shown"]]
    [row] = [row for row in table["rows"] if row["environment"] == environment]
    content: dict[str, Any] | None = row["cells"][shown.index(column)]
    return content


def test_cell_is_the_mean_of_the_last_evaluations_of_the_best_configuration(
    client: Client, engine: Engine
) -> None:
    for seed in range(3):
        make_scored(engine, 30.0, seed=seed, config={"beta": 0.1}, **PONG)
    best = [
        make_scored(engine, 10.0 * (seed + 3), seed=seed, agent_steps=10_000 * (seed + 1), **PONG)
        for seed in range(3)
    ]
    score = cell(read(client), "ALE/Pong-v5", "paac")
    assert score is not None
    assert (score["value"], score["runs"], score["n_configurations"]) == (40.0, best[::-1], 2)
    assert (score["min_agent_steps"], score["max_agent_steps"], score["n_episodes"]) == (10_000, 30_000, 30)
    assert (score["low"], score["high"]) == (None, None)  # three seeds are too few for an interval
    assert score["rule"] == "mean of the last evaluations of 3 runs"
    assert cell(read(client), "ALE/Pong-v5", "a3c") is None


def test_interval_of_eleven_seeds_is_students(client: Client, engine: Engine) -> None:
    for seed in range(11):
        make_scored(engine, float(seed), seed=seed, **PONG)
    score = cell(read(client), "ALE/Pong-v5", "paac")
    assert score is not None
    # t(10) = 2.228, s = sqrt(11), so the half width is 2.228.
    assert (score["low"], score["high"]) == (pytest.approx(5 - 2.228), pytest.approx(5 + 2.228))


@pytest.mark.parametrize(
    "state", [RunState.RUNNING, RunState.STOPPED, RunState.FAILED], ids=lambda state: str(state)
)
def test_only_finished_runs_have_scores(client: Client, engine: Engine, state: RunState) -> None:
    make_scored(engine, 10.0, seed=0, **PONG)
    make_scored(engine, 99.0, seed=1, state=state, **PONG)
    score = cell(read(client), "ALE/Pong-v5", "paac")
    assert score is not None
    assert (score["value"], len(score["runs"])) == (10.0, 1)


def test_archived_and_demo_runs_external_runs_and_superseded_evaluations_do_not_count(
    client: Client, engine: Engine
) -> None:
    archived, demo, superseded = (make_scored(engine, 50.0, seed=seed, **PONG) for seed in range(3))
    external = client.post("/api/v1/runs", json=external_request()).json()["items"][0]["id"]
    with writing(engine) as session:
        session.get_one(Run, archived).archived = True
        session.get_one(Run, demo).demo = True
        session.get_one(Run, external).state = RunState.FINISHED
        session.add(evaluation_row(external, 100, 7.0))
        session.add(evaluation_row(superseded, 20_000, 99.0, protocol="noop_starts", superseded=True))
    table = read(client)
    score = cell(table, "ALE/Pong-v5", "paac")
    assert score is not None
    assert (score["value"], score["runs"]) == (50.0, [superseded])
    assert [protocol["n_runs"] for protocol in table["protocols"] if protocol["id"] == "plain"] == [0]


def test_own_evaluations_count_before_requested_ones_and_the_first_of_equal_steps(
    client: Client, engine: Engine
) -> None:
    run = make_scored(engine, 10.0, **PONG)
    with writing(engine) as session:
        session.add(evaluation_row(run, 20_000, 90.0, protocol="noop_starts", attempt=None))
        session.add(evaluation_row(run, 10_000, 80.0, protocol="noop_starts", id="Z" * 26))
        session.add(evaluation_row(run, 10_000, 3.0, protocol="noop_starts_5min", attempt=None))
    score, requested = cell(read(client), "ALE/Pong-v5", "paac"), read(client, protocol="noop_starts_5min")
    assert score is not None
    assert score["value"] == 10.0
    other = cell(requested, "ALE/Pong-v5", "paac")
    assert other is not None
    assert other["value"] == 3.0


def test_lineage_is_one_sample(client: Client, engine: Engine) -> None:
    parent = make_scored(engine, 10.0, seed=0, **PONG)
    fork = make_fork(engine, parent, 10_000, seed=1, **PONG)
    with writing(engine) as session:
        row = session.get_one(Run, fork.id)
        row.state, row.agent_steps = RunState.FINISHED, 20_000
        session.add(evaluation_row(fork.id, 20_000, 30.0, protocol="noop_starts"))
    score = cell(read(client), "ALE/Pong-v5", "paac")
    assert score is not None
    assert (score["value"], score["runs"]) == (30.0, [fork.id])


def test_fewer_seeds_than_wanted_leave_the_configuration_out(client: Client, engine: Engine) -> None:
    make_scored(engine, 20.0, config={"beta": 0.1}, **PONG)
    for seed in range(2):
        make_scored(engine, 10.0, seed=seed, **PONG)
    values = [cell(read(client, min_seeds=n), "ALE/Pong-v5", "paac") for n in (1, 2, 3)]
    assert [value and value["value"] for value in values] == [20.0, 10.0, None]


def test_score_is_normalised_by_references_of_its_own_protocol_alone(client: Client, engine: Engine) -> None:
    levels = {"noop_starts": (-20.7, 14.6), "noop_starts_5min": (-20.7, 9.3)}
    for seed, protocol in enumerate([*levels, "sticky_actions_5min"]):
        make_scored(engine, 5.0, protocol, seed=seed, **PONG)
    for protocol, (random, human) in levels.items():
        table = read(client, protocol=protocol)
        score = cell(table, "ALE/Pong-v5", "paac")
        references = [cell(table, "ALE/Pong-v5", f"published:{label}") for label in ("random", "human")]
        assert [reference and reference["value"] for reference in references] == [random, human]
        assert [reference and reference["normalised"] for reference in references] == [0.0, 100.0]
        assert score is not None
        assert score["normalised"] == pytest.approx(100 * (5 - random) / (human - random)), protocol
    [row] = [row for row in read(client, protocol="noop_starts")["rows"] if row["title"] == "Pong"]
    assert "dqn_zoo" in row["references"]
    sticky = read(client, protocol="sticky_actions_5min")
    score = cell(sticky, "ALE/Pong-v5", "paac")
    assert score is not None
    assert (score["value"], score["normalised"]) == (5.0, None)
    assert "published:random" not in [column["id"] for column in sticky["columns"]]


def test_score_observed_in_another_way_is_shown_only_without_a_comparable_one(
    client: Client, engine: Engine
) -> None:
    make_scored(engine, 20.0, environment_config={"crop": True}, **PONG)
    table = read(client, column=["paac"])
    score = cell(table, "ALE/Pong-v5", "paac")
    assert score is not None
    assert (score["value"], score["comparable"], score["normalised"]) == (20.0, False, None)
    assert table["foot_environments"] == []
    make_scored(engine, 3.0, seed=1, **PONG)
    score = cell(read(client), "ALE/Pong-v5", "paac")
    assert score is not None
    assert (score["value"], score["comparable"], score["n_configurations"]) == (3.0, True, 1)


def test_random_agent_at_10_hz_stands_beside_the_published_one_and_is_normalised(
    client: Client, engine: Engine
) -> None:
    at_10_hz = PONG | {"algorithm": "random", "environment_config": {"frame_skip": 6}, "config": {}}
    make_scored(engine, -20.7, agent_steps=2, **at_10_hz)
    table = read(client)
    shown = [column["id"] for column in table["columns"]]
    assert shown[:3] == ["published:random", "published:human", "random"]
    score = cell(table, "ALE/Pong-v5", "random")
    assert score is not None
    assert (score["comparable"], score["normalised"]) == (True, 0)


def test_foot_is_over_the_environments_that_every_scored_column_has(client: Client, engine: Engine) -> None:
    for at, request in enumerate((PONG, BREAKOUT, PONG | {"environment": "ALE/Alien-v5"})):
        make_scored(engine, 10.0 + at, **request)
    for at, request in enumerate((PONG, BREAKOUT)):
        make_scored(engine, 1.0 + at, **(request | {"algorithm": "a3c"}))
    make_scored(engine, 400.0, "plain", environment="CartPole-v1")
    columns = ["paac", "a3c", "ga3c", "published:human"]
    table = read(client, column=columns)
    shown = [column["id"] for column in table["columns"] if column["shown"]]
    assert shown == ["published:human", "paac", "ga3c", "a3c"]
    assert sorted(table["foot_environments"]) == ["ALE/Breakout-v5", "ALE/Pong-v5"]
    [mean, median, iqm] = table["foot"]
    assert (mean["name"], median["name"], iqm["name"]) == ("mean", "median", "iqm")
    assert mean["values"] == [pytest.approx((14.6 + 30.5) / 2), 10.5, None, 1.5]
    pong, breakout = 100 * (10 + 20.7) / (14.6 + 20.7), 100 * (11 - 1.7) / (30.5 - 1.7)
    assert mean["normalised"][:2] == [pytest.approx(100.0), pytest.approx((pong + breakout) / 2)]
    # CartPole has a protocol of its own: its row stays outside.
    score = cell(table, "CartPole-v1", "paac")
    assert score is not None
    assert score["value"] == 400.0
    assert len(read(client, column=["paac"])["foot_environments"]) == 3


def test_missing_cell_names_the_algorithms_that_can_fill_it(client: Client) -> None:
    table = read(client)
    rows = {row["environment"]: row for row in table["rows"]}
    assert table["protocol"] == "noop_starts"
    assert "gorila_dqn" in rows["ALE/Pong-v5"]["runnable"]
    assert rows["CartPole-v1"]["protocol"] == "plain"
    assert "a3c" in rows["HalfCheetah-v5"]["runnable"]
    assert "dqn" not in rows["HalfCheetah-v5"]["runnable"]
    people = {row["environment"]: row for row in read(client, protocol="human_starts")["rows"]}
    assert people["ALE/Pong-v5"]["runnable"] == []  # nobody has played yet


def test_profile_is_over_the_games_of_every_scored_algorithm(client: Client, engine: Engine) -> None:
    for seed, score in enumerate((14.6, -20.7)):  # 100 and 0 %
        make_scored(engine, score, seed=seed, **PONG)
    make_scored(engine, 1.7 + 28.8 / 2, **BREAKOUT)  # 50 %
    make_scored(engine, -20.7 + 35.3 / 4, **(PONG | {"algorithm": "a3c"}))  # 25 %
    make_scored(engine, 400.0, "plain", environment="CartPole-v1")

    def figure(name: str, **params: Any) -> dict[str, Any]:
        answer = client.get(f"{SCORES}/figures/{name}", params=params)
        assert answer.status_code == 200, answer.text
        figure: dict[str, Any] = answer.json()
        return figure

    both = figure("profile")
    assert both["environments"] == ["ALE/Pong-v5"]
    assert both["optimality_gaps"] == {"PAAC": pytest.approx(50.0), "A3C": pytest.approx(75.0)}
    assert [trace["name"] for trace in both["figure"]["data"]] == ["PAAC", "A3C"]
    alone = figure("optimality_gap", column=["paac", "published:human"])
    assert sorted(alone["environments"]) == ["ALE/Breakout-v5", "ALE/Pong-v5"]
    assert alone["optimality_gaps"] == {"PAAC": pytest.approx(50.0)}
    assert "over the same 2 environments; 3 runs" in alone["caption"]
    assert client.get(f"{SCORES}/figures/bars").status_code == 404


def test_profile_is_a_file_in_every_format_of_figures(client: Client, engine: Engine) -> None:
    for seed, score in enumerate((14.6, -20.7)):
        make_scored(engine, score, seed=seed, **PONG)

    def file(form: str, name: str = "profile", **params: Any) -> Response:
        answer = client.get(f"{SCORES}/figures/{name}", params=params | {"format": form, "theme": "dark"})
        assert answer.status_code == 200, answer.text
        assert f'filename="{name}.' in answer.headers["content-disposition"]
        return answer

    rows = list(csv.DictReader(file("csv").text.splitlines()))
    [trace] = client.get(f"{SCORES}/figures/profile").json()["figure"]["data"]
    drawn = zip(numbers(trace["x"]), numbers(trace["y"]), strict=True)
    assert [(row["series"], float(row["x"]), float(row["y"])) for row in rows] == [
        ("PAAC", x, y) for x, y in drawn
    ]
    assert len(list(csv.DictReader(file("csv", "optimality_gap").text.splitlines()))) == 1
    about = file("caption").text
    assert about.startswith("Human-normalised last evaluations")
    assert about.endswith("over the same 1 environment; 2 runs. Optimality gap: PAAC 50 %.\n")
    script = file("matplotlib", width_in=3.25).text
    compile(script, "profile.py", "exec")
    assert "'width_in': 3.25" in script
    assert about.split()[0] in script
    assert look(list(ALGORITHMS).index("paac"), "light").colour in script
    assert "Performance profile" in file("html").text
    assert "title" not in client.get(f"{SCORES}/figures/profile").json()["figure"]["layout"]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"protocol": "noop"}, "protocol"),
        ({"column": ["paac", "none"]}, "column.1"),
        ({"min_seeds": 0}, "min_seeds"),
        ({"environment": "ALE/Pong-v5"}, "environment"),
    ],
)
def test_wrong_parameter_is_named(sqlite_service: RunningService, params: dict[str, Any], field: str) -> None:
    answer = sqlite_service.client.get(SCORES, params=params)
    assert answer.status_code == 422
    assert field in answer.text


def test_unchanged_scores_are_not_sent_again(sqlite_service: RunningService) -> None:
    first = sqlite_service.client.get(SCORES)
    again = sqlite_service.client.get(SCORES, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    make_scored(sqlite_service.engine, 1.0, **PONG)
    changed = sqlite_service.client.get(SCORES, headers={"If-None-Match": first.headers["ETag"]})
    assert changed.status_code == 200


def test_scores_from_a_start_set_are_a_table_of_their_own(client: Client, engine: Engine) -> None:
    for seed in range(2):
        make_scored(engine, 400.0, "agent_starts:wall@2", seed=seed, **BREAKOUT)
    make_scored(engine, 300.0, "agent_starts:wall@1", **BREAKOUT)
    make_scored(engine, 20.0, **PONG)
    table = read(client)
    assert table["protocol"] == "noop_starts", "a set is of one game: never the default"
    titles = {protocol["id"]: protocol["title"] for protocol in table["protocols"]}
    assert titles["agent_starts:wall@2"] == "agent starts, wall v2"
    own = read(client, protocol="agent_starts:wall@2")
    score = cell(own, "ALE/Breakout-v5", "paac")
    assert score is not None
    assert (score["value"], len(score["runs"]), score["normalised"]) == (400.0, 2, None)
    [row] = [row for row in own["rows"] if row["environment"] == "ALE/Breakout-v5"]
    assert (row["protocol"], row["references"]) == ("agent_starts:wall@2", "")
    [pong] = [row for row in own["rows"] if row["environment"] == "ALE/Pong-v5"]
    assert pong["protocol"] == "noop_starts"
    assert client.get(SCORES, params={"protocol": "agent_starts:Wall"}).status_code == 422
