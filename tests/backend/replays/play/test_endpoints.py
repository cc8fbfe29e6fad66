"""Play sessions over REST and their stream, without a worker."""

import hashlib
import io
import json
from datetime import timedelta

import numpy as np
import pytest
import redis
from websockets.exceptions import ConnectionClosed, InvalidStatus

from backend.coordination.context import Context
from backend.coordination.lease_expiry import expire
from backend.db.engine import reading, writing
from backend.fleet.jobs import service as jobs
from backend.platform.artifacts import game_file
from backend.platform.principals import Role
from backend.pubsub.bus import play_channel
from backend.replays.play import service as play
from backend.replays.recordings import repository as recording_rows
from backend.replays.recordings import service as recordings
from backend.specs.recordings import GameStart, Part
from tests.support.playing import Player, open_session, playing
from tests.support.rows import add_host
from tests.support.service import RunningService
from tests.support.waiting import until

pytestmark = pytest.mark.service

BREAKOUT = "ALE/Breakout-v5"
GAME = GameStart(
    seed=7, frames_per_step=4, action_names=["NOOP", "FIRE"], rom_sha256="0" * 64, versions={"ale-py": "1"}
)


def _part(first_step: int, *actions: int, finished: bool = False) -> Part:
    n = len(actions)
    return Part(
        first_step=first_step,
        actions=list(actions),
        rewards=[1.0] * n,
        lives=[3] * n,
        n_frames=4 * n,
        inputs=[(0, 5, 1)],
        finished=finished,
    )


def _claim(service: RunningService, host: str = "a") -> str:
    with writing(service.engine) as session:
        claimed = play.claim(session, host, 60.0, [BREAKOUT])
        assert claimed is not None
        return claimed.id


def _record(service: RunningService, session_id: str, *parts: Part) -> str:
    with writing(service.engine) as session:
        recording = play.start_game(session, session_id, "a", GAME)
        assert recording is not None
        for part in parts:
            assert play.record(session, session_id, "a", recording, part)
    return recording


def test_session_is_refused_without_a_worker_for_its_environment_or_with_continuous_actions(
    service: RunningService,
) -> None:
    for environment, status, text in [
        ("ALE/Nothing-v5", 422, "there is no environment"),
        ("HalfCheetah-v5", 422, "continuous actions"),
        (BREAKOUT, 409, "no running worker has ALE/Breakout-v5"),
    ]:
        answer = service.client.post("/api/v1/play", json={"environment": environment})
        assert (answer.status_code, text in answer.text) == (status, True), answer.text
    assert service.client.get("/api/v1/play").json()["items"] == []


def test_session_opened_with_a_token_is_scripted_and_one_of_a_browser_is_not(
    service: RunningService,
) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    assert not open_session(service.client, BREAKOUT)["scripted"]
    assert open_session(service.client, BREAKOUT, scripted=True)["scripted"]
    with service.client_as(Role.OPERATOR) as operator:
        assert open_session(operator, BREAKOUT)["scripted"]


def test_messages_of_a_token_make_a_session_and_its_games_scripted(sqlite_service: RunningService) -> None:
    service = sqlite_service
    add_host(service.engine, "a", environments=[BREAKOUT])
    session = open_session(service.client, BREAKOUT)
    recording = _record(service, _claim(service), _part(0, 1))
    assert service.client.get(f"/api/v1/recordings/{recording}").json()["protocol"] == "human_play"
    token = service.client.post("/api/v1/tokens", json={"name": "script", "role": "operator"}).json()["token"]
    script = service.new_client()
    script.headers["Authorization"] = f"Bearer {token}"
    with script, playing(script, session["id"], service.url) as player:
        player.hold(0)
        player.send(type="action", action=99)  # its refusal shows that the first message was handled
        player.refusal()
    assert service.client.get(f"/api/v1/recordings/{recording}").json()["protocol"] == "scripted"
    assert service.client.get(f"/api/v1/play/{session['id']}").json()["scripted"]


def test_wrong_messages_are_refused_with_the_reason(sqlite_service: RunningService) -> None:
    service = sqlite_service
    add_host(service.engine, "a", environments=[BREAKOUT])
    session = open_session(service.client, BREAKOUT)
    with playing(service.client, session["id"], service.url) as player:
        player.hold(4)
        assert player.refusal() == "there is no action 4: this environment has actions 0 to 3"
        player.send(type="jump")
        types = "action, pause, speed, new_game and control"
        assert player.refusal() == f'there is no message of type "jump"; the types are {types}'
        player.send(kind="jump")
        assert player.refusal() == f"a message is a JSON object with one of the types {types}"
        player.send(type="action", action=-1)
        assert player.refusal() == "action must be at least 0, got -1"
        for more in ("x" * 300, "é" * 120):
            player.send(type="action", action=1, more=more)
            assert player.refusal() == "a message has at most 256 bytes"
        player.send(type="speed", speed=100)
        assert player.refusal() == "speed must be at most 4, got 100"
    with (
        service.client_as(Role.OPERATOR) as operator,
        playing(operator, session["id"], service.url) as watcher,
    ):
        watcher.hold(1)
        assert "you watch this session" in watcher.refusal()
    with (
        playing(service.client, session["id"], service.url) as player,
        pytest.raises(ConnectionClosed) as closed,
    ):
        _flood(player)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.reason == "too much data"


def _flood(player: Player) -> None:
    for _ in range(1_000):
        player.hold(1)
    while True:
        player.next()


def test_closing_a_tab_pauses_the_game_only_if_its_player_has_no_other(
    sqlite_service: RunningService,
) -> None:
    service = sqlite_service
    add_host(service.engine, "a", environments=[BREAKOUT])
    session_id = open_session(service.client, BREAKOUT)["id"]
    streams = service.app_state.limits.sockets
    with (
        redis.Redis.from_url(service.settings.redis) as client,
        client.pubsub(ignore_subscribe_messages=True) as worker,
    ):
        worker.subscribe(play_channel(session_id))

        def received() -> dict[str, object]:
            message: dict[str, object] = json.loads(until(lambda: worker.get_message(timeout=1.0))["data"])
            return message

        with playing(service.client, session_id, service.url) as first:
            first.hold(1)
            assert received()["type"] == "action", "also the first message to a service that has just started"
            with playing(service.client, session_id, service.url) as second:
                second.hold(2)
                assert received()["action"] == 2
            with (
                service.client_as(Role.VIEWER) as viewer,
                playing(viewer, session_id, service.url) as watcher,
            ):
                watcher.hold(1)
                watcher.refusal()
            until(lambda: streams.n_taken == 1)
            first.hold(3)
            assert received()["action"] == 3, "neither the closed tab nor a watcher that left has paused it"
        assert received() == {"type": "pause", "paused": True}


def test_only_its_player_or_an_admin_ends_a_session_and_viewers_may_not_play(
    service: RunningService,
) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    session = open_session(service.client, BREAKOUT)
    operator, viewer = service.client_as(Role.OPERATOR), service.client_as(Role.VIEWER)
    assert viewer.post("/api/v1/play", json={"environment": BREAKOUT}).status_code == 403
    address = f"/api/v1/play/{session['id']}"
    assert viewer.get(address).status_code == 200
    for other in (operator, viewer):
        assert other.delete(address).status_code == 403
    assert viewer.get(address).json()["state"] == "queued"
    own = open_session(operator, BREAKOUT)
    assert service.client.delete(f"/api/v1/play/{own['id']}").status_code == 204
    assert service.client.delete(address).status_code == 204
    assert service.client.delete(address).status_code == 204
    ended = service.client.get(address).json()
    assert (ended["state"], ended["end_reason"]) == ("ended", "its player ended it")
    operator.headers["Authorization"] = "Bearer wrong"
    with pytest.raises(InvalidStatus), playing(operator, session["id"], service.url):
        pass
    for client in (operator, viewer):
        client.close()


def test_parts_of_a_session_that_a_host_no_longer_holds_change_nothing(service: RunningService) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    open_session(service.client, BREAKOUT)
    session_id = _claim(service)
    recording = _record(service, session_id, _part(0, 1, 0))
    with writing(service.engine) as session:
        assert play.renew(session, "b", [session_id], 60.0) == set()
        assert play.renew(session, "a", [session_id], 60.0) == {session_id}
        assert not play.record(session, session_id, "b", recording, _part(2, 1))
        assert not play.record(session, session_id, "a", recording, _part(1, 1))
        for _ in range(2):  # the answer of its transaction may have been lost
            assert play.record(session, session_id, "a", recording, _part(2, 1, finished=True))
        assert not play.record(session, session_id, "a", recording, _part(2, 0, finished=True))
        assert not play.record(session, session_id, "a", recording, _part(3, 1))
        play.end(session, session_id, "it was over", host="a")
        assert not play.record(session, session_id, "a", recording, _part(3, 1))
        assert play.start_game(session, session_id, "a", GAME) is None
    stored = service.client.get(f"/api/v1/recordings/{recording}").json()
    assert (stored["length_steps"], stored["length_frames"], stored["episode_return"]) == (3, 12, 3.0)
    assert stored["ended_at"] is not None


def test_games_in_which_nobody_decided_anything_are_not_kept(service: RunningService) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    session_id = open_session(service.client, BREAKOUT)["id"]
    left = Part(first_step=0, actions=[], rewards=[], lives=[], n_frames=0, inputs=[(0, 5, 1)], left=True)
    _record(service, _claim(service), left)
    played = _record(service, session_id, _part(0, 1))
    _record(service, session_id)

    def listed() -> list[str]:
        return [row["id"] for row in service.client.get("/api/v1/recordings").json()["items"]]

    assert len(listed()) == 2
    service.client.delete(f"/api/v1/play/{session_id}")
    with writing(service.engine) as session:
        play.end(session, session_id, "the session has ended", host="a")
    assert listed() == [played]


def test_last_decisions_of_a_game_are_recorded_just_after_the_end_of_its_session(
    service: RunningService,
) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    session_id = open_session(service.client, BREAKOUT)["id"]
    recording = _record(service, _claim(service), _part(0, 1, 0))
    assert service.client.delete(f"/api/v1/play/{session_id}").status_code == 204
    address = f"/api/v1/recordings/{recording}"
    ended_at = service.client.get(address).json()["ended_at"]
    with writing(service.engine) as session:
        assert not play.record(session, session_id, "b", recording, _part(2, 1))
        assert play.record(session, session_id, "a", recording, _part(2, 1))
    stored = service.client.get(address).json()
    assert (stored["length_steps"], stored["episode_return"], stored["ended_at"]) == (3, 3.0, ended_at)
    assert len(service.client.get(f"{address}/trace").json()["actions"]) == 3
    with writing(service.engine) as session:
        rows = (play.get(session, session_id), recordings.get(session, recording))
        for row in rows:
            assert row.ended_at is not None
            row.ended_at -= play.LAST_REPORT
    with writing(service.engine) as session:
        assert not play.record(session, session_id, "a", recording, _part(3, 1)), "too late"


def test_game_at_another_speed_is_practice_and_its_export_has_all_that_simulates_it_again(
    service: RunningService,
) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    open_session(service.client, BREAKOUT)
    session_id = _claim(service)
    slow = _part(2, 1).model_copy(update={"speeds": [(9, 0.25)]})
    practice = _record(service, session_id, _part(0, 0, 1), slow, _part(3, 0, finished=True))
    usual = _record(service, session_id, _part(0, 0, finished=True))
    rows = {row["id"]: row for row in service.client.get("/api/v1/recordings").json()["items"]}
    assert (rows[practice]["protocol"], rows[usual]["protocol"]) == ("practice", "human_play")
    listed = service.client.get("/api/v1/recordings", params={"protocol": "practice"}).json()["items"]
    assert [row["id"] for row in listed] == [practice]
    trace = service.client.get(f"/api/v1/recordings/{practice}/trace").json()
    assert trace["speeds"] == [[9, 0.25]]
    exported = service.client.get(f"/api/v1/recordings/{practice}/file")
    with np.load(io.BytesIO(exported.content), allow_pickle=False) as file:
        assert json.loads(str(file["environment_config"])) == rows[practice]["environment_config"]
        assert json.loads(str(file["versions"])) == {"ale-py": "1"}
        assert file["speeds"].tolist() == [[9, 0.25]]
        assert file["actions"].tolist() == [0, 1, 1, 0]
        assert "values" not in file, "nobody's V is known"


def test_session_with_an_expired_lease_ends_and_its_game_is_kept(service: RunningService) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    session = open_session(service.client, BREAKOUT)
    with writing(service.engine) as writer:
        claimed = play.claim(writer, "a", -1.0, [BREAKOUT])
        assert claimed is not None
    recording = _record(service, session["id"], _part(0, 1, 1))
    context = Context.from_settings(service.settings)
    try:
        with context.reading() as reader:
            assert play.has_expired(reader)
        expire(context)
        with context.reading() as reader:
            assert not play.has_expired(reader)
    finally:
        context.close()
    assert "has died" in service.client.get(f"/api/v1/play/{session['id']}").json()["end_reason"]
    kept = service.client.get(f"/api/v1/recordings/{recording}").json()
    assert (kept["length_steps"], kept["finished"]) == (2, False)
    assert kept["ended_at"] is not None


def test_session_that_no_worker_claims_ends_with_the_reason(service: RunningService) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    late, recent = (open_session(service.client, BREAKOUT)["id"] for _ in range(2))
    with writing(service.engine) as session:
        assert not play.has_expired(session)
        play.get(session, late).created_at -= timedelta(seconds=play.QUEUED_S + 1)
    with writing(service.engine) as session:
        assert play.has_expired(session)
        assert play.expire(session) == [late]
    ended = service.client.get(f"/api/v1/play/{late}").json()
    assert (ended["state"], ended["end_reason"]) == ("ended", "no worker had a place within 10 minutes")
    assert service.client.get(f"/api/v1/play/{recent}").json()["state"] == "queued"


def test_recording_with_a_changed_byte_is_refused(service: RunningService) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    session = open_session(service.client, BREAKOUT)
    recording = _record(service, _claim(service), _part(0, 1, 0), _part(2, 1, finished=True))
    trace = service.client.get(f"/api/v1/recordings/{recording}/trace").json()
    assert (trace["actions"], trace["seed"]) == ([1, 0, 1], 7)
    with writing(service.engine) as writer:
        part = recording_rows.parts(writer, recording)[0]
        part.content = part.content[:-1] + bytes([part.content[-1] ^ 1])
    service.client.delete(f"/api/v1/play/{session['id']}")
    for path in ("trace", "file", "video"):
        answer = service.client.get(f"/api/v1/recordings/{recording}/{path}")
        assert answer.status_code == 410
        assert "is damaged" in json.dumps(answer.json())


def test_environment_with_a_null_character_is_refused_in_the_list_of_recordings(
    service: RunningService,
) -> None:
    answer = service.client.get("/api/v1/recordings", params={"environment": "a\0b"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "environment")


def test_only_its_player_or_an_admin_deletes_a_recording_that_has_ended(service: RunningService) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    session = open_session(service.client, BREAKOUT)
    recording = _record(service, _claim(service), _part(0, 1))
    address = f"/api/v1/recordings/{recording}"
    assert service.client.delete(address).status_code == 409
    service.client.delete(f"/api/v1/play/{session['id']}")
    with service.client_as(Role.OPERATOR) as operator:
        assert operator.get("/api/v1/recordings?mine=true").json()["items"] == []
    assert service.client.delete(address).status_code == 204
    assert service.client.get(address).status_code == 404
    with reading(service.engine) as reader:
        assert recording_rows.parts(reader, recording) == []


def test_video_is_queued_once_and_refused_for_a_game_that_is_played_or_has_no_decision(
    service: RunningService,
) -> None:
    add_host(service.engine, "a", environments=[BREAKOUT])
    session = open_session(service.client, BREAKOUT)
    session_id = _claim(service)
    empty, played = _record(service, session_id), _record(service, session_id, _part(0, 1))
    answer = service.client.get(f"/api/v1/recordings/{played}/video")
    assert (answer.status_code, "is being played" in answer.text) == (409, True)
    service.client.delete(f"/api/v1/play/{session['id']}")
    answer = service.client.get(f"/api/v1/recordings/{empty}/video")
    assert (answer.status_code, "before its first decision" in answer.text) == (409, True)
    with service.client_as(Role.VIEWER) as viewer:
        first, again = (viewer.get(f"/api/v1/recordings/{played}/video") for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert first.json()["state"] == "queued"
    assert first.headers["Retry-After"] == "1"


def test_failed_rendering_is_repeated_only_on_request(sqlite_service: RunningService) -> None:
    service = sqlite_service
    add_host(service.engine, "a", environments=[BREAKOUT])
    session = open_session(service.client, BREAKOUT)
    recording = _record(service, _claim(service), _part(0, 1))
    service.client.delete(f"/api/v1/play/{session['id']}")
    address = f"/api/v1/recordings/{recording}/video"
    assert service.client.get(address).status_code == 202
    with writing(service.engine) as writer:
        job = jobs.claim(writer, "a", 60.0, [BREAKOUT])
        assert job is not None
        jobs.fail(writer, job.id, job.tries, "another ROM")
    answer = service.client.get(address)
    assert (answer.status_code, "rendering the video failed: another ROM" in answer.text) == (409, True)
    assert service.client.get(address, params={"again": True}).status_code == 202


def test_damaged_video_is_refused_and_rendered_again_on_request(sqlite_service: RunningService) -> None:
    service = sqlite_service
    add_host(service.engine, "a", environments=[BREAKOUT])
    session = open_session(service.client, BREAKOUT)
    recording = _record(service, _claim(service), _part(0, 1))
    service.client.delete(f"/api/v1/play/{session['id']}")
    video = service.settings.home_dir / game_file(recording)
    video.parent.mkdir(parents=True, exist_ok=True)
    video.write_bytes(b"video")
    service.artifacts.put(video, recording, "videos")
    address = f"/api/v1/recordings/{recording}/video"
    sha256 = hashlib.sha256(b"video").hexdigest()
    with writing(service.engine) as writer:
        recordings.record_video(writer, recording, sha256=sha256, n_bytes=5)
    answer = service.client.get(address, headers={"Range": "bytes=1-2"})
    assert (answer.status_code, answer.content) == (206, b"id")
    with writing(service.engine) as writer:
        recordings.record_video(writer, recording, sha256="0" * 64, n_bytes=5)
    answer = service.client.get(address)
    assert (answer.status_code, "again=true" in answer.text) == (410, True)
    assert service.client.get(address, params={"again": True}).status_code == 202
