"""Start sets with the real engine: verified by a worker, then evaluated from."""

from typing import Any

import numpy as np
import pytest
import torch
from sqlalchemy import Engine

from backend.access.auth import repository as auth
from backend.coordination import claims
from backend.coordination.claims import Claim
from backend.coordination.context import Context
from backend.db import Evaluation, Job, Run, StartSet
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.platform.principals import Credential, Principal, Role
from backend.replays.episodes import service as episodes
from backend.replays.recordings import service as recordings
from backend.replays.start_sets import service as start_sets
from backend.runs.evaluations import service as evaluations
from backend.runs.runs import service as runs
from backend.runs.starts import service as starts
from backend.specs.environments import ENVIRONMENTS
from backend.specs.play import HUMAN_PLAY, play_config
from backend.specs.recordings import GameStart, Part
from backend.specs.run import parse_run_spec
from backend.specs.start_sets import STARTS_FILE, StartPoint, StartSetContent
from tests.support.rows import checkpoint_row, episode_row, make_run
from tests.support.waiting import PATIENCE_S
from tests.workers.support import FAKE_ENGINE
from workers import jobs, resume
from workers.engine.envs import make_env
from workers.engine.methods.recording import EpisodeRecorder
from workers.engine.methods.registry import METHODS
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.training.checkpoint import save
from workers.gameplay import Gameplay
from workers.jobs import JobRunner
from workers.supervisor import Supervisor

pytestmark = pytest.mark.service

GAME = "ALE/SpaceInvaders-v5"
N = 150


def _record(context: Context, engine: Engine, run: Run) -> str:
    """Play the beginning of a random game, and store it as an episode of the run."""
    spec = parse_run_spec(run.spec)
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(5, observation)
    recorder, rng = EpisodeRecorder(), np.random.default_rng(0)
    for _ in range(N):
        action = int(rng.integers(6))
        step = env.step(action, observation)
        assert not step.episode_over
        recorder.add(action, step.reward, 0.0, np.full(6, 1 / 6), env.lives())
    file = context.run_dir(run.id) / "replays" / "a1-s100.npz"
    recorder.save(file, seed=5, protocol=None, frames_per_step=4, action_names=env.action_names)
    context.store.put(file, run.id, "replays")
    with writing(engine) as session:
        episode = episode_row(run.id, replay=file.name)
        session.add(episode)
    return episode.id


def _checkpoint(context: Context, engine: Engine, run: Run) -> None:
    """Store a checkpoint of an agent that has learnt nothing."""
    spec = parse_run_spec(run.spec)
    torch.manual_seed(1)
    env = make_env(spec.environment, spec.environment_config)
    theta = FlatParameters(METHODS[spec.algorithm].network(spec.config, env)).theta
    file = context.run_dir(run.id) / "checkpoints" / "a1-s000000000100.pt"
    sha256, size = save(file, {"learner": {"theta": theta}})
    context.store.put(file, run.id, "checkpoints")
    with writing(engine) as session:
        session.add(checkpoint_row(run.id, file=file.name, sha256=sha256, size_bytes=size))


def _create(context: Context, engine: Engine, episode_id: str) -> str:
    with reading(engine) as session:
        recorded = start_sets.games_of_episodes(session, context.store, [episode_id])
    content = start_sets.sample(recorded, 2, 0)
    with writing(engine) as session:
        return start_sets.create(session, "wall", content, origin=recorded.origin, created_by=None).id


def _do_next_job(context: Context, engine: Engine) -> Job:
    with writing(engine) as session:
        won = jobs.claim(session, "a", 600, [GAME])
    assert won is not None
    runner = JobRunner(context, won)
    runner.start()
    runner.join(PATIENCE_S)
    with reading(engine) as session:
        return session.get_one(Job, won.id)


def _run(engine: Engine) -> Run:
    return make_run(engine, environment=GAME, config={"network": "nips", "n_e": 2, "n_w": 1})


@pytest.mark.long
def test_score_from_a_set_reproduces_bit_for_bit(context: Context, engine: Engine) -> None:
    run = _run(engine)
    set_id = _create(context, engine, _record(context, engine, run))
    assert _do_next_job(context, engine).state == "done"
    with reading(engine) as session:
        row = session.get_one(StartSet, set_id)
        assert (row.state, row.error, row.ale_py is not None) == ("ready", None, True)
        assert not context.run_dir(set_id).exists(), "the host keeps nothing"
    _checkpoint(context, engine, run)
    scores: list[Any] = []
    for _ in range(2):
        with writing(engine) as session:
            evaluation, _ = evaluations.request(session, run.id, protocol="agent_starts:wall", seed=3)
        job = _do_next_job(context, engine)
        assert job.state == "done", job.error
        with reading(engine) as session:
            done = session.get_one(Evaluation, evaluation.id)
        scores.append((done.protocol, done.returns, done.lengths_frames))
    assert scores[0] == scores[1]
    assert scores[0][0] == "agent_starts:wall@1"
    assert len(scores[0][1]) == 2


def _record_game(context: Context, engine: Engine) -> str:
    """Play the beginning of a random game, and store it as a person's recording."""
    config = play_config(ENVIRONMENTS[GAME], every_frame=False)
    env = make_env(GAME, config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(5, observation)
    actions = np.random.default_rng(0).integers(6, size=N).tolist()
    steps = [env.step(action, observation) for action in actions]
    game = GameStart(
        seed=5, frames_per_step=4, action_names=list(env.action_names), rom_sha256=None, versions={}
    )
    part = Part(
        first_step=0,
        actions=actions,
        rewards=[step.reward for step in steps],
        lives=[3] * N,
        n_frames=sum(step.frames for step in steps),
        inputs=[],
        left=True,
    )
    with writing(engine) as session:
        player = auth.add_user(session, "ada", Role.OPERATOR)
        session.flush()
        row = recordings.start(
            session,
            session_id=new_id(),
            user_id=player.id,
            environment=GAME,
            environment_config=config.model_dump(mode="json"),
            protocol=HUMAN_PLAY,
            game=game,
        )
        assert recordings.append(session, row.id, part)
    return row.id


@pytest.mark.long
def test_set_is_verified_and_evaluated_from_after_its_game_was_deleted(
    context: Context, engine: Engine
) -> None:
    recording_id = _record_game(context, engine)
    with reading(engine) as session:
        recorded = start_sets.games_of_recordings(session, [recording_id])
    content = start_sets.sample(recorded, 2, 0)
    run = _run(engine)
    _checkpoint(context, engine, run)

    def create() -> str:
        with writing(engine) as session:
            row = start_sets.create(session, "wall", content, origin=recorded.origin, created_by=None)
            return row.id

    def verify(set_id: str) -> None:
        job = _do_next_job(context, engine)
        assert (job.target_id, job.state) == (set_id, "done"), job.error

    def score() -> Any:
        with writing(engine) as session:
            evaluation, _ = evaluations.request(session, run.id, protocol="human_starts:wall@1", seed=3)
        job = _do_next_job(context, engine)
        assert (job.target_id, job.state) == (evaluation.id, "done"), job.error
        with reading(engine) as session:
            done = session.get_one(Evaluation, evaluation.id)
        return done.returns, done.lengths_frames

    of_game = [create()]
    verify(of_game[0])
    before = score()
    of_game.append(create())  # verified only after the game's deletion
    admin = Principal("", "root", Role.ADMIN, Credential("session", "s"))
    with writing(engine) as session:
        recordings.delete(session, admin, recording_id)
    verify(of_game[1])
    assert score() == before
    with reading(engine) as session:
        rows = [session.get_one(StartSet, set_id) for set_id in of_game]
        assert [(row.state, row.error, row.n_games, row.n_people) for row in rows] == [
            ("ready", None, 1, 1)
        ] * 2
        assert rows[0].sha256 == rows[1].sha256
        assert rows[0].states == rows[1].states


def test_evaluation_fails_once_its_set_is_deleted(context: Context, engine: Engine) -> None:
    run = _run(engine)
    set_id = _create(context, engine, _record(context, engine, run))
    _do_next_job(context, engine)
    _checkpoint(context, engine, run)
    with writing(engine) as session:
        evaluations.request(session, run.id, protocol="agent_starts:wall")
        start_sets.delete(session, set_id)
    job = _do_next_job(context, engine)
    assert (job.state, job.error) == ("failed", "the start set of agent_starts:wall@1 has been deleted")


def test_set_with_a_changed_state_is_not_verified(context: Context, engine: Engine) -> None:
    set_id = _create(context, engine, _record(context, engine, _run(engine)))
    with writing(engine) as session:
        document = starts.document_of(session, set_id)
        assert document is not None
        content = StartSetContent.model_validate_json(document)
        point: StartPoint = content.points[0].model_copy(update={"ram_sha256": "0" * 64})
        row = session.get_one(StartSet, set_id)
        starts.store_content(row, content.model_copy(update={"points": [point, *content.points[1:]]}))
    assert _do_next_job(context, engine).state == "done"
    with reading(engine) as session:
        row = session.get_one(StartSet, set_id)
    assert row.state == "failed"
    assert row.error == f"game 0: ram before decision {point.decision} differ from the set's"


def test_replay_of_an_episode_is_read_as_it_was_played(context: Context, engine: Engine) -> None:
    run = _run(engine)
    episode_id = _record(context, engine, run)
    with reading(engine) as session:
        game = episodes.read_game(context.store, episodes.get(session, episode_id))
    assert (game.seed, game.protocol, len(game.actions), len(game.rewards)) == (5, None, N, N)


def test_states_of_a_runs_set_are_written_for_its_engine(context: Context, engine: Engine) -> None:
    set_id = _create(context, engine, _record(context, engine, _run(engine)))
    _do_next_job(context, engine)
    run = make_run(engine, environment=GAME, config={"evaluation_protocol": "agent_starts:wall"})
    assert run.spec["config"]["evaluation_protocol"] == "agent_starts:wall@1"
    with writing(engine) as session:
        claims.start_attempt(session, runs.get(session, run.id, for_update=True), "a", 600)
        states = starts.states_of(session, "agent_starts:wall@1")
    claim = Claim(run.id, 1, memory_estimate_bytes=0, may_use_gpu=False)
    resume.prepare(context, claim)
    assert (context.run_dir(run.id) / STARTS_FILE).read_bytes() == states
    with writing(engine) as session:
        row = session.get_one(StartSet, set_id)
        row.states = None
    supervisor = Supervisor(context, claim, gameplay=Gameplay(context.settings.redis), command=FAKE_ENGINE)
    supervisor.start()
    supervisor.join(PATIENCE_S)
    with reading(engine) as session:
        ended = runs.get(session, run.id)
    reason = "the start set of agent_starts:wall@1, from which it is evaluated, has been deleted"
    assert (ended.state, ended.state_reason) == ("failed", reason)


@pytest.mark.long
def test_video_of_an_evaluation_is_rendered_from_its_start(context: Context, engine: Engine) -> None:
    _create(context, engine, _record(context, engine, _run(engine)))
    _do_next_job(context, engine)
    run = make_run(engine, environment=GAME, config={"evaluation_protocol": "agent_starts:wall"})
    spec = parse_run_spec(run.spec)
    with reading(engine) as session:
        states = starts.states_of(session, spec.evaluation_protocol)
    assert states is not None
    file = context.run_dir(run.id) / STARTS_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(states)
    env = make_env(spec.environment, spec.evaluation_config(spec.evaluation_protocol), file)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(0, observation)
    recorder = EpisodeRecorder()
    for action in (1, 2, 3) * 4:
        step = env.step(action, observation)
        recorder.add(action, step.reward, 0.0, np.full(6, 1 / 6), env.lives())
    replay = context.run_dir(run.id) / "replays" / "a1-e100.npz"
    recorder.save(
        replay, seed=0, protocol=spec.evaluation_protocol, frames_per_step=4, action_names=env.action_names
    )
    context.store.put(replay, run.id, "replays")
    with writing(engine) as session:
        episode = episode_row(run.id, replay=replay.name, kind="evaluation")
        session.add(episode)
        session.flush()
        episodes.request_video(session, episode, again=False)
    job = _do_next_job(context, engine)
    assert (job.state, job.error) == ("done", None)
    with writing(engine) as session:
        episodes.request_thumbnail(session, episodes.get(session, episode.id), again=True)
    job = _do_next_job(context, engine)
    assert (job.state, job.error) == ("done", None)
