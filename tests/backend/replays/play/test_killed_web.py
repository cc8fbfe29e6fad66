"""A game whose web process is killed: it pauses, its session ends, and the game is kept."""

import psutil
import pytest
from sqlalchemy import select

from backend.db import PlaySession, Recording
from backend.db.engine import opened, reading
from backend.platform.settings import Settings
from tests.support.databases import short_folder
from tests.support.installation import Installation, installation
from tests.support.playing import open_session, playing
from tests.support.waiting import until

pytestmark = [pytest.mark.service, pytest.mark.long]

BREAKOUT = "ALE/Breakout-v5"


def _engines(running: Installation) -> list[psutil.Process]:
    worker = running.children()["worker"]
    return [child for child in worker.children(recursive=True) if "play" in child.cmdline()]


def test_game_of_killed_web_process_pauses_and_ends_and_is_kept() -> None:
    with short_folder() as folder:
        home = folder / "home"
        with (
            installation(home, lease_s=5, reconcile_interval_s=0.3) as running,
            opened(Settings(home=home).database) as engine,
        ):
            client = running.log_in()
            until(
                lambda: any(
                    BREAKOUT in host["environments"] for host in client.get("/api/v1/hosts").json()["items"]
                )
            )
            session_id = open_session(client, BREAKOUT)["id"]
            with playing(client, session_id) as player:
                player.until(paused=True, game=1)
                player.hold(1)
                n_frames = player.after(90).status["frames"]
                [game] = _engines(running)
                running.children()["web"].kill()

            def is_ended() -> bool:
                with reading(engine) as session:
                    return session.get_one(PlaySession, session_id).state == "ended"

            until(is_ended)
            with reading(engine) as session:
                ended = session.get_one(PlaySession, session_id)
                [recording] = session.scalars(select(Recording)).all()
            assert ended.end_reason == "its player has left"
            assert ended.ended_at is not None
            assert recording.ended_at is not None
            # It went on until the worker noticed, and stood still until the session ended.
            played_s = recording.length_frames / 60
            assert recording.length_frames >= n_frames
            assert played_s < (ended.ended_at - recording.started_at).total_seconds() / 2
            until(lambda: not game.is_running())
            assert _engines(running) == []
            assert not any((home / "play").rglob("*.json"))
