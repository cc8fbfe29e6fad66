import json
from pathlib import Path
from typing import Any

import pytest

from backend.db.engine import writing
from backend.fleet.jobs import service as jobs
from backend.platform.principals import Role
from backend.replays.recordings import repository as recordings
from backend.replays.start_sets import service as start_sets
from backend.runs.starts import service as starts
from backend.specs.environments import ENVIRONMENTS
from backend.specs.start_sets import StartSetContent
from tests.support.rows import add_host, make_checkpoint, make_run
from tests.support.service import RunningService
from tests.support.start_sets import add_game, add_recording, mark_verified

pytestmark = pytest.mark.service

GAME = "ALE/Breakout-v5"
URL = "/api/v1/start-sets"


def _run(service: RunningService, folder: Path, games: int = 2, **changes: Any) -> Any:
    run = make_run(service.engine, **({"environment": GAME} | changes))
    for k in range(games):
        add_game(service.engine, service.artifacts, run, folder, agent_steps=100 * (k + 1))
    return run


def _ready(service: RunningService, folder: Path, name: str = "wall", **request: Any) -> dict[str, Any]:
    body = {"name": name, "run": _run(service, folder).id, "points": 10} | request
    created = service.client.post(URL, json=body)
    assert created.status_code == 201, created.text
    mark_verified(service.engine, created.json()["id"])
    answer: dict[str, Any] = service.client.get(f"{URL}/{created.json()['id']}").json()
    return answer


def _errors(answer: Any) -> dict[str, str]:
    assert answer.status_code == 422, answer.text
    return {error["field"]: error["message"] for error in answer.json()["errors"]}


def test_set_of_a_runs_episodes_waits_for_a_worker_and_then_names_its_protocols(
    service: RunningService, tmp_path: Path
) -> None:
    run = _run(service, tmp_path)
    created = service.client.post(URL, json={"name": "wall", "run": run.id, "points": 30})
    assert created.status_code == 201
    row = created.json()
    expected = {
        "name": "wall", "version": 1, "environment": GAME, "source": "agent", "n_points": 30, "n_games": 2,
        "n_people": 0, "n_frames": None, "state": "verifying", "error": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, [name for name in ENVIRONMENTS if name != GAME])
        assert job is None, "a host without the game"
        job = jobs.claim(session, "here", 10, [GAME])
        assert job is not None
        assert (job.kind, job.target_id, job.run_id) == ("start_set", row["id"], None)
    mark_verified(service.engine, row["id"])
    ready = service.client.get(f"{URL}/{row['id']}").json()
    assert (ready["state"], ready["ale_py"], ready["n_frames"]) == ("ready", "0.12.1", 200)
    assert ready["protocols"] == ["agent_starts:wall@1", "agent_starts_greedy:wall@1"]
    assert service.client.get(URL).json()["items"] == [ready]
    assert service.client.get(URL, params={"environment": "ALE/Pong-v5"}).json()["items"] == []


def test_points_are_distinct_states_drawn_by_the_seed_without_the_first_frames(
    service: RunningService, tmp_path: Path
) -> None:
    run = _run(service, tmp_path, 3)

    def points(seed: int) -> list[tuple[int, int]]:
        body = {"name": "wall", "run": run.id, "points": 100, "seed": seed}
        row = service.client.post(URL, json=body).json()
        mark_verified(service.engine, row["id"])
        content = service.client.get(f"{URL}/{row['id']}/export").json()["content"]
        for point in content["points"]:
            assert point["score"] == point["decision"], "one a decision, up to the point"
        return [(point["game"], point["decision"]) for point in content["points"]]

    first = points(0)
    assert points(0) == first
    assert points(1) != first
    assert len(set(first)) == 100
    assert {game for game, _ in first} == {0, 1, 2}
    assert min(decision for _, decision in first) >= 4
    assert max(decision for _, decision in first) < 50
    assert sorted(first) != first, "in random order"


def test_number_of_a_version_is_never_given_again(service: RunningService, tmp_path: Path) -> None:
    assert [_ready(service, tmp_path)["version"] for _ in range(2)] == [1, 2]
    second = service.client.get(URL).json()["items"][0]
    assert service.client.delete(f"{URL}/{second['id']}").status_code == 204
    assert service.client.get(f"{URL}/{second['id']}").status_code == 404
    assert [row["version"] for row in service.client.get(URL).json()["items"]] == [1]
    assert _ready(service, tmp_path)["version"] == 3


def test_evaluation_from_a_set_is_one_of_its_version_with_an_episode_from_each_point(
    service: RunningService, tmp_path: Path
) -> None:
    _ready(service, tmp_path)
    latest = _ready(service, tmp_path)
    _ready(service, tmp_path, "other")
    agent = make_run(service.engine, environment=GAME)
    make_checkpoint(service.engine, agent, 100)
    url = f"/api/v1/runs/{agent.id}/evaluations"
    evaluation = service.client.post(url, json={"protocol": "agent_starts:wall"}).json()
    assert (evaluation["protocol"], evaluation["n_episodes"]) == ("agent_starts:wall@2", 10)
    body = {"protocol": "agent_starts_greedy:wall@1", "episodes": 3}
    first = service.client.post(url, json=body).json()
    assert (first["protocol"], first["n_episodes"]) == ("agent_starts_greedy:wall@1", 3)
    offered = {item["id"]: item for item in service.client.get(f"{url}/protocols").json()["items"]}
    assert {*latest["protocols"], "agent_starts:wall@1", "agent_starts:other@1"} <= set(offered)
    assert offered["agent_starts:wall@2"]["title"] == "agent starts, wall v2"
    assert offered["agent_starts:wall@2"]["n_episodes"] == 10
    assert offered["noop_starts"]["n_episodes"] == 30
    assert offered["human_starts"]["unavailable"].startswith("it needs a start set of games played by people")


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ("agent_starts:nothing", "there is no start set nothing"),
        ("agent_starts:wall@7", "there is no start set wall@7"),
        ("human_starts:wall", "was not played by people: use agent_starts:wall"),
        ("agent_starts:court", "is of ALE/Pong-v5, and the agent plays ALE/Breakout-v5"),
        ("agent_starts:gone", "has been deleted"),
        ("agent_starts:waiting", "is being verified"),
        ("agent_starts:bad", "could not be verified: game 0: RAM"),
        ("agent_starts", "needs a start set"),
        ("agent_starts:Wall", "has no protocol"),
    ],
)
def test_set_that_agents_cannot_start_from_is_refused(
    service: RunningService, tmp_path: Path, protocol: str, reason: str
) -> None:
    _ready(service, tmp_path)
    pong = _run(service, tmp_path, environment="ALE/Pong-v5").id
    _ready(service, tmp_path, "court", run=pong)
    gone = _ready(service, tmp_path, "gone")
    assert service.client.delete(f"{URL}/{gone['id']}").status_code == 204
    waiting = {"name": "waiting", "run": _run(service, tmp_path).id, "points": 1}
    assert service.client.post(URL, json=waiting).status_code == 201
    bad = service.client.post(URL, json=waiting | {"name": "bad"}).json()
    with writing(service.engine) as session:
        starts.record_mismatch(session, bad["id"], "game 0: RAM differs")
    agent = make_run(service.engine, environment=GAME)
    make_checkpoint(service.engine, agent, 100)
    url = f"/api/v1/runs/{agent.id}/evaluations"
    assert reason in _errors(service.client.post(url, json={"protocol": protocol}))["protocol"]
    assert service.client.get(url).json()["items"] == []


def test_agents_of_another_mode_do_not_start_from_a_set(service: RunningService, tmp_path: Path) -> None:
    _ready(service, tmp_path)
    agent = make_run(service.engine, environment=GAME, environment_config={"mode": 4})
    make_checkpoint(service.engine, agent, 100)
    url = f"/api/v1/runs/{agent.id}/evaluations"
    answer = service.client.post(url, json={"protocol": "agent_starts:wall"})
    assert "another mode" in _errors(answer)["protocol"]


def test_exported_set_imports_as_the_next_version(service: RunningService, tmp_path: Path) -> None:
    row = _ready(service, tmp_path)
    exported = service.client.get(f"{URL}/{row['id']}/export")
    assert 'filename="start-set-wall-v1.json"' in exported.headers["Content-Disposition"]
    assert b"states" not in exported.content, "a worker derives them"
    imported = service.client.post(f"{URL}/import", json={"file": exported.json()}).json()
    assert (imported["version"], imported["state"]) == (2, "verifying")
    assert imported["origin"] == "imported from wall@1"
    assert imported["sha256"] == exported.json()["sha256"]
    named = service.client.post(f"{URL}/import", json={"file": exported.json(), "name": "mine"}).json()
    assert (named["name"], named["version"]) == ("mine", 1)


@pytest.mark.parametrize(
    ("path", "value", "field", "reason"),
    [
        (("points", 0, "score"), 99.5, "file.sha256", "differs"),
        (("environment",), "ALE/Pong-v5", "file.content.rom_md5", "another ROM"),
        (("environment",), "CartPole-v1", "file.content.environment", "not an Atari game"),
        (("rom_md5",), "0" * 32, "file.content.rom_md5", "another ROM"),
        (("n_people",), 3, "file.content.n_people", "people"),
        (("games", 0, "environment_config", "sticky_actions"), 0.25,
         "file.content.games.0.environment_config", "sticky"),
        (("games", 0, "environment_config", "noop_max"), -1,
         "file.content.games.0.environment_config.noop_max", "at least 0"),
        (("games", 0, "actions"), "eJwDAA", "file.content.games.0.actions", "damaged"),
        (("points", 0, "game"), 9, "file.content", "names game 9"),
    ],
)  # fmt: skip
def test_changed_or_foreign_file_is_refused(
    service: RunningService, tmp_path: Path, path: tuple[Any, ...], value: Any, field: str, reason: str
) -> None:
    row = _ready(service, tmp_path)
    file = service.client.get(f"{URL}/{row['id']}/export").json()
    place = file["content"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    if field != "file.sha256" and reason not in ("damaged", "names game 9"):
        file["sha256"] = StartSetContent.model_validate_json(json.dumps(file["content"])).checksum()
    errors = _errors(service.client.post(f"{URL}/import", json={"file": file}))
    assert reason in errors[field], errors
    assert len(service.client.get(URL).json()["items"]) == 1


def test_unusable_games_are_refused(service: RunningService, tmp_path: Path) -> None:
    cartpole = make_run(service.engine)
    add_game(service.engine, service.artifacts, cartpole, tmp_path)
    breakout, empty = _run(service, tmp_path), make_run(service.engine, environment=GAME)
    episodes = [
        add_game(service.engine, service.artifacts, run, tmp_path, agent_steps=900).id
        for run in (breakout, _run(service, tmp_path, environment="ALE/Pong-v5"))
    ]
    sticky = _run(service, tmp_path, environment_config={"sticky_actions": 0.25})
    started = make_run(service.engine, environment=GAME)
    add_game(service.engine, service.artifacts, started, tmp_path, protocol="agent_starts:wall@1")
    for body, field, reason in [
        ({"run": cartpole.id}, "run", "start sets are of Atari games"),
        ({"run": empty.id}, "run", "no recorded episodes"),
        ({"run": sticky.id}, "run", "sticky actions"),
        ({"run": started.id}, "run", "itself starts from a start set"),
        ({"run": breakout.id, "points": 500}, "points", "the games have 138 states"),
        ({"episodes": episodes}, "episodes", "several games"),
        ({"episodes": ["0" * 26]}, "episodes.0", "does not exist"),
        ({"run": breakout.id, "name": "No"}, "name", "lower-case letters"),
    ]:
        errors = _errors(service.client.post(URL, json={"name": "wall"} | body))
        assert reason in errors[field], errors
    assert service.client.get(URL).json()["items"] == []


def _user_id(client: Any) -> str:
    return str(client.get("/api/v1/auth/me").json()["id"])


def test_set_of_peoples_recordings_is_human_and_counts_games_people_and_frames(
    service: RunningService,
) -> None:
    with service.client_as(Role.OPERATOR) as other:
        people = [_user_id(service.client), _user_id(other)]
    for k in range(3):
        add_recording(service.engine, people[k % 2])
    add_recording(service.engine, people[0], protocol="scripted")
    add_recording(service.engine, people[0], environment="ALE/Pong-v5")
    add_recording(service.engine, people[0], ended=False)
    row = service.client.post(URL, json={"name": "wall", "environment": GAME, "points": 60}).json()
    expected = {"source": "human", "n_games": 3, "n_people": 2, "is_small": True, "state": "verifying"}
    assert {name: row[name] for name in expected} == expected
    assert row["origin"] == "3 recordings of people"
    assert row["protocols"] == ["human_starts:wall@1", "human_starts_greedy:wall@1"]
    mark_verified(service.engine, row["id"])
    ready = service.client.get(f"{URL}/{row['id']}").json()
    assert ready["caption"] == "60 starts from 3 games by 2 people, 300 frames; small: fewer than 5 games"
    assert "user" not in service.client.get(f"{URL}/{row['id']}/export").text
    for _ in range(2):
        add_recording(service.engine, people[0])
    larger = service.client.post(URL, json={"name": "wall", "environment": GAME, "points": 100}).json()
    assert (larger["n_games"], larger["is_small"]) == (5, False)
    assert "small" not in larger["caption"]


def test_people_without_a_start_are_not_counted(service: RunningService) -> None:
    with service.client_as(Role.OPERATOR) as other:
        add_recording(service.engine, _user_id(other), n=3)
    add_recording(service.engine, _user_id(service.client))
    row = service.client.post(URL, json={"name": "wall", "environment": GAME, "points": 40}).json()
    assert (row["n_games"], row["n_people"], row["caption"][:31]) == (1, 1, "40 starts from 1 game by 1 pers")


def test_set_of_scripts_recordings_is_never_one_of_people(service: RunningService, tmp_path: Path) -> None:
    me = _user_id(service.client)
    scripted = [add_recording(service.engine, me, protocol="scripted") for _ in range(2)]
    row = service.client.post(URL, json={"name": "wall", "recordings": scripted, "points": 10}).json()
    assert (row["source"], row["n_people"], row["origin"]) == ("scripted", 0, "2 recordings of scripts")
    assert row["protocols"] == ["agent_starts:wall@1", "agent_starts_greedy:wall@1"]
    human = add_recording(service.engine, me)
    pong = add_recording(service.engine, me, environment="ALE/Pong-v5")
    open_one = add_recording(service.engine, me, ended=False)
    run = _run(service, tmp_path).id
    refused: list[tuple[dict[str, Any], str, str]] = [
        ({"recordings": [human, scripted[0]]}, "recordings.1", "never in one set"),
        ({"recordings": [human, pong]}, "recordings.1", "is of ALE/Pong-v5"),
        ({"recordings": [open_one]}, "recordings.0", "session is open"),
        ({"recordings": ["0" * 26]}, "recordings.0", "does not exist"),
        ({"environment": "ALE/Seaquest-v5"}, "environment", "nobody has played ALE/Seaquest-v5"),
        ({"environment": "CartPole-v1"}, "environment", "Atari games"),
        ({"environment": GAME, "run": run}, "body", "one of run, episodes, environment and recordings"),
    ]
    for body, field, reason in refused:
        errors = _errors(service.client.post(URL, json={"name": "wall", **body}))
        assert reason in errors[field], errors
    assert len(service.client.get(URL).json()["items"]) == 1


def test_games_of_an_open_play_session_are_no_source(service: RunningService) -> None:
    me = _user_id(service.client)
    add_host(service.engine, "a", environments=[GAME])
    session = service.client.post("/api/v1/play", json={"environment": GAME}).json()["id"]
    recording = add_recording(service.engine, me, session_id=session)
    body = {"name": "wall", "points": 10}
    of_game = _errors(service.client.post(URL, json=body | {"environment": GAME}))
    assert "only in a session that is still open" in of_game["environment"]
    of_recording = _errors(service.client.post(URL, json=body | {"recordings": [recording]}))
    assert "session is open" in of_recording["recordings.0"]
    assert service.client.delete(f"/api/v1/play/{session}").status_code == 204
    row = service.client.post(URL, json=body | {"environment": GAME}).json()
    assert (row["source"], row["n_games"]) == ("human", 1)


@pytest.mark.parametrize(("players", "protocol"), [("people", "human_play"), ("scripts", "scripted")])
def test_set_of_a_game_has_the_latest_games_without_damaged_ones_and_those_of_open_sessions(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, players: str, protocol: str
) -> None:
    monkeypatch.setattr(start_sets, "MAX_GAMES", 2)
    me = _user_id(service.client)
    add_host(service.engine, "a", environments=[GAME])
    open_session = service.client.post("/api/v1/play", json={"environment": GAME}).json()["id"]
    for _ in range(2):
        add_recording(service.engine, me, protocol=protocol)
    damaged = add_recording(service.engine, me, protocol=protocol)
    with writing(service.engine) as session:
        recordings.parts(session, damaged)[0].sha256 = "0" * 64
    for _ in range(2):
        add_recording(service.engine, me, protocol=protocol, session_id=open_session)
    body = {"name": "wall", "points": 10, "environment": GAME, "players": players}
    row = service.client.post(URL, json=body).json()
    assert row["origin"] == f"1 recording of {players}"
    assert row["n_people"] == (players == "people")
    other = "scripts" if players == "people" else "people"
    errors = _errors(service.client.post(URL, json=body | {"players": other}))
    assert "or only in a session that is still open" in errors["environment"]
    errors = _errors(service.client.post(URL, json={"name": "wall", "run": "0" * 26, "players": players}))
    assert "only with environment" in errors["body"]


def test_sources_count_the_games_of_people_and_scripts_that_a_set_can_have(service: RunningService) -> None:
    me = _user_id(service.client)
    add_host(service.engine, "a", environments=[GAME])
    open_session = service.client.post("/api/v1/play", json={"environment": GAME}).json()["id"]
    for _ in range(2):
        add_recording(service.engine, me)
    for environment in (GAME, "ALE/Pong-v5", "CartPole-v1"):
        add_recording(service.engine, me, environment=environment, protocol="scripted")
    add_recording(service.engine, me, protocol="practice")
    add_recording(service.engine, me, n=4)
    add_recording(service.engine, me, ended=False)
    add_recording(service.engine, me, session_id=open_session)
    assert service.client.get(f"{URL}/sources").json()["items"] == [
        {"environment": GAME, "players": "people", "n_recordings": 2},
        {"environment": GAME, "players": "scripts", "n_recordings": 1},
        {"environment": "ALE/Pong-v5", "players": "scripts", "n_recordings": 1},
    ]


def _exported(service: RunningService, name: str, **request: Any) -> dict[str, Any]:
    row = service.client.post(URL, json={"name": name, "points": 10} | request).json()
    mark_verified(service.engine, row["id"])
    file: dict[str, Any] = service.client.get(f"{URL}/{row['id']}/export").json()
    return file


def _claiming(file: dict[str, Any], **content: Any) -> dict[str, Any]:
    """A file with other content, and its checksum."""
    changed = StartSetContent.model_validate_json(json.dumps(file["content"] | content))
    return file | {"content": changed.model_dump(mode="json"), "sha256": changed.checksum()}


def test_imported_set_is_never_one_of_this_installations_people(service: RunningService) -> None:
    me = _user_id(service.client)
    scripted = [add_recording(service.engine, me, protocol="scripted") for _ in range(2)]
    file = _exported(service, "forged", recordings=scripted)
    claims = _claiming(file, source="human", n_people=3)
    errors = _errors(service.client.post(f"{URL}/import", json={"file": claims}))
    assert "more than the 2 games" in errors["file.content.n_people"]
    claims = _claiming(file, source="human", n_people=2)
    row = service.client.post(f"{URL}/import", json={"file": claims}).json()
    assert (row["source"], row["n_people"]) == ("human_imported", 2)
    mark_verified(service.engine, row["id"])
    ready = service.client.get(f"{URL}/{row['id']}").json()
    assert "by 2 people of another installation (imported), " in ready["caption"]
    assert ready["protocols"] == ["human_starts:forged@2", "human_starts_greedy:forged@2"]
    again = service.client.get(f"{URL}/{row['id']}/export").json()
    assert service.client.post(f"{URL}/import", json={"file": again}).json()["source"] == "human_imported"


def test_games_of_practice_are_in_no_set(service: RunningService) -> None:
    practice = add_recording(service.engine, _user_id(service.client), protocol="practice")
    body = {"name": "wall", "points": 1}
    errors = _errors(service.client.post(URL, json=body | {"recordings": [practice]}))
    assert "at another speed" in errors["recordings.0"]
    errors = _errors(service.client.post(URL, json=body | {"environment": GAME}))
    assert "nobody has played" in errors["environment"]


def test_set_of_a_game_leaves_damaged_and_empty_recordings_out(service: RunningService) -> None:
    me = _user_id(service.client)
    damaged, empty, _ = (add_recording(service.engine, me, n=n) for n in (50, 2, 50))
    assert empty
    with writing(service.engine) as session:
        recordings.parts(session, damaged)[0].sha256 = "0" * 64
    body = {"name": "wall", "environment": GAME, "points": 10}
    row = service.client.post(URL, json=body).json()
    assert (row["n_games"], row["origin"]) == (1, "1 recording of people")


def test_damaged_recording_is_refused(service: RunningService) -> None:
    recording = add_recording(service.engine, _user_id(service.client))
    with writing(service.engine) as session:
        recordings.parts(session, recording)[0].sha256 = "0" * 64
    answer = service.client.post(URL, json={"name": "wall", "recordings": [recording], "points": 1})
    assert (answer.status_code, "is damaged" in answer.text) == (410, True)


def test_set_whose_verification_job_failed_is_refused_with_its_error(
    service: RunningService, tmp_path: Path
) -> None:
    body = {"name": "wall", "run": _run(service, tmp_path).id, "points": 1}
    row = service.client.post(URL, json=body).json()
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, [GAME])
        assert job is not None
        jobs.fail(session, job.id, job.tries, "Traceback\nImportError: no ale-py")
    assert service.client.get(f"{URL}/{row['id']}").json()["state"] == "failed"
    agent = make_run(service.engine, environment=GAME)
    make_checkpoint(service.engine, agent, 100)
    url = f"/api/v1/runs/{agent.id}/evaluations"
    errors = _errors(service.client.post(url, json={"protocol": "agent_starts:wall"}))
    assert errors["protocol"] == "start set wall@1 could not be verified: ImportError: no ale-py"


def _requested(protocol: str, **changes: Any) -> dict[str, Any]:
    config = {"evaluation_protocol": protocol}
    stop = {"agent_steps": 1_000}
    return {"algorithm": "paac", "environment": GAME, "config": config, "stop": stop} | changes


def test_run_is_evaluated_from_the_version_that_was_the_latest_when_it_was_created(
    service: RunningService, tmp_path: Path
) -> None:
    row = _ready(service, tmp_path)
    created = service.client.post("/api/v1/runs", json=_requested("agent_starts_greedy:wall"))
    assert created.status_code == 201, created.text
    [run] = created.json()["items"]
    assert run["spec"]["config"]["evaluation_protocol"] == "agent_starts_greedy:wall@1"
    refused = service.client.delete(f"{URL}/{row['id']}")
    assert (refused.status_code, "is evaluated from it" in refused.text) == (409, True)
    assert service.client.post(f"/api/v1/runs/{run['id']}/stop").status_code == 200
    assert service.client.delete(f"{URL}/{row['id']}").status_code == 204
    errors = _errors(service.client.post(f"/api/v1/runs/{run['id']}/resume"))
    assert errors == {"config.evaluation_protocol": "start set wall@1 has been deleted"}
    bulk = {"action": "resume", "ids": [run["id"]]}
    [item] = service.client.post("/api/v1/runs/bulk", json=bulk).json()["items"]
    assert (item["done"], "has been deleted" in item["detail"]) == (False, True)


@pytest.mark.parametrize(
    ("protocol", "environment", "reason"),
    [
        ("agent_starts:none", GAME, "there is no start set none"),
        ("human_starts:wall", GAME, "was not played by people"),
        ("agent_starts:wall", "ALE/Pong-v5", "is of ALE/Breakout-v5"),
        ("agent_starts:wall", "CartPole-v1", "has no protocol"),
        ("agent_starts:Wall", GAME, "must be one of auto, noop_starts"),
    ],
)
def test_run_or_sweep_with_a_set_that_it_cannot_start_from_is_refused(
    service: RunningService, tmp_path: Path, protocol: str, environment: str, reason: str
) -> None:
    _ready(service, tmp_path)
    body = _requested(protocol, environment=environment)
    errors = _errors(service.client.post("/api/v1/runs", json=body))
    assert reason in errors["config.evaluation_protocol"], errors
    space = {"config.gamma": {"values": [0.9, 0.99]}}
    sweep = {"name": "gamma", "run": body, "space": space, "max_seeds": 1, "racing": None}
    errors = _errors(service.client.post("/api/v1/sweeps", json=sweep))
    assert reason in errors["run.config.evaluation_protocol"], errors
    assert len(service.client.get("/api/v1/runs").json()["items"]) == 1, "the one with the games"


def test_sweep_is_evaluated_from_one_version(service: RunningService, tmp_path: Path) -> None:
    _ready(service, tmp_path)
    sweep = {
        "name": "gamma",
        "run": _requested("agent_starts:wall"),
        "space": {"config.gamma": {"values": [0.9, 0.99]}},
        "max_seeds": 1,
        "racing": None,
        "objective": "evaluation",
        "protocol": "agent_starts:wall",
    }
    created = service.client.post("/api/v1/sweeps", json=sweep)
    assert created.status_code == 201, created.text
    items = service.client.get("/api/v1/runs", params={"spec": "true"}).json()["items"]
    of_sweep = [run["spec"]["config"] for run in items if run["group"] == "gamma"]
    assert len(of_sweep) == 2
    protocols = {config["evaluation_protocol"] for config in of_sweep}
    assert protocols == {"agent_starts:wall@1"}
    varied = {"config.evaluation_protocol": {"values": ["noop_starts", "agent_starts:wall"]}}
    run = _requested("auto") | {"config": {}}
    body = sweep | {"run": run, "space": varied, "protocol": None, "objective": "training"}
    errors = _errors(service.client.post("/api/v1/sweeps", json=body))
    assert "name the version" in errors["space.config.evaluation_protocol"], errors
    varied["config.evaluation_protocol"]["values"] = ["noop_starts", "agent_starts:wall@1"]
    row = service.client.post("/api/v1/sweeps", json=body).json()
    added = {"values": {"config.evaluation_protocol": ["agent_starts:wall"]}}
    errors = _errors(service.client.post(f"/api/v1/sweeps/{row['id']}/extend", json=added))
    assert "name the version" in errors["space.config.evaluation_protocol"], errors


def test_viewers_read_and_operators_change(service: RunningService, tmp_path: Path) -> None:
    row = _ready(service, tmp_path)
    with service.client_as(Role.VIEWER) as viewer:
        assert viewer.get(URL).status_code == 200
        file = viewer.get(f"{URL}/{row['id']}/export").json()
        assert viewer.post(f"{URL}/import", json={"file": file}).status_code == 403
        assert viewer.delete(f"{URL}/{row['id']}").status_code == 403
