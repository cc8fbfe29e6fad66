import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine

from backend.db import Episode, Evaluation, Job, Run
from backend.db.engine import reading, writing
from backend.db.ids import new_id
from backend.episodes import service as episodes
from backend.evaluations import service as evaluations
from backend.evaluations.schemas import EvaluationRequest
from tests.support.databases import ON_SQLITE_FIRST
from tests.workers.support import (
    FAKE_ENGINE,
    FlakyContext,
    add_checkpoint,
    engines_of,
    fake_run,
    run_row,
    until,
    until_state,
)
from workers import jobs
from workers.context import Context
from workers.host_agent import HostAgent
from workers.jobs import JobRunner

pytestmark = [pytest.mark.service, ON_SQLITE_FIRST]


@pytest.fixture(autouse=True)
def no_engine_is_left(context: Context) -> Iterator[None]:
    yield
    until(lambda: not engines_of(context))


def _episode(context: Context, engine: Engine, run: Run) -> Job:
    """An episode whose replay is in the store alone, and the wish for its video."""
    replay = context.run_dir(run.id) / "elsewhere" / "a1-s7.npz"
    replay.parent.mkdir(parents=True)
    replay.write_bytes(b"replay")
    context.store.put(replay, run.id, "replays")
    with writing(engine) as session:
        episode = Episode(
            id=new_id(), run_id=run.id, attempt=1, kind="training", recorded_at=datetime.now(UTC), source="",
            agent_steps=7, frames=7, wall_time_s=0.1, seed=1, episode_return=1.0, length_steps=7,
            length_frames=7, replay=replay.name, superseded=False,
        )  # fmt: skip
        session.add(episode)
        session.flush()
        return episodes.request_video(session, episode, again=False)


def _evaluation(context: Context, engine: Engine, run: Run, sha256: str) -> Job:
    file = context.run_dir(run.id) / "elsewhere" / "a1-s000000000020.pt"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"weights")
    context.store.put(file, run.id, "checkpoints")
    with writing(engine) as session:
        add_checkpoint(session, run.id, 20, sha256=sha256)
        return evaluations.request(session, run.id, EvaluationRequest(episodes=3, seed=5))[1]


def _claim(engine: Engine) -> jobs.ClaimedJob | None:
    with writing(engine) as session:
        return jobs.claim(session, "a", 60, ["CartPole-v1"])


def _do(context: Context, engine: Engine) -> JobRunner:
    won = _claim(engine)
    assert won is not None
    runner = JobRunner(context, won, engine=FAKE_ENGINE)
    runner.start()
    return runner


def _row(engine: Engine, job: Job) -> Job:
    with reading(engine) as session:
        return session.get_one(Job, job.id)


def test_a_video_is_drawn_and_kept(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    job = _episode(context, engine, run)
    _do(context, engine).join(30)
    assert (_row(engine, job).state, _row(engine, job).error) == ("done", None)
    with reading(engine) as session:
        video = session.get_one(Episode, job.target_id).video
    assert video == f"{job.target_id}.mp4"
    with context.store.open(run.id, "videos", video) as file:
        assert file.read() == b"video of replay"
    with context.store.open(run.id, "videos", f"{job.target_id}-observations.mp4") as file:
        assert file.read() == b"observations of replay"
    assert run_row(engine, run.id).revision > run.revision
    assert _claim(engine) is None


def test_a_checkpoint_is_scored(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    job = _evaluation(context, engine, run, hashlib.sha256(b"weights").hexdigest())
    _do(context, engine).join(30)
    assert _row(engine, job).state == "done"
    with reading(engine) as session:
        row = session.get_one(Evaluation, job.target_id)
    assert (row.returns, row.lengths_frames, row.mean_return) == ([1.0] * 3, [10] * 3, 1.0)


def test_a_damaged_checkpoint_is_not_scored(context: Context, engine: Engine) -> None:
    job = _evaluation(context, engine, fake_run(engine), "0" * 64)
    _do(context, engine).join(30)
    row = _row(engine, job)
    assert (row.state, row.error) == ("failed", "the checkpoint a1-s000000000020.pt is gone or damaged")


def test_a_failure_tells_the_engines_last_words(context: Context, engine: Engine) -> None:
    job = _episode(context, engine, fake_run(engine, job="fail"))
    _do(context, engine).join(30)
    assert (_row(engine, job).state, _row(engine, job).error) == ("failed", "cannot draw this")
    with reading(engine) as session:
        assert session.get_one(Episode, job.target_id).video is None


def test_a_database_that_is_away_when_a_job_begins_is_waited_for(
    context: Context, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    job = _episode(context, engine, fake_run(engine))
    away = [True]
    flaky = FlakyContext(context.settings, context.engine, context.store, context.bus, away)
    runner = _do(flaky, engine)
    until(lambda: "job.waits" in caplog.text or not runner.is_alive())
    away.clear()
    runner.join(30)
    assert (_row(engine, job).state, _row(engine, job).error, _row(engine, job).tries) == ("done", None, 1)


def test_a_store_that_takes_nothing_when_a_job_ends_is_waited_for(
    context: Context, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    run = fake_run(engine)
    job = _episode(context, engine, run)
    in_the_way = context.settings.home_dir / "artifacts" / "runs" / run.id / "videos"
    in_the_way.touch()
    runner = _do(context, engine)
    until(lambda: "job.waits" in caplog.text or not runner.is_alive())
    in_the_way.unlink()
    runner.join(30)
    assert (_row(engine, job).state, _row(engine, job).error, _row(engine, job).tries) == ("done", None, 1)


def test_the_lease_is_held_while_it_takes(context: Context, engine: Engine) -> None:
    job = _episode(context, engine, fake_run(engine, job_s=4))  # leases are of 3 s
    with writing(engine) as session:
        won = jobs.claim(session, "a", 1.0, ["CartPole-v1"])
    assert won is not None
    runner = JobRunner(context, won, engine=FAKE_ENGINE)
    runner.start()
    until(lambda: _claim(engine) or not runner.is_alive())
    assert (_row(engine, job).state, _row(engine, job).tries) == ("done", 1)


def test_a_cancelled_job_waits_again(context: Context, engine: Engine) -> None:
    job = _episode(context, engine, fake_run(engine, job_s=60))
    runner = _do(context, engine)
    until(lambda: engines_of(context))
    runner.cancel()
    runner.join(30)
    assert (_row(engine, job).state, _row(engine, job).tries) == ("queued", 0)


def test_a_try_that_had_printed_when_it_was_cancelled_leaves_nothing_to_the_next(
    context: Context, engine: Engine
) -> None:
    run = fake_run(engine, job_waits=True)
    job = _evaluation(context, engine, run, hashlib.sha256(b"weights").hexdigest())
    runner = _do(context, engine)
    until(lambda: any(path.stat().st_size for path in context.run_dir(run.id).glob("jobs/*/stdout.log")))
    runner.cancel()
    runner.join(30)
    (context.run_dir(run.id) / "go").touch()
    _do(context, engine).join(30)
    assert (_row(engine, job).state, _row(engine, job).error) == ("done", None)
    assert list(context.run_dir(run.id).glob("jobs/*")) == []


def test_a_job_leaves_the_spec_of_the_training_alone(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    job = _episode(context, engine, run)
    spec = context.run_dir(run.id) / "spec.json"
    spec.write_text("of an attempt that starts")
    _do(context, engine).join(30)
    assert _row(engine, job).state == "done"
    assert spec.read_text() == "of an attempt that starts"


def test_a_try_that_lost_its_lease_writes_nothing(context: Context, engine: Engine) -> None:
    job = _episode(context, engine, fake_run(engine, job_s=1))
    runner = _do(context, engine)
    until(lambda: engines_of(context))
    with writing(engine) as session:
        session.get_one(Job, job.id).tries = 2
    runner.join(30)
    assert _row(engine, job).state == "running"
    with reading(engine) as session:
        assert session.get_one(Episode, job.target_id).video is None


def test_a_job_is_done_beside_a_run(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=10_000)
    agent = HostAgent(context, engine=FAKE_ENGINE)
    agent.start()
    until_state(engine, run.id, "running")
    job = _episode(context, engine, run)
    until(lambda: _row(engine, job).state == "done")
    assert run_row(engine, run.id).state == "running"
    agent.stop(8)
