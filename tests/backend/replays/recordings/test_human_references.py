"""People's means over their games as the human references of an installation."""

from typing import Any

import pytest
from sqlalchemy import Engine

from backend.access.auth import repository as auth
from backend.db import PlaySession, Recording
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.engine import writing
from backend.platform.principals import Role
from tests.backend.analysis.metrics.oracle import RecordedRun
from tests.support.rows import evaluation_row
from tests.support.service import RunningService
from tests.support.start_sets import add_recording

pytestmark = pytest.mark.service

MAZE = "Labyrinth-Small-v0"


def _user(engine: Engine, name: str) -> str:
    with writing(engine) as session:
        return auth.add_user(session, name, Role.OPERATOR).id


def _play(engine: Engine, user_id: str, *lengths: int, environment: str = MAZE, **changes: Any) -> list[str]:
    """Store games whose returns are their numbers of decisions."""
    ids = [add_recording(engine, user_id, environment=environment, n=n) for n in lengths]
    with writing(engine) as session:
        for recording_id in ids:
            for name, value in changes.items():
                setattr(session.get_one(Recording, recording_id), name, value)
    return ids


def _references(service: RunningService) -> list[dict[str, Any]]:
    answer = service.client.get("/api/v1/recordings/human-references")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_reference_is_the_highest_mean_of_a_person_who_has_finished_five_games(
    service: RunningService,
) -> None:
    engine = service.engine
    cyd, ada, bob = (_user(engine, name) for name in ("cyd", "ada", "bob"))
    _play(engine, ada, 10, 20, 30, 40)
    _play(engine, bob, 1, 2, 3, 4, 5)
    _play(engine, cyd, 1, 1, 1, 1, 1, 1)
    [reference] = _references(service)
    assert reference == {
        "environment": MAZE, "protocol": "human_play", "user_id": bob, "player": "bob", "mean_return": 3.0,
        "n_games": 5, "n_frames": 60, "seen_by_people": "a map of the maze",
    }  # fmt: skip
    [fifth] = _play(engine, ada, 50)
    assert [(item["player"], item["mean_return"]) for item in _references(service)] == [("ada", 30.0)]
    assert service.client.delete(f"/api/v1/recordings/{fifth}").status_code == 204
    assert [item["player"] for item in _references(service)] == ["bob"]


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": "scripted"},
        {"protocol": "joint"},
        {"protocol": "practice"},
        {"finished": False},
        {"ended_at": None},
        {"environment_config": {"frame_skip": 1}},
    ],
)
def test_games_that_are_no_persons_or_were_left_or_played_otherwise_do_not_count(
    service: RunningService, changes: dict[str, Any]
) -> None:
    ada = _user(service.engine, "ada")
    _play(service.engine, ada, 1, 2, 3, 4)
    _play(service.engine, ada, *range(5, 10), **changes)
    assert _references(service) == []
    _play(service.engine, ada, 5)
    [reference] = _references(service)
    assert (reference["mean_return"], reference["n_games"]) == (3.0, 5)


def test_games_of_an_open_session_do_not_count_until_it_has_ended(service: RunningService) -> None:
    engine, ada = service.engine, _user(service.engine, "ada")
    with writing(engine) as session:
        row = PlaySession(
            id=new_id(),
            user_id=ada,
            environment=MAZE,
            environment_config={},
            scripted=False,
            state="running",
            created_at=database_now(session),
        )
        session.add(row)
    for n in range(5):
        add_recording(engine, ada, environment=MAZE, n=n + 1, session_id=row.id)
    assert _references(service) == [], "a script may still join it"
    with writing(engine) as session:
        session.get_one(PlaySession, row.id).state = "ended"
    assert [item["n_games"] for item in _references(service)] == [5]


def test_game_with_a_published_human_score_keeps_that(service: RunningService) -> None:
    ada = _user(service.engine, "ada")
    _play(service.engine, ada, 1, 2, 3, 4, 5, environment="ALE/Breakout-v5")
    _play(service.engine, ada, 1, 2, 3, 4, 5, environment="ALE/Adventure-v5")
    assert [item["environment"] for item in _references(service)] == ["ALE/Adventure-v5"]


def test_scores_have_the_reference_in_a_column_of_its_own(service: RunningService) -> None:
    engine, ada = service.engine, _user(service.engine, "ada")
    address = "/api/v1/scores"
    assert "human_here" not in [column["id"] for column in service.client.get(address).json()["columns"]]
    _play(engine, ada, 1, 2, 3, 4, 5)
    table = service.client.get(address, params={"column": "human_here", "protocol": "plain"}).json()
    [head] = [column for column in table["columns"] if column["shown"]]
    assert (head["title"], head["source"], head["n"]) == ("human", "people", 1)
    cells = {row["environment"]: row["cells"] for row in table["rows"]}
    [mean] = cells[MAZE]
    assert (mean["value"], mean["n_episodes"], mean["normalised"]) == (3.0, 5, None)
    assert "ada over 5 games here, under the protocol human_play" in mean["rule"]
    assert "People see a map of the maze, agents do not" in mean["rule"]
    assert cells["ALE/Breakout-v5"] == [None]
    assert table["foot"] == [], "it is ranked with nothing"


def test_learning_curve_has_the_reference_beside_runs_with_the_same_settings(service: RunningService) -> None:
    engine, ada = service.engine, _user(service.engine, "ada")
    _play(engine, ada, 1, 2, 3, 4, 5)

    def labels(number: int, figure: str = "learning_curve", **changes: Any) -> list[str]:
        recorded = RecordedRun(engine, number, changes={"environment": MAZE, "algorithm": "a3c"} | changes)
        recorded.append({("rollout/episode_return", ""): 5, ("eval/plain/mean_return", ""): 2})
        with writing(engine) as session:
            session.add(evaluation_row(recorded.run_id, 1000, 1.0, protocol="plain"))
        query = {"run": recorded.run_id} | ({"metric": "eval/plain/mean_return"} if figure == "curve" else {})
        answer = service.client.get(f"/api/v1/figures/{figure}", params=query)
        assert answer.status_code == 200, answer.text
        notes = [note["text"] for note in answer.json()["layout"].get("annotations", [])]
        return [text for text in notes if "human" in text]

    assert labels(0) == ["human here, 5 games, with a map of the maze 3 (human play)"]
    assert labels(1, environment_config={"frame_skip": 2}) == []
    assert labels(2, "curve") == [], "those scores are of another protocol"


def test_game_with_a_decision_of_nobody_is_damaged(sqlite_service: RunningService) -> None:
    service = sqlite_service
    user = _user(service.engine, "ada")
    game = add_recording(service.engine, user, environment=MAZE, n=6, turns=[(0, 3), (1, 3)])
    answer = service.client.get("/api/v1/figures/recording", params={"recording": game})
    assert answer.status_code == 410, answer.text
