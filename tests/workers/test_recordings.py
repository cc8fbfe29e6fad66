"""Videos of recorded games: simulated again and rendered by a worker's job."""

import sys
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import pytest
from sqlalchemy import Engine, select

from backend.access.auth import repository as auth
from backend.coordination.context import Context
from backend.db import Job, Recording, RemovedFile
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.platform.artifacts import game_file
from backend.platform.principals import Credential, Principal, Role
from backend.replays.recordings import service as recordings
from backend.specs.environments import ENVIRONMENTS
from backend.specs.play import play_config
from backend.specs.recordings import GameStart, Part
from tests.support.waiting import PATIENCE_S
from workers import jobs
from workers.clean_up import delete_removed_files
from workers.engine.envs import make_env
from workers.engine.envs.atari import rom_sha256
from workers.jobs import JobRunner

pytestmark = pytest.mark.service

BREAKOUT = "ALE/Breakout-v5"
SEED, STEPS = 5, 12
LATE_ENGINE = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
os.execv(sys.executable, [sys.executable, "-m", "workers.engine", *sys.argv[2:]])
"""


@dataclass
class Game:
    """A recorded game."""

    id: str
    user_id: str
    n_frames: int


def _record(engine: Engine, environment: str, rom: str | None = None) -> Game:
    """Play some decisions, and store them as a person's recording."""
    catalogue = ENVIRONMENTS[environment]
    config = play_config(catalogue, every_frame=False)
    env = make_env(environment, config)
    out = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(SEED, out)
    steps = [env.step(t % len(env.action_names), out) for t in range(STEPS)]
    env.close()
    part = Part(
        first_step=0,
        actions=[t % len(env.action_names) for t in range(STEPS)],
        rewards=[step.reward for step in steps],
        lives=[0] * STEPS,
        n_frames=sum(step.frames for step in steps),
        inputs=[],
        left=True,
    )
    start = GameStart(
        seed=SEED,
        frames_per_step=getattr(config, "frame_skip", 1),
        action_names=list(env.action_names),
        rom_sha256=rom or (rom_sha256(environment) if environment.startswith("ALE/") else None),
        versions={},
    )
    with writing(engine) as session:
        user = auth.user_by_name(session, "ada") or auth.add_user(session, "ada", Role.OPERATOR)
        recording = recordings.start(
            session,
            session_id=new_id(),
            user_id=user.id,
            environment=environment,
            environment_config=config.model_dump(mode="json"),
            protocol="human_play",
            game=start,
        )
        assert recordings.append(session, recording.id, part)
    return Game(recording.id, user.id, part.n_frames)


def _render(context: Context, game: Game) -> Job:
    """Request the game's video, and run its job."""
    with writing(context.db_engine) as session:
        recording = recordings.get(session, game.id)
        job = recordings.request_video(session, recording, again=True)
        claimed = jobs.claim(session, "a", 60.0, [recording.environment])
    assert claimed is not None
    assert claimed.id == job.id
    runner = JobRunner(context, claimed)
    runner.start()
    runner.join(PATIENCE_S)
    with reading(context.db_engine) as session:
        return session.get_one(Job, job.id)


@pytest.mark.parametrize(
    ("environment", "at_reset"),
    [
        (BREAKOUT, 0),
        pytest.param("Labyrinth-Small-v0", 0, marks=pytest.mark.long),
        pytest.param("Racing-Slow-v0", 0, marks=pytest.mark.long),
        ("CartPole-v1", 1),
    ],
)
def test_video_of_a_game_has_every_frame_that_was_shown(
    context: Context, engine: Engine, tmp_path: Path, environment: str, at_reset: int
) -> None:
    game = _record(engine, environment)
    with writing(engine) as session:
        assert jobs.claim(session, "a", 60.0, [environment]) is None
    job = _render(context, game)
    assert (job.state, job.error) == ("done", None)
    with reading(engine) as session:
        recording = session.get_one(Recording, game.id)
        assert recordings.has_video(context.store, recording, again=False)
        assert recording.video_bytes == context.store.size_bytes(game.id, "videos", game_file(game.id))
    file = context.store.get(game.id, "videos", game_file(game.id), tmp_path)
    with av.open(str(file)) as video:
        assert len(list(video.decode(video.streams.video[0]))) == at_reset + game.n_frames
    assert not context.run_dir(game.id).exists()


def test_game_of_another_rom_is_not_rendered_as_if_it_were_the_same(context: Context, engine: Engine) -> None:
    job = _render(context, _record(engine, BREAKOUT, rom="0" * 64))
    assert job.state == "failed"
    assert "another ROM" in (job.error or "")


def test_video_of_a_recording_that_is_deleted_while_it_is_rendered_is_deleted_too(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    game = _record(engine, "CartPole-v1")
    with writing(engine) as session:
        recordings.request_video(session, recordings.get(session, game.id), again=False)
        claimed = jobs.claim(session, "a", 60.0, ["CartPole-v1"])
        player = Principal(game.user_id, "ada", Role.OPERATOR, Credential("session", "s"))
    assert claimed is not None
    may_start = tmp_path / "may-start"
    runner = JobRunner(context, claimed, command=(sys.executable, "-c", LATE_ENGINE, str(may_start)))
    runner.start()
    with writing(engine) as session:
        recordings.delete(session, player, game.id)
        assert recordings.remove_orphans(session) == 0, "a worker still renders it"
    delete_removed_files(context, 0.0)
    may_start.touch()
    runner.join(PATIENCE_S)
    with writing(engine) as session:
        assert recordings.remove_orphans(session) == 1
    delete_removed_files(context, 0.0)
    assert context.store.size_or_zero(game.id, "videos", game_file(game.id)) == 0


@pytest.mark.long
def test_video_goes_with_its_recording(context: Context, engine: Engine) -> None:
    deleted, orphaned = _record(engine, "CartPole-v1"), _record(engine, "CartPole-v1")
    for game in (deleted, orphaned):
        assert _render(context, game).state == "done"
    with writing(engine) as session:
        player = Principal(deleted.user_id, "ada", Role.OPERATOR, Credential("session", "s"))
        recordings.delete(session, player, deleted.id)
        session.delete(session.get_one(Recording, orphaned.id))  # as when its player is deleted
    with writing(engine) as session:
        assert recordings.remove_orphans(session) == 1
    with reading(engine) as session:
        assert session.scalars(select(Job)).all() == []
    delete_removed_files(context, 0.0)
    for game in (deleted, orphaned):
        assert context.store.size_or_zero(game.id, "videos", game_file(game.id)) == 0
    with reading(engine) as session:
        assert session.scalars(select(RemovedFile)).all() == []
