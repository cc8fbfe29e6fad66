"""Sessions that go on from an episode, or in which an agent can act: what is refused, stored and shown."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from backend.access.auth import repository as auth
from backend.db import Recording
from backend.db.base import new_id
from backend.db.checked_json import DAMAGED
from backend.db.engine import reading, writing
from backend.replays.play import service as play
from backend.replays.recordings import repository as recording_rows
from backend.specs.environments.atari import ROM_SHA256
from backend.specs.recordings import GameStart, Part
from tests.support.playing import open_session, playing
from tests.support.rows import PROVENANCE, add_attempt, add_host, make_checkpoint, make_run
from tests.support.service import RunningService
from tests.support.start_sets import add_game, add_recording

pytestmark = pytest.mark.service

BREAKOUT = "ALE/Breakout-v5"
N = 50
"""Decisions of each episode and recording."""


def _game(restored_frames: int) -> GameStart:
    return GameStart(
        seed=7,
        frames_per_step=4,
        action_names=["NOOP", "FIRE"],
        rom_sha256="0" * 64,
        versions={},
        restored_frames=restored_frames,
    )


def _refused(service: RunningService, **body: Any) -> dict[str, str]:
    answer = service.client.post("/api/v1/play", json=body)
    assert answer.status_code == 422, answer.text
    return {error["field"]: error["message"] for error in answer.json()["errors"]}


def _opened(service: RunningService, **body: Any) -> dict[str, Any]:
    answer = service.client.post("/api/v1/play", json=body)
    assert answer.status_code == 201, answer.text
    session: dict[str, Any] = answer.json()
    return session


def _claimed(service: RunningService) -> play.Opened | None:
    with writing(service.engine) as session:
        row = play.claim(session, "a", 60.0, [BREAKOUT])
        assert row is not None
        return play.opened(session, row)


def _user(engine: Engine, name: str = "ada") -> str:
    from backend.platform.principals import Role

    with writing(engine) as session:
        return (auth.user_by_name(session, name) or auth.add_user(session, name, Role.OPERATOR)).id


def test_wrong_moments_are_refused_with_the_field(service: RunningService, tmp_path: Path) -> None:
    engine, store = service.engine, service.artifacts
    add_host(engine, "a", versions={"ale-py": "0.11.2"})
    run = make_run(engine, environment=BREAKOUT)
    add_attempt(engine, run.id, provenance=PROVENANCE.model_dump() | {"packages": {"ale-py": "0.10.0"}})
    older = add_game(engine, store, run, tmp_path, agent_steps=1)
    same = add_game(engine, store, run, tmp_path, agent_steps=2, attempt=2)
    of_set = add_game(engine, store, run, tmp_path, agent_steps=3, protocol="agent_starts:wall@1", attempt=2)
    half_cheetah = make_run(engine, algorithm="a3c", environment="HalfCheetah-v5")
    continuous = add_game(engine, store, half_cheetah, tmp_path)
    recording = add_recording(engine, _user(engine))
    being_played = add_recording(engine, _user(engine), ended=False)
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"episode": new_id(), "decision": 0}, "from.episode", "does not exist"),
        ({"recording": new_id(), "decision": 0}, "from.recording", "does not exist"),
        ({"decision": 0}, "from", "either an episode or a recording"),
        ({"episode": same.id, "recording": recording, "decision": 0}, "from", "either an episode or"),
        ({"episode": same.id, "decision": -1}, "from.decision", "must be at least 0"),
        ({"episode": same.id, "decision": N}, "from.decision", f"is after {N - 1} decisions"),
        ({"episode": older.id, "decision": 5}, "from.episode", "was simulated by ale-py 0.10.0"),
        ({"episode": of_set.id, "decision": 5}, "from.episode", "from a point of a start set"),
        ({"episode": continuous.id, "decision": 0}, "from.episode", "continuous actions"),
        ({"recording": recording, "decision": 0}, "from.recording", "with the ROM 000000"),
        ({"recording": being_played, "decision": 0}, "from.recording", "is being played"),
    ]
    for start, field, message in cases:
        errors = _refused(service, **{"from": start})
        assert message in errors[field], errors
    start = {"episode": same.id, "decision": 5}
    assert "ALE/Pong-v5" in _refused(service, environment="ALE/Pong-v5", **{"from": start})["environment"]
    assert "every_frame" in _refused(service, every_frame=True, **{"from": start})
    assert "environment" in _refused(service)
    assert service.client.get("/api/v1/play").json()["items"] == []


def test_session_is_left_to_a_host_that_simulates_its_episode_as_it_was(
    service: RunningService, tmp_path: Path
) -> None:
    engine = service.engine
    add_host(engine, "a", versions={"ale-py": "0.10.0"}, environments=[BREAKOUT])
    add_host(engine, "b", versions={"ale-py": "0.11.2"}, environments=[BREAKOUT])
    run = make_run(engine, environment=BREAKOUT)
    add_attempt(engine, run.id, provenance=PROVENANCE.model_dump() | {"packages": {"ale-py": "0.10.0"}})
    older = add_game(engine, service.artifacts, run, tmp_path, agent_steps=1)
    opened = _opened(service, **{"from": {"episode": older.id, "decision": 5}})
    fresh = _opened(service, environment=BREAKOUT)
    with writing(engine) as session:
        by_b = play.claim(session, "b", 60.0, [BREAKOUT])
        assert by_b is not None
        assert by_b.id == fresh["id"], "the newer one, which it can play"
        assert play.claim(session, "b", 60.0, [BREAKOUT]) is None
        by_a = play.claim(session, "a", 60.0, [BREAKOUT])
        assert by_a is not None
        assert by_a.id == opened["id"]
    mine = make_run(engine, environment=BREAKOUT, package="mine==1.0")
    make_checkpoint(engine, mine)
    _opened(service, agent={"run": mine.id})
    add_host(engine, "c", versions={"mine": "1.0"}, environments=[BREAKOUT])
    with writing(engine) as session:
        assert play.claim(session, "b", 60.0, [BREAKOUT]) is None
        assert play.claim(session, "c", 60.0, [BREAKOUT]) is not None


def test_agents_that_cannot_act_in_the_session_are_refused_with_the_field(
    service: RunningService, tmp_path: Path
) -> None:
    engine = service.engine
    add_host(engine, "a")
    run = make_run(engine, environment=BREAKOUT)
    episode = add_game(engine, service.artifacts, run, tmp_path)
    checkpoint = make_checkpoint(engine, run)
    removed = make_checkpoint(engine, run, 50, removed=True)
    pong = make_run(engine, environment="ALE/Pong-v5")
    of_pong = make_checkpoint(engine, pong)
    cropped = make_run(engine, environment=BREAKOUT, environment_config={"crop": True})
    make_checkpoint(engine, cropped)
    without = make_run(engine, environment=BREAKOUT)
    start = {"episode": episode.id, "decision": 5}
    cases: list[tuple[dict[str, str], str, str]] = [
        ({"run": new_id()}, "agent.run", "does not exist"),
        ({"run": pong.id}, "agent.run", "its agent plays ALE/Pong-v5"),
        ({"run": cropped.id}, "agent.run", "it was trained with crop frame True"),
        ({"run": without.id}, "agent.run", "has no checkpoint yet"),
        ({"run": run.id, "checkpoint": new_id()}, "agent.checkpoint", "does not exist"),
        ({"run": run.id, "checkpoint": removed.id}, "agent.checkpoint", "has been removed"),
        ({"run": run.id, "checkpoint": of_pong.id}, "agent.checkpoint", f"it is of run {pong.id}"),
    ]
    for agent, field, message in cases:
        errors = _refused(service, agent=agent, **{"from": start})
        assert message in errors[field], errors
    opened = _opened(service, agent={"run": run.id, "checkpoint": checkpoint.id})
    assert opened["environment"] == BREAKOUT
    assert opened["environment_config"]["noop_max"] == 0


def test_agent_of_an_episode_is_the_nearest_checkpoint_and_a_removed_one_ends_the_session(
    service: RunningService, tmp_path: Path
) -> None:
    engine = service.engine
    add_host(engine, "a")
    run = make_run(engine, environment=BREAKOUT)
    episode = add_game(engine, service.artifacts, run, tmp_path, agent_steps=230)
    for agent_steps in (100, 200, 300):
        make_checkpoint(engine, run, agent_steps)
    agent = {"run": run.id}
    opened = _opened(service, agent=agent, **{"from": {"episode": episode.id, "decision": 5}})
    assert opened["agent"]["agent_steps"] == 200
    assert _opened(service, agent=agent)["agent"]["agent_steps"] == 300
    claimed = _claimed(service)
    assert claimed is not None
    assert claimed.checkpoint is not None
    assert claimed.setup.agent is not None
    assert (claimed.checkpoint.agent_steps, claimed.setup.agent.checkpoint) == (200, claimed.checkpoint.file)
    with writing(engine) as session:
        for row in recordings_checkpoints(session, run.id):
            row.removed = True
    assert _claimed(service) is None
    ended = service.client.get("/api/v1/play", params={"state": "ended"}).json()["items"]
    assert "its agent cannot be loaded" in ended[0]["end_reason"]


def recordings_checkpoints(session: Any, run_id: str) -> Any:
    """The checkpoints of a run."""
    from backend.runs.checkpoints import service as checkpoints

    return checkpoints.resumable(session, run_id)


def test_joint_game_begins_with_the_decisions_of_its_episode_and_records_who_acted(
    service: RunningService, tmp_path: Path
) -> None:
    engine = service.engine
    add_host(engine, "a")
    run = make_run(engine, environment=BREAKOUT)
    episode = add_game(engine, service.artifacts, run, tmp_path)
    checkpoint = make_checkpoint(engine, run)
    source = {"episode": episode.id, "decision": 20}
    opened = _opened(service, agent={"run": run.id}, **{"from": source})
    expected = {"kind": "episode", "id": episode.id, "run_id": run.id, "decision": 20}
    assert opened["source"] == expected
    claimed = _claimed(service)
    assert claimed is not None
    assert claimed.setup.moment is not None
    assert claimed.setup.moment.actions == [t % 4 for t in range(20)]
    part = Part(
        first_step=20,
        actions=[1, 1, 2],
        rewards=[0.0, 4.0, 0.0],
        lives=[3, 3, 2],
        n_frames=12,
        inputs=[(80, 5, 1)],
        turns=[(0, 1), (2, 2)],
        left=True,
    )
    with writing(engine) as session:
        recording_id = play.start_game(session, opened["id"], "a", _game(80))
        assert recording_id is not None
        assert play.record(session, opened["id"], "a", recording_id, part)
        play.end(session, opened["id"], "it was over", host="a")
    address = f"/api/v1/recordings/{recording_id}"
    recording = service.client.get(address).json()
    assert (recording["protocol"], recording["source"]) == ("joint", expected)
    assert (recording["length_steps"], recording["length_frames"]) == (23, 92)
    assert recording["episode_return"] == 24.0
    trace = service.client.get(f"{address}/trace").json()
    assert trace["actions"] == [*(t % 4 for t in range(20)), 1, 1, 2]
    assert trace["turns"] == [[1, 20], [0, 1], [2, 2]]
    assert [(actor["kind"], actor["checkpoint_id"]) for actor in trace["actors"]] == [
        ("person", None),
        ("agent", None),
        ("agent", checkpoint.id),
    ]
    assert trace["actors"][1]["name"] == run.name
    assert service.client.get("/api/v1/recordings?protocol=joint").json()["items"][0]["id"] == recording_id
    assert service.client.get("/api/v1/recordings?protocol=human_play").json()["items"] == []
    answer = service.client.post(
        "/api/v1/start-sets", json={"name": "mine", "recordings": [recording_id], "points": 1}
    )
    assert (answer.status_code, "joint game" in answer.text) == (422, True)
    with reading(engine) as session:
        assert recording_rows.latest_closed(session, BREAKOUT, "human_play", 10) == []
        row = session.get_one(Recording, recording_id)
        assert row.rom_sha256 == "0" * 64

    with writing(engine) as session:
        session.get_one(Recording, recording_id).rom_sha256 = ROM_SHA256[BREAKOUT]
    again = _opened(service, **{"from": {"recording": recording_id, "decision": 22}})
    beginning = _claimed(service)
    assert beginning is not None
    assert beginning.setup.moment is not None
    assert beginning.setup.moment.actions == trace["actions"][:22]
    with writing(engine) as session:
        recording_id = play.start_game(session, again["id"], "a", _game(88))
        assert recording_id is not None
    trace = service.client.get(f"/api/v1/recordings/{recording_id}/trace").json()
    assert trace["turns"] == [[1, 20], [0, 1], [2, 1]]
    assert _refused(service, **{"from": {"recording": recording_id, "decision": 0}})["from.recording"]


@pytest.mark.parametrize("damage", ["[]", '"x"', "{"])
def test_joint_session_whose_actors_are_damaged_never_makes_the_game_of_a_person(
    sqlite_service: RunningService, damage: str
) -> None:
    service = sqlite_service
    engine = service.engine
    add_host(engine, "a")
    run = make_run(engine, environment=BREAKOUT)
    make_checkpoint(engine, run)

    def damage_row(table: str) -> None:
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE {table} SET actors = :damage"), {"damage": damage})

    started = _opened(service, agent={"run": run.id})
    assert _claimed(service) is not None
    with writing(engine) as writer:
        recording = play.start_game(writer, started["id"], "a", _game(0))
    waiting = _opened(service, agent={"run": run.id})
    for table in ("play_sessions", "recordings"):
        damage_row(table)
    assert _claimed(service) is None
    with writing(engine) as writer:
        play.set_scripted(writer, started["id"])
        assert play.start_game(writer, started["id"], "a", _game(0)) is None
    for opened in (started, waiting):
        shown = service.client.get(f"/api/v1/play/{opened['id']}").json()
        assert (shown["state"], shown["end_reason"]) == ("ended", DAMAGED)
    stored = service.client.get(f"/api/v1/recordings/{recording}").json()
    assert stored["protocol"] == "joint"
    answer = service.client.get(f"/api/v1/recordings/{recording}/trace")
    assert (answer.status_code, "does not say who has acted" in answer.json()["detail"]) == (410, True)
    with engine.connect() as connection:
        for table in ("play_sessions", "recordings"):
            kept = connection.execute(text(f"SELECT actors FROM {table}"))
            assert set(kept.scalars()) == {damage}


def test_session_that_goes_on_from_what_cannot_be_read_ends_and_keeps_no_host_waiting(
    sqlite_service: RunningService,
) -> None:
    service, engine = sqlite_service, sqlite_service.engine
    add_host(engine, "a")
    run = make_run(engine, environment=BREAKOUT)
    make_checkpoint(engine, run)
    damaged = _opened(service, agent={"run": run.id})
    with engine.begin() as connection:
        update = text("UPDATE play_sessions SET moment = :moment WHERE id = :id")
        connection.execute(update, {"moment": b"not compressed", "id": damaged["id"]})
    assert service.client.get("/api/v1/play").status_code == 200
    assert _claimed(service) is None
    shown = service.client.get(f"/api/v1/play/{damaged['id']}").json()
    assert (shown["state"], shown["end_reason"]) == ("ended", DAMAGED)


def test_script_in_a_joint_session_takes_the_place_of_the_person(sqlite_service: RunningService) -> None:
    service = sqlite_service
    add_host(service.engine, "a")
    run = make_run(service.engine, environment=BREAKOUT)
    make_checkpoint(service.engine, run)
    session = open_session(service.client, BREAKOUT, agent={"run": run.id})
    assert _claimed(service) is not None
    with writing(service.engine) as writer:
        recording = play.start_game(writer, session["id"], "a", _game(0))
    token = service.client.post("/api/v1/tokens", json={"name": "script", "role": "operator"}).json()["token"]
    script = service.new_client()
    script.headers["Authorization"] = f"Bearer {token}"
    with script, playing(script, session["id"], service.url) as player:
        player.hold(0)
        player.send(type="action", action=99)
        player.refusal()
    stored = service.client.get(f"/api/v1/recordings/{recording}").json()
    assert stored["protocol"] == "joint"
    trace = service.client.get(f"/api/v1/recordings/{recording}/trace").json()
    assert [actor["kind"] for actor in trace["actors"]] == ["script", "agent"]


def test_controls_cannot_be_handed_over_without_an_agent_or_by_who_watches(
    sqlite_service: RunningService,
) -> None:
    from backend.platform.principals import Role

    service = sqlite_service
    add_host(service.engine, "a")
    run = make_run(service.engine, environment=BREAKOUT)
    make_checkpoint(service.engine, run)
    alone = open_session(service.client, BREAKOUT)
    with playing(service.client, alone["id"], service.url) as player:
        player.send(type="control", to="agent")
        assert player.refusal() == "this session has no agent: open one with `agent`"
    joint = open_session(service.client, BREAKOUT, agent={"run": run.id})
    with playing(service.client, joint["id"], service.url) as player:
        player.send(type="control", to="nobody")
        assert player.refusal() == 'to must be agent or person, got "nobody"'
    with service.client_as(Role.OPERATOR) as other, playing(other, joint["id"], service.url) as watcher:
        watcher.send(type="control", to="agent")
        assert "you watch this session" in watcher.refusal()
