"""Studies of the papers' figures and tables, and of start sets."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import Client
from sqlalchemy import select

from backend.db import Experiment, Run
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.experiments.definitions import DEFINITIONS, ITEMS
from backend.experiments.definitions.base import study_of
from backend.experiments.experiments import repository
from backend.experiments.experiments.study import prepare
from backend.experiments.specs.study import Scale, StudySpec
from backend.platform.principals import Role
from backend.runs.runs import service as runs
from backend.specs.states import RunState
from tests.backend.experiments.studies.test_endpoints import (
    EVALUATED,
    STUDIES,
    created,
    detail,
    end_runs,
    reconcile,
    study_body,
)
from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.start_sets import add_game, add_recording, mark_verified

pytestmark = pytest.mark.service


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"item": "a3c-figure-22"}, "item"),
        ({"item": "a3c-figure-2", "scale": "days"}, "scale"),
        (
            {"item": "gorila-table-1", "scale": "hours", "starts": {"ALE/Assault-v5": "agent_starts:a"}},
            "starts",
        ),
        ({}, "body"),
    ],
)
def test_unknown_item_or_scale_is_named(
    sqlite_service: RunningService, body: dict[str, Any], field: str
) -> None:
    answer = sqlite_service.client.post(STUDIES, json=body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_item_of_a_paper_is_started_by_one_request_and_listed_with_it(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    alone = client.post(STUDIES, json={"item": "a3c-figure-2"}).json()
    assert (alone["state"], alone["scale"], alone["n_runs"]) == ("running", "minutes", 24)
    study = client.post(STUDIES, json={"item": "paac-figure-4"}).json()
    assert (study["definition"], study["scale"]) == ("paac-figures-3-4", "minutes")
    shown = detail(client, study)
    assert [item["label"] for item in shown["items"]] == ["Figure 3", "Figure 4"]
    assert shown["differs"]
    papers = {paper["id"]: paper for paper in client.get("/api/v1/papers").json()["items"]}
    by_item = {item["id"]: item for item in papers["paac"]["items"]}
    for name in ("paac-figure-3", "paac-figure-4"):
        assert [row["id"] for row in by_item[name]["studies"]] == [study["id"]]
    (listed,) = client.get(STUDIES, params={"definition": "paac-figures-3-4"}).json()["items"]
    assert listed["id"] == study["id"]


def test_latest_studies_of_a_definition_are_read_alone(sqlite_service: RunningService) -> None:
    with writing(sqlite_service.engine) as session:
        for number in range(12):
            study = Experiment(
                id=new_id(), created_at=datetime.now(UTC) + timedelta(seconds=number), kind="study",
                name=f"s{number}",
                definition="a3c-figure-2" if number % 2 else "paac-table-1", scale="minutes",
                spec=StudySpec.model_validate(study_body()).model_dump(mode="json"), state="finished",
                state_reason="for the test", revision=0,
            )  # fmt: skip
            session.add(study)
    with reading(sqlite_service.engine) as session:
        latest = repository.of_definitions(session, 5)
    assert {name: [study.name for study in rows] for name, rows in latest.items()} == {
        "a3c-figure-2": ["s11", "s9", "s7", "s5", "s3"], "paac-table-1": ["s10", "s8", "s6", "s4", "s2"]
    }  # fmt: skip


def _start_set(service: RunningService, folder: Path, name: str, environment: str) -> str:
    """Create a set of an agent's games as if a worker had verified it; return its id."""
    run = make_run(service.engine, environment=environment)
    add_game(service.engine, service.artifacts, run, folder)
    body = {"name": name, "run": run.id, "points": 5}
    set_id: str = service.client.post("/api/v1/start-sets", json=body).json()["id"]
    mark_verified(service.engine, set_id)
    with writing(service.engine) as session:
        runs.transition(session, runs.get(session, run.id, for_update=True), RunState.STOPPED, "for the test")
    return set_id


def test_study_is_evaluated_from_the_sets_of_its_games_and_says_so(
    service: RunningService, client: Client, tmp_path: Path
) -> None:
    games = ["ALE/Breakout-v5", "ALE/Pong-v5"]
    sets = [_start_set(service, tmp_path, name, game) for name, game in zip("bp", games, strict=True)]
    starts = {games[0]: "agent_starts:b", games[1]: "agent_starts:p"}
    figure = {"id": "scores", "title": "Scores", "kind": "table", "reduction": {"source": "evaluations"}}
    study = created(client, environments=games, starts=starts, figures=[figure], draws={"n": 1})
    with reading(service.engine) as session:
        of_study = session.scalars(select(Run).where(Run.group == study["name"])).all()
    protocols = {(run.environment, run.spec["config"]["evaluation_protocol"]) for run in of_study}
    assert protocols == {(games[0], "agent_starts:b@1"), (games[1], "agent_starts:p@1")}
    drawn = client.get(f"{STUDIES}/{study['id']}/figures/scores").json()
    small = "5 starts from 1 game, 100 frames; small: fewer than 5 games"
    assert f"agent starts, b v1: {small}" in drawn["caption"]
    assert f"agent starts, p v1: {small}" in drawn["caption"]
    end_runs(service.engine, RunState.FAILED)
    assert client.delete(f"/api/v1/start-sets/{sets[1]}").status_code == 204
    refused = client.post(f"{STUDIES}/{study['id']}/retry")
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert (error["field"], error["message"]) == (
        f"starts.{games[1]}",
        "start set p@1 has been deleted",
    )
    added = client.post(f"{STUDIES}/{study['id']}/extend", json={"environments": ["ALE/Qbert-v5"]})
    assert added.json()["errors"][0]["field"] == "environments.0"


def test_set_that_is_deleted_while_runs_wait_ends_their_cells_alone(
    service: RunningService, client: Client, tmp_path: Path
) -> None:
    games = ["ALE/Breakout-v5", "ALE/Pong-v5"]
    sets = [_start_set(service, tmp_path, name, game) for name, game in zip("bp", games, strict=True)]
    starts = {games[0]: "agent_starts:b", games[1]: "agent_starts:p"}
    arms = study_body()["arms"][:1]
    study = created(client, arms=arms, environments=games, starts=starts, draws={"n": 1})
    end_runs(service.engine, RunState.FAILED)
    client.patch(f"{STUDIES}/{study['id']}", json={"concurrency": 1})
    assert client.post(f"{STUDIES}/{study['id']}/retry").status_code == 200
    assert client.delete(f"/api/v1/start-sets/{sets[1]}").status_code == 204
    end_runs(service.engine, attempt=2)
    reconcile(service.engine, study)
    ended = detail(client, study)
    assert (ended["state"], ended["runs"]) == ("finished", {"finished": 1, "invalid": 1})


def test_study_with_a_set_that_it_cannot_start_from_is_refused_with_its_field(
    service: RunningService, client: Client, tmp_path: Path
) -> None:
    _start_set(service, tmp_path, "b", "ALE/Breakout-v5")
    arm = {"label": "PAAC", "algorithm": "paac", "config": {"evaluation_protocol": "agent_starts:b"}}
    protocol = "config.evaluation_protocol"
    refused: list[tuple[dict[str, Any], str, str]] = [
        ({"starts": {"ALE/Pong-v5": "agent_starts:b"}}, "starts.ALE/Pong-v5", "is of ALE/Breakout-v5"),
        (
            {"starts": {"ALE/Pong-v5": "agent_starts:none"}},
            "starts.ALE/Pong-v5",
            "there is no start set none",
        ),
        ({"starts": {"ALE/Qbert-v5": "agent_starts:b"}}, "starts.ALE/Qbert-v5", "not an environment"),
        ({"starts": {"ALE/Pong-v5": "noop_starts"}}, "starts.ALE/Pong-v5", "must start from a set"),
        ({"arms": [arm]}, "arms.0.config.evaluation_protocol", "is of ALE/Breakout-v5"),
        (
            {"draws": {"n": 1, "space": {protocol: {"values": ["noop_starts", "agent_starts:b"]}}}},
            f"draws.space.{protocol}",
            "name the version of each start set, as in agent_starts:b@1",
        ),
    ]
    for changes, field, reason in refused:
        body = study_body(environments=["ALE/Pong-v5"], **changes)
        answer = client.post(STUDIES, json={"study": body})
        assert answer.status_code == 422, answer.text
        errors = {error["field"]: error["message"] for error in answer.json()["errors"]}
        assert reason in errors[f"study.{field}"], errors
    assert client.get(STUDIES).json()["items"] == []


def test_item_that_needs_people_offers_agent_starts_of_every_game_of_a_scale(
    service: RunningService, client: Client, tmp_path: Path
) -> None:
    papers = client.get("/api/v1/papers").json()["items"]
    items = {item["id"]: item for paper in papers for item in paper["items"]}
    assert sorted(name for name, item in items.items() if item["needs_people"]) == [
        "a3c-table-1", "a3c-table-s1", "gorila-figure-3", "gorila-figure-4", "gorila-figure-5",
        "gorila-table-2", "gorila-table-3",
    ]  # fmt: skip
    table = items["gorila-table-2"]
    assert table["needs"].startswith("Needs games played by people")
    [games] = [scale["environments"] for scale in table["scales"] if scale["scale"] == "hours"]
    starts = {}
    for number, game in enumerate(games):
        _start_set(service, tmp_path, f"set-{number}", game)
        starts[game] = f"agent_starts:set-{number}"
    body = {"item": table["id"], "scale": "hours", "starts": starts}
    cost = client.post(f"{STUDIES}/estimate", json=body).json()
    assert any("scores are not normalised" in line for line in cost["differs"])
    assert "No-op starts instead of human starts" not in cost["differs"]
    study = client.post(STUDIES, json=body)
    assert study.status_code == 201, study.text
    shown = detail(client, study.json())
    assert shown["spec"]["starts"] == {game: f"{protocol}@1" for game, protocol in starts.items()}
    assert shown["differs"] == cost["differs"]
    assert {figure["reduction"]["normalise"] for figure in shown["spec"]["figures"]} == {None}
    with_figures = {item["id"] for item in shown["items"] if item["figure"] is not None}
    assert "gorila-table-2" in with_figures
    assert "gorila-table-1" not in with_figures, "from no-op starts"
    first = client.post(STUDIES, json=body | {"starts": {games[0]: starts[games[0]]}})
    assert (first.status_code, games[1] in first.json()["errors"][0]["message"]) == (422, True)
    wrong = starts | {games[1]: "human_starts:set-1"}
    [error] = client.post(STUDIES, json=body | {"starts": wrong}).json()["errors"]
    assert (error["field"], "was not played by people" in error["message"]) == (f"starts.{games[1]}", True)


@pytest.mark.parametrize(
    "item_id", sorted(item.id for _, _, item in ITEMS.values() if item.needs_people), ids=str
)
def test_item_that_needs_people_starts_from_sets_of_their_games_and_says_whose_and_how_many(
    sqlite_service: RunningService, item_id: str
) -> None:
    service, client = sqlite_service, sqlite_service.client
    _, definition, item = ITEMS[item_id]
    scale: Scale = "hours" if "hours" in definition.scales else "paper"
    games = definition.scales[scale].environments
    with service.client_as(Role.OPERATOR) as other:
        people = [person.get("/api/v1/auth/me").json()["id"] for person in (client, other)]
    starts = {}
    for number, game in enumerate(games):
        n_games = 5 if number == 0 else 2
        played = [
            add_recording(service.engine, people[k % 2], environment=game, n=30) for k in range(n_games)
        ]
        body = {"name": f"set-{number}", "recordings": played, "points": 60 if number == 0 else 20}
        mark_verified(service.engine, client.post("/api/v1/start-sets", json=body).json()["id"])
        starts[game] = f"human_starts:set-{number}"
    answer = client.post(STUDIES, json={"item": item_id, "scale": scale, "starts": starts, "name": "ours"})
    assert answer.status_code == 201, answer.text
    study = detail(client, answer.json())
    assert study["spec"]["starts"] == {game: f"{protocol}@1" for game, protocol in starts.items()}
    assert study["differs"][0].startswith("States of games that people have played here")
    evaluated = {
        run["environment"]: client.get(f"/api/v1/runs/{run['id']}").json()["spec"]["config"]
        for run in client.get("/api/v1/runs", params={"group": "ours"}).json()["items"]
    }
    assert evaluated, "runs have been queued"
    for game, config in evaluated.items():
        assert config["evaluation_protocol"] == f"{starts[game]}@1"
    assert item.figure is not None
    drawn = client.get(f"{STUDIES}/{study['id']}/figures/{item.figure.id}").json()
    assert "human starts, set-0 v1: 60 starts from 5 games by 2 people, 500 frames" in drawn["caption"]
    small = "20 starts from 2 games by 2 people, 200 frames; small: fewer than 5 games"
    assert f"human starts, set-1 v1: {small}" in drawn["caption"]


def test_every_item_at_every_scale_can_be_started(sqlite_service: RunningService) -> None:
    with reading(sqlite_service.engine) as session:
        for paper, definition in DEFINITIONS.values():
            for scale in definition.scales:
                study = study_of(paper, definition, scale)
                if study.n_runs <= 800:  # the others have the same arms on as many games
                    _, planned, _ = prepare(session, study)
                    assert len(planned) == study.n_runs, (definition.id, scale)
    without = {name for name, (_, known) in DEFINITIONS.items() if {"hours", "paper"} - known.scales.keys()}
    # One is about this installation's machines; the others are cards that no paper has.
    of_text_alone = {"a3c-data-by-actors", "a3c-optimizers-16", "gorila-stability", "ga3c-lag"}
    assert without == {"ga3c-table-1", *of_text_alone}


def test_item_whose_draws_choose_a_setting_of_its_preset_can_be_extended(service: RunningService) -> None:
    client = service.client
    study = client.post(STUDIES, json={"item": "a3c-continuous", "scale": "minutes"}).json()
    answer = client.post(f"{STUDIES}/{study['id']}/extend", json={"draws": study["n_runs"] + 1})
    assert (answer.status_code, answer.json()["n_runs"]) == (200, study["n_runs"] + 1), answer.text


def test_extension_is_refused_for_what_it_adds_not_for_what_an_earlier_version_allowed(
    service: RunningService,
) -> None:
    client = service.client
    figure = {"id": "f", "title": "F", "kind": "table", "reduction": EVALUATED}
    body = {"name": "s", "arms": [{"label": "A3C", "algorithm": "a3c"}], "environments": ["ALE/Pong-v5"],
            "draws": {"n": 1}, "run": {"stop": {"agent_steps": 10}}, "figures": [figure]}  # fmt: skip
    study = client.post(STUDIES, json={"study": body}).json()
    refused = client.post(f"{STUDIES}/{study['id']}/extend", json={"environments": ["CartPole-v1"]})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "environments")
    assert "has no such score for CartPole-v1" in refused.text
    with writing(service.engine) as session:
        row = session.get_one(Experiment, study["id"])
        row.spec = row.spec | {"figures": [figure | {"reduction": {"normalise": "human"}}]}
    answer = client.post(f"{STUDIES}/{study['id']}/extend", json={"draws": 2})
    assert (answer.status_code, answer.json()["n_runs"]) == (200, 2), answer.text
