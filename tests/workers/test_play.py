"""Play from the browser's messages through web process, Redis and worker to the emulator, and back."""

import io
import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import cv2
import numpy as np
import pytest
from sqlalchemy import Engine

from backend.coordination.context import Context
from backend.platform.settings import Settings
from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.atari import AtariConfig
from tests.support.playing import Shown, open_session, playing
from tests.support.rows import CARTPOLE, add_host
from tests.support.service import RunningService, running_service
from tests.support.waiting import PATIENCE_S, until
from tests.workers.support import ENDLESS, Start
from workers import play
from workers.engine.envs.atari import AtariEnv
from workers.gameplay import Gameplay

pytestmark = pytest.mark.service

BREAKOUT = "ALE/Breakout-v5"


@pytest.fixture
def web(settings: Settings, redis_url: str, tmp_path: Path, engine: Engine) -> Iterator[RunningService]:
    with running_service(settings.database, redis_url, tmp_path / "web") as service:
        yield service


def _await_worker(web: RunningService, environment: str) -> None:
    def is_known() -> bool:
        hosts = web.client.get("/api/v1/hosts").json()["items"]
        return any(environment in host["environments"] for host in hosts)

    until(is_known)


def _last_frame(actions: list[int], seed: int, config: dict[str, object]) -> bytes:
    """The JPEG of the last frame of a game, simulated again."""
    env = AtariEnv(BREAKOUT, AtariConfig.model_validate(config))
    out = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(seed, out)
    for action in actions:
        env.step(action, out)
    frame = cv2.cvtColor(env.ale.getScreenRGB(), cv2.COLOR_RGB2BGR)
    options = [
        cv2.IMWRITE_JPEG_QUALITY,
        92,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
    ]
    return cv2.imencode(".jpg", frame, options)[1].tobytes()


def test_played_game_is_recorded_and_simulated_again_to_the_same_frame(
    start: Start, web: RunningService
) -> None:
    start()
    _await_worker(web, BREAKOUT)
    session = open_session(web.client, BREAKOUT, scripted=True)
    names = session["action_names"]
    with playing(web.client, session["id"], web.url) as player:
        beginning = player.until(paused=True, game=1)
        assert beginning.jpeg.startswith(b"\xff\xd8")
        player.hold(names.index("FIRE"))
        player.after(30)
        player.hold(names.index("RIGHT"), seq=7)
        player.after(60)
        assert player.until(seq=7).status["action"] == names.index("RIGHT")
        player.send(type="pause", paused=True)
        shown = player.until(paused=True)
        n_frames = shown.status["frames"]
        player.send(type="new_game")
        player.until(game=2)
        player.hold(names.index("FIRE"))
        player.until(game=2, paused=False)
    with playing(web.client, session["id"], web.url) as player:
        player.until(game=2, paused=True)  # its player has left
    assert web.client.delete(f"/api/v1/play/{session['id']}").status_code == 204
    until(lambda: web.client.get(f"/api/v1/play/{session['id']}").json()["state"] == "ended")

    recordings = web.client.get("/api/v1/recordings").json()["items"]
    first = min(recordings, key=lambda recording: recording["id"])
    assert first["length_frames"] == n_frames == 4 * first["length_steps"]
    assert (first["protocol"], first["finished"]) == ("scripted", False)
    assert first["ended_at"] is not None
    assert len(first["rom_sha256"]) == 64
    assert "ale-py" in first["versions"]
    trace = web.client.get(f"/api/v1/recordings/{first['id']}/trace").json()
    assert [change[2] for change in trace["inputs"]] == [names.index("FIRE"), names.index("RIGHT")]
    assert shown.jpeg == _last_frame(trace["actions"], trace["seed"], first["environment_config"])
    exported = web.client.get(f"/api/v1/recordings/{first['id']}/file")
    with np.load(io.BytesIO(exported.content), allow_pickle=False) as file:
        assert file["actions"].tolist() == trace["actions"]
        assert file["seed"] == trace["seed"]
    assert web.client.delete(f"/api/v1/recordings/{first['id']}").status_code == 204
    assert web.client.get(f"/api/v1/recordings/{first['id']}").status_code == 404


@pytest.mark.long
def test_game_is_recorded_up_to_the_end_of_its_session_by_its_player_or_with_its_worker(
    start: Start, web: RunningService
) -> None:
    worker = start()
    _await_worker(web, BREAKOUT)
    sessions = [open_session(web.client, BREAKOUT)["id"] for _ in range(2)]
    shown = {}
    for session_id in sessions:
        with playing(web.client, session_id, web.url) as player:
            player.until(paused=True, game=1)
            player.hold(1)
            shown[session_id] = player.after(30).status["frames"]
            if session_id == sessions[0]:
                assert web.client.delete(f"/api/v1/play/{session_id}").status_code == 204
                player.until(ended="its player ended it")
            else:
                worker.terminate()
                player.until(ended="the worker has been stopped; the game is kept up to then")
    items = web.client.get("/api/v1/recordings").json()["items"]
    recorded = {item["session_id"]: item["length_frames"] for item in items}
    for session_id, frames in shown.items():
        assert recorded[session_id] >= frames // 4 * 4


@pytest.mark.long
def test_game_of_killed_worker_is_kept_up_to_its_latest_report(
    start: Start, web: RunningService, settings: Settings
) -> None:
    worker = start()
    _await_worker(web, BREAKOUT)
    session = open_session(web.client, BREAKOUT)
    address = f"/api/v1/play/{session['id']}"
    with playing(web.client, session["id"], web.url) as player:
        player.until(paused=True, game=1)
        player.hold(1)
        player.after(150)  # more than a report
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        start(host_name="b")  # finds that the lease has run out
        until(lambda: web.client.get(address).json()["state"] == "ended")
    assert "has died" in web.client.get(address).json()["end_reason"]
    [recording] = web.client.get("/api/v1/recordings").json()["items"]
    assert recording["ended_at"] is not None
    assert recording["length_frames"] >= 60
    trace = web.client.get(f"/api/v1/recordings/{recording['id']}/trace").json()
    assert len(trace["actions"]) == recording["length_steps"]
    start()  # of the same home: removes what the killed one has left
    folder = settings.home_dir / "play" / "a"
    until(lambda: not folder.exists() or not any(folder.iterdir()))


@pytest.mark.long
def test_session_of_a_killed_worker_ends_when_a_worker_of_its_host_starts(
    start: Start, web: RunningService
) -> None:
    worker = start(lease_s=3600)
    _await_worker(web, BREAKOUT)
    session = open_session(web.client, BREAKOUT)
    address = f"/api/v1/play/{session['id']}"
    with playing(web.client, session["id"], web.url) as player:
        player.until(paused=True, game=1)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        start(lease_s=3600)
        until(lambda: web.client.get(address).json()["state"] == "ended")
    assert web.client.get(address).json()["end_reason"] == "worker a has died; the game is kept up to then"


@pytest.mark.long
def test_session_beyond_the_places_of_a_worker_waits_with_the_reason(
    start: Start, web: RunningService
) -> None:
    start(play_sessions=1)
    _await_worker(web, "Catch-v0")
    first = open_session(web.client, "Catch-v0")
    with playing(web.client, first["id"], web.url) as player:
        player.until(paused=True)
        second = open_session(web.client, "Catch-v0")
        assert second["state"] == "queued"
        assert "CALLBOARD_PLAY_SESSIONS" in second["waiting_reason"]
        web.client.delete(f"/api/v1/play/{first['id']}")
        player.until(ended="its player ended it")
    with playing(web.client, second["id"], web.url) as player:
        player.until(paused=True)
        player.hold(ENVIRONMENTS["Catch-v0"].action_names.index("LEFT"))
        player.until(over=True)

    def game() -> dict[str, Any]:
        items = web.client.get("/api/v1/recordings").json()["items"]
        [recording] = [item for item in items if item["session_id"] == second["id"]]
        assert isinstance(recording, dict)
        return recording

    until(lambda: game()["finished"])  # the last frame is shown before the game is recorded
    caught = game()
    assert caught["length_steps"] == 11
    assert caught["protocol"] == "human_play"


@pytest.fixture
def sessions(context: Context) -> Iterator[play.PlaySessions]:
    """The play sessions of a worker in this process."""
    gameplay = Gameplay(context.settings.redis)
    gameplay.start()
    sessions = play.PlaySessions(context, gameplay, ["Catch-v0"])
    sessions.start()
    yield sessions
    sessions.stop(PATIENCE_S)
    gameplay.stop(PATIENCE_S)


def test_session_ends_after_ten_minutes_without_a_message_of_its_player(
    web: RunningService, engine: Engine, sessions: play.PlaySessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_s = 0.0
    monkeypatch.setattr(play, "monotonic", lambda: monotonic() + passed_s)
    add_host(engine, "a")
    session = open_session(web.client, "Catch-v0")
    sessions.reconcile(claims=True)
    with playing(web.client, session["id"], web.url) as player:
        player.until(paused=True)
        passed_s = 500.0
        player.hold(None, seq=7)
        player.send(type="pause", paused=False)
        player.until(seq=7)
        passed_s = 1_000.0  # 500 s after the latest message
        for _ in range(5):  # at most one frame comes between two looks at the clock
            shown = player.next()
            assert isinstance(shown, Shown)
            assert "ended" not in shown.status
        passed_s = 1_101.0
        player.until(ended="nothing was pressed for 10 minutes")
    ended = web.client.get(f"/api/v1/play/{session['id']}").json()
    assert (ended["state"], ended["end_reason"]) == ("ended", "nothing was pressed for 10 minutes")


@pytest.mark.long
def test_session_is_played_while_all_training_slots_are_taken(start: Start, web: RunningService) -> None:
    start(slots=1)
    _await_worker(web, "Catch-v0")
    bodies = [CARTPOLE | {"stop": {"agent_steps": ENDLESS}} for _ in range(2)]
    runs = [web.client.post("/api/v1/runs", json=body).json()["items"][0]["id"] for body in bodies]

    def states() -> list[str]:
        return [web.client.get(f"/api/v1/runs/{run}").json()["state"] for run in runs]

    until(lambda: states() == ["running", "queued"], detail=states)
    session = open_session(web.client, "Catch-v0")
    with playing(web.client, session["id"], web.url) as player:
        player.until(paused=True)
        player.hold(0)
        player.until(over=True)
    assert states() == ["running", "queued"]
    before = web.client.get(f"/api/v1/runs/{runs[0]}").json()["agent_steps"]
    until(lambda: web.client.get(f"/api/v1/runs/{runs[0]}").json()["agent_steps"] > before)
