"""Emulator states of a long episode: stored when its video is rendered, and given to the sessions from it."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine

from backend.access.auth import repository as auth
from backend.coordination.context import Context
from backend.db import Episode
from backend.db.engine import reading, writing
from backend.platform.artifacts import states_file
from backend.platform.principals import Credential, Principal, Role
from backend.replays.episodes import service as episodes
from backend.replays.play import service as play
from backend.replays.play import sources
from backend.specs.run import parse_run_spec
from tests.support.rows import add_host, episode_row, make_run
from workers import jobs, resume
from workers.engine.envs.atari import AtariEnv
from workers.engine.methods.recording import EpisodeRecorder
from workers.engine.training.restore import environment_of_episode, restore
from workers.jobs import JobRunner

pytestmark = [pytest.mark.service, pytest.mark.long]

BREAKOUT = "ALE/Breakout-v5"
SEED, N = 4, 2_300
"""9,200 frames."""


def _record(path: Path, env: AtariEnv) -> str:
    """An episode of random actions, without FIRE, so that it does not end; returns its SHA-256."""
    out = np.empty(env.observation_shape, np.uint8)
    env.reset(SEED, out)
    moves = [index for index, name in enumerate(env.action_names) if "FIRE" not in name]
    recorder = EpisodeRecorder()
    for action in np.random.default_rng(0).choice(moves, N).tolist():
        step = env.step(action, out)
        assert not step.episode_over
        recorder.add(action, step.reward, 0.0, np.zeros(len(env.action_names)), env.lives())
    recorder.save(path, seed=SEED, protocol=None, frames_per_step=4, action_names=env.action_names)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_long_episode_is_restored_near_its_end_by_at_most_2250_frames(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    add_host(engine, "a")
    run = make_run(engine, environment=BREAKOUT)
    spec = parse_run_spec(run.spec)
    env = AtariEnv(BREAKOUT, spec.environment_config)  # type: ignore[arg-type]
    replay = tmp_path / "a1-s100.npz"
    sha256 = _record(replay, env)
    context.store.put(replay, run.id, "replays")
    with writing(engine) as session:
        episode = episode_row(run.id, replay=replay.name, replay_sha256=sha256, length_steps=N)
        session.add(episode)
        session.flush()
        episodes.request_video(session, episode, again=False)
    with writing(engine) as session:
        job = jobs.claim(session, "a", 600.0, [BREAKOUT])
        assert job is not None
    runner = JobRunner(context, job)
    runner.start()
    runner.join()
    with reading(engine) as session:
        row = session.get_one(Episode, episode.id)
        assert row.video is not None
        assert row.states_sha256 is not None

    with writing(engine) as session:
        user = auth.add_user(session, "ada", Role.OPERATOR)
        session.flush()
        player = Principal(user.id, "ada", Role.OPERATOR, Credential("session", "s"))
        source = sources.of_episode(session, context.store, episode.id, N - 1)
        play.request(
            session, player, environment=None, every_frame=False, scripted=False, lease_s=60.0, source=source
        )
    with writing(engine) as session:
        claimed = play.claim(session, "a", 60.0, [BREAKOUT])
        assert claimed is not None
        opened = play.opened(session, claimed)
    assert opened is not None
    assert opened.states is not None
    assert opened.setup.moment is not None
    assert opened.setup.moment.states == states_file(episode.id)
    states = opened.states
    assert resume.fetch_into(
        context, states.owner_id, "videos", states.file, states.sha256, tmp_path / "session"
    )

    again, game = environment_of_episode(spec, replay, None)
    assert isinstance(again, AtariEnv)
    out = np.empty(env.observation_shape, np.uint8)
    repeated: list[int] = []
    restore(
        again,
        game,
        N - 1,
        out,
        states=tmp_path / "session" / states.file,
        watch=lambda t, observation: repeated.append(t),
    )
    assert 0 < 4 * len(repeated) <= 2_250
    again.step(int(game.actions[-1]), out)
    assert np.array_equal(again.ale.getRAM(), env.ale.getRAM())
    assert np.array_equal(again.ale.getScreenRGB(), env.ale.getScreenRGB())
