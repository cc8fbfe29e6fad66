"""Branches, saliency maps and exported agents with the real engine."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sqlalchemy import Engine

from backend.analysis.agents import service as agents
from backend.coordination.context import Context
from backend.db import Branch, Job, Run, StoredAgent, StoredSaliency
from backend.db.engine import UnitOfWork, reading, writing
from backend.platform.artifacts import agent_file
from backend.replays.branches import service as branches
from backend.replays.branches.schemas import BranchRequest
from backend.replays.episodes import service as episodes
from backend.replays.saliency import service as saliency
from backend.specs.agents import WEIGHTS, AgentFormat
from backend.specs.run import parse_run_spec
from tests.support.engine_fixtures import one_thread as one_thread
from tests.support.rows import checkpoint_row, episode_row, make_run
from tests.support.waiting import PATIENCE_S
from workers import jobs
from workers.engine.envs import make_env
from workers.engine.methods.recording import EpisodeRecorder
from workers.engine.methods.registry import METHODS
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.training.branches import play_continuations
from workers.engine.training.checkpoint import save
from workers.engine.training.evaluation import load_policies
from workers.jobs import JobRunner

pytestmark = pytest.mark.service

CATCH: dict[str, Any] = {
    "environment": "Catch-v0",
    "config": {"network": "compact", "n_e": 2, "n_w": 1, "gamma": 0.9},
}


def _record(context: Context, engine: Engine, run: Run) -> str:
    """Store the beginning of an episode of the run."""
    spec = parse_run_spec(run.spec)
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(5, observation)
    recorder = EpisodeRecorder()
    for t in range(8):
        step = env.step(t % 3, observation)
        recorder.add(t % 3, step.reward, 0.5, np.full(3, 1 / 3), 0)
    file = context.run_dir(run.id) / "replays" / "a1-s100.npz"
    recorder.save(file, seed=5, protocol=None, frames_per_step=1, action_names=env.action_names)
    context.store.put(file, run.id, "replays")
    with writing(engine) as session:
        episode = episode_row(run.id, replay=file.name, length_steps=8)
        session.add(episode)
    return episode.id


def _checkpoint(context: Context, engine: Engine, run: Run, seed: int = 1) -> tuple[str, Path]:
    """Store a checkpoint of an agent that has learnt nothing."""
    spec = parse_run_spec(run.spec)
    torch.manual_seed(seed)
    env = make_env(spec.environment, spec.environment_config)
    theta = FlatParameters(METHODS[spec.algorithm].network(spec.config, env)).theta
    file = context.run_dir(run.id) / "checkpoints" / "a1-s000000000100.pt"
    sha256, size = save(file, {"learner": {"theta": theta}})
    context.store.put(file, run.id, "checkpoints")
    with writing(engine) as session:
        row = checkpoint_row(run.id, file=file.name, sha256=sha256, size_bytes=size)
        session.add(row)
    return row.id, file


def _do_next_job(context: Context, engine: Engine) -> Job:
    with writing(engine) as session:
        won = jobs.claim(session, "a", 600, ["Catch-v0"])
    assert won is not None
    runner = JobRunner(context, won)
    runner.start()
    runner.join(PATIENCE_S)
    with reading(engine) as session:
        return session.get_one(Job, won.id)


def _branch(context: Context, engine: Engine, episode: str, **request: Any) -> str:
    body = BranchRequest(episode=episode, decision=3, continuations=5, horizon=4, seed=7, **request)
    with reading(engine) as session, writing(engine) as writer:
        return branches.create(UnitOfWork(session, writer), context.store, body, None)[0].id


def _row(engine: Engine, branch_id: str) -> Branch:
    with reading(engine) as session:
        return branches.get(session, branch_id, with_rewards=True)


@pytest.mark.long
def test_worker_plays_a_branch_with_a_checkpoint_of_another_run(context: Context, engine: Engine) -> None:
    run, other = make_run(engine, **CATCH), make_run(engine, **CATCH)
    episode_id = _record(context, engine, run)
    _checkpoint(context, engine, run)
    checkpoint_id, file = _checkpoint(context, engine, other, seed=2)
    branch_id = _branch(context, engine, episode_id, checkpoint=checkpoint_id)
    job = _do_next_job(context, engine)
    assert (job.state, job.error) == ("done", None)
    row = _row(engine, branch_id)
    assert row.outcome is not None

    spec = parse_run_spec(run.spec)
    replay = context.store.get(run.id, "replays", "a1-s100.npz", context.run_dir(run.id) / "replays")
    reader, actor = load_policies(parse_run_spec(other.spec), file, [7, 7])
    expected = play_continuations(spec, replay, (reader, actor), branches.plan_of(row))
    assert row.outcome["value"] == pytest.approx(expected.value, rel=1e-6)
    with reading(engine) as session:
        rewards = [line.tolist() for line in branches.rewards_of(session, row)]
    assert rewards == [line.rewards for line in expected.continuations]
    assert not list((context.run_dir(run.id) / "jobs").iterdir()), "the host keeps nothing"


def test_branch_fails_once_its_replay_is_lost(context: Context, engine: Engine) -> None:
    run = make_run(engine, **CATCH)
    episode_id = _record(context, engine, run)
    _checkpoint(context, engine, run)
    _branch(context, engine, episode_id)
    (context.run_dir(run.id) / "replays" / "a1-s100.npz").unlink()
    context.store.delete(run.id, "replays", "a1-s100.npz")
    job = _do_next_job(context, engine)
    assert (job.state, job.error) == ("failed", "the replay a1-s100.npz is missing or damaged")


def test_branch_that_is_deleted_meanwhile_is_not_played(context: Context, engine: Engine) -> None:
    run = make_run(engine, **CATCH)
    episode_id = _record(context, engine, run)
    _checkpoint(context, engine, run)
    branch_id = _branch(context, engine, episode_id)
    with writing(engine) as session:
        won = jobs.claim(session, "a", 600, ["Catch-v0"])
        branches.delete(session, branch_id)
    assert won is not None
    runner = JobRunner(context, won)
    runner.start()
    runner.join(PATIENCE_S)
    with reading(engine) as session:
        assert session.get(Job, won.id) is None


@pytest.mark.long
@pytest.mark.parametrize("file_format", ["safetensors", "onnx"])
def test_worker_exports_an_agent(
    context: Context, engine: Engine, tmp_path: Path, file_format: AgentFormat
) -> None:
    run = make_run(engine, **CATCH)
    _checkpoint(context, engine, run)
    with writing(engine) as session:
        agents.request(session, run, checkpoint="latest", file_format=file_format, licence=None, again=False)
    job = _do_next_job(context, engine)
    assert (job.state, job.error) == ("done", None)
    with reading(engine) as session:
        row = session.get_one(StoredAgent, job.target_id)
    context.store.check(run.id, "videos", agent_file(row.id), row.sha256)
    with zipfile.ZipFile(context.store.get(run.id, "videos", agent_file(row.id), tmp_path)) as archive:
        names = set(archive.namelist())
    assert names == {"README.md", "config.yml", "results.json", "replay.mp4", WEIGHTS[file_format]}


@pytest.mark.long
def test_worker_computes_a_saliency_map(context: Context, engine: Engine) -> None:
    run = make_run(engine, **CATCH)
    episode_id = _record(context, engine, run)
    _checkpoint(context, engine, run)
    with writing(engine) as session:
        episode = episodes.get(session, episode_id)
        saliency.request(session, episode, decision=4, checkpoint_id=None, again=False)
    job = _do_next_job(context, engine)
    assert (job.state, job.error) == ("done", None)
    with reading(engine) as session:
        row = session.get_one(StoredSaliency, job.target_id)
    assert row.map is not None
    assert np.array(row.map["policy"]).shape == (17, 17)
    assert np.array(row.map["value"]).max() > 0
