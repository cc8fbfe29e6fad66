import hashlib
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from backend.coordination.context import Context
from backend.db import Episode, Evaluation, Job, Run
from backend.db.changes import ChangeEvent, take_changes
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.platform.artifacts import ArtifactKind
from backend.replays.episodes import service as episodes
from backend.runs.evaluations import service as evaluations
from tests.support.rows import episode_row
from tests.support.waiting import PATIENCE_S, until
from tests.workers.support import (
    ENDLESS,
    FAKE_ENGINE,
    FlakyContext,
    add_checkpoint,
    engines_of,
    fake_run,
    run_row,
    until_state,
)
from workers import jobs
from workers.host_agent import HostAgent
from workers.jobs import JobRunner

pytestmark = pytest.mark.service


@pytest.fixture(autouse=True)
def no_engine_is_left(context: Context) -> Iterator[None]:
    yield
    until(lambda: not engines_of(context.settings.runs_dir))


def _episode(context: Context, engine: Engine, run: Run) -> Job:
    """Store an episode whose replay is only in the store, and request its video."""
    replay = context.run_dir(run.id) / "elsewhere" / "a1-s7.npz"
    replay.parent.mkdir(parents=True)
    replay.write_bytes(b"replay")
    context.store.put(replay, run.id, "replays")
    with writing(engine) as session:
        episode = episode_row(run.id, 7, replay=replay.name)
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
        return evaluations.request(session, run.id, n_episodes=3, seed=5)[1]


def _claim(engine: Engine) -> jobs.ClaimedJob | None:
    with writing(engine) as session:
        return jobs.claim(session, "a", 60, ["CartPole-v1"])


def _do(context: Context, engine: Engine) -> JobRunner:
    won = _claim(engine)
    assert won is not None
    runner = JobRunner(context, won, command=FAKE_ENGINE)
    runner.start()
    return runner


def _row(engine: Engine, job: Job) -> Job:
    with reading(engine) as session:
        return session.get_one(Job, job.id)


def test_video_job_stores_videos_and_updates_episode(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    job = _episode(context, engine, run)
    _do(context, engine).join(PATIENCE_S)
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


def test_thumbnail_job_stores_the_thumbnail_of_replay_or_video(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    video = _episode(context, engine, run)

    def thumbnail() -> bytes:
        with writing(engine) as session:
            episode = session.get_one(Episode, video.target_id)
            job = episodes.request_thumbnail(session, episode, again=False)
        _do(context, engine).join(PATIENCE_S)
        assert (_row(engine, job).state, _row(engine, job).error) == ("done", None)
        with reading(engine) as session:
            episode = session.get_one(Episode, video.target_id)
        file = f"{episode.id}-thumbnail.jpg"
        content = context.store.read(run.id, "videos", file, episode.thumbnail_sha256)
        assert episode.thumbnail_bytes == len(content)
        assert not (context.run_dir(run.id) / "videos" / file).exists(), "the host keeps no copy"
        return content

    with writing(engine) as session:
        session.delete(session.get_one(Job, video.id))
    assert thumbnail() == b"thumbnail of replay"
    with writing(engine) as session:
        episodes.request_video(session, session.get_one(Episode, video.target_id), again=False)
    _do(context, engine).join(PATIENCE_S)
    assert thumbnail() == b"thumbnail of video of replay"


def test_only_thumbnails_are_stored_without_a_change_of_the_rest_of_their_run(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fake_run(engine)
    video = _episode(context, engine, run)
    with writing(engine) as session:
        episodes.request_thumbnail(session, session.get_one(Episode, video.target_id), again=False)
    published: list[ChangeEvent] = []
    monkeypatch.setattr(
        context.bus, "publish_changes", lambda session: published.extend(take_changes(session))
    )
    for _ in ("video", "thumbnail"):
        _do(context, engine).join(PATIENCE_S)
    assert [change.changed for change in published if change.id == run.id] == [[], ["thumbnails"]]


def test_failed_thumbnail_keeps_stderr_of_engine(context: Context, engine: Engine) -> None:
    run = fake_run(engine, job="fail")
    video = _episode(context, engine, run)
    with writing(engine) as session:
        session.delete(session.get_one(Job, video.id))
        job = episodes.request_thumbnail(session, session.get_one(Episode, video.target_id), again=False)
    _do(context, engine).join(PATIENCE_S)
    assert (_row(engine, job).state, _row(engine, job).error) == ("failed", "cannot render this")


def test_thumbnails_do_not_delay_videos(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    video = _episode(context, engine, run)
    with writing(engine) as session:
        session.delete(session.get_one(Job, video.id))
        episode = session.get_one(Episode, video.target_id)
        episodes.request_thumbnail(session, episode, again=False)
        episodes.request_video(session, episode, again=False)
    claimed = [_claim(engine), _claim(engine)]
    assert [job.kind for job in claimed if job] == ["video", "thumbnail"]


def test_evaluation_job_stores_returns(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    job = _evaluation(context, engine, run, hashlib.sha256(b"weights").hexdigest())
    _do(context, engine).join(PATIENCE_S)
    assert _row(engine, job).state == "done"
    with reading(engine) as session:
        row = session.get_one(Evaluation, job.target_id)
    assert (row.returns, row.lengths_frames, row.mean_return) == ([1.0] * 3, [10] * 3, 1.0)


def test_evaluation_job_fails_for_damaged_checkpoint(context: Context, engine: Engine) -> None:
    job = _evaluation(context, engine, fake_run(engine), "0" * 64)
    _do(context, engine).join(PATIENCE_S)
    row = _row(engine, job)
    assert (row.state, row.error) == ("failed", "the checkpoint a1-s000000000020.pt is missing or damaged")


def test_failed_job_keeps_stderr_of_engine(context: Context, engine: Engine) -> None:
    job = _episode(context, engine, fake_run(engine, job="fail"))
    _do(context, engine).join(PATIENCE_S)
    assert (_row(engine, job).state, _row(engine, job).error) == ("failed", "cannot render this")
    with reading(engine) as session:
        assert session.get_one(Episode, job.target_id).video is None


def test_job_waits_for_database_before_it_starts(
    context: Context, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    job = _episode(context, engine, fake_run(engine))
    outage = [True]
    flaky = FlakyContext(context.settings, context.db_engine, context.store, context.bus, outage)
    runner = _do(flaky, engine)
    until(lambda: "job.waiting" in caplog.text or not runner.is_alive())
    outage.clear()
    runner.join(PATIENCE_S)
    assert (_row(engine, job).state, _row(engine, job).error, _row(engine, job).tries) == ("done", None, 1)


def test_job_waits_for_artifact_store_before_it_ends(
    context: Context, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    run = fake_run(engine)
    job = _episode(context, engine, run)
    obstacle = context.settings.home_dir / "artifacts" / "runs" / run.id / "videos"
    obstacle.touch()
    runner = _do(context, engine)
    until(lambda: "job.waiting" in caplog.text or not runner.is_alive())
    obstacle.unlink()
    runner.join(PATIENCE_S)
    assert (_row(engine, job).state, _row(engine, job).error, _row(engine, job).tries) == ("done", None, 1)


def _expire_lease(engine: Engine, job: Job) -> None:
    with writing(engine) as session:
        row = session.get_one(Job, job.id)
        row.lease_expires_at = database_now(session) - timedelta(seconds=1)


def _is_renewed(engine: Engine, job: Job) -> bool:
    with writing(engine) as session:
        ends_at = session.get_one(Job, job.id).lease_expires_at
        assert ends_at is not None
        if ends_at < database_now(session) + timedelta(seconds=1):
            return False
        return jobs.claim(session, "b", 60, ["CartPole-v1"]) is None


def test_job_renews_its_lease_while_it_runs(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder renews an expired lease again and again, and no other host can claim the job then."""
    clock_s = [0.0]
    monkeypatch.setattr("workers.jobs.monotonic", lambda: clock_s[0])
    run = fake_run(engine, job_waits=True)
    job = _evaluation(context, engine, run, hashlib.sha256(b"weights").hexdigest())
    runner = _do(context, engine)
    for _ in range(3):
        _expire_lease(engine, job)
        clock_s[0] += context.settings.lease_s / 3
        until(lambda: _is_renewed(engine, job))
    (context.run_dir(run.id) / "go").touch()
    runner.join(PATIENCE_S)
    assert (_row(engine, job).state, _row(engine, job).tries) == ("done", 1)


def test_job_renews_its_lease_while_the_store_is_slow(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_s = [0.0]
    monkeypatch.setattr("workers.jobs.monotonic", lambda: clock_s[0])
    job = _episode(context, engine, fake_run(engine))
    transfers, may_end, get = threading.Event(), threading.Event(), context.store.get

    def get_slowly(run_id: str, kind: ArtifactKind, file: str, folder: Path) -> Path:
        transfers.set()
        assert may_end.wait(PATIENCE_S)
        return get(run_id, kind, file, folder)

    monkeypatch.setattr(context.store, "get", get_slowly)
    runner = _do(context, engine)
    assert transfers.wait(PATIENCE_S)
    _expire_lease(engine, job)
    clock_s[0] += context.settings.lease_s / 3
    until(lambda: _is_renewed(engine, job))
    may_end.set()
    runner.join(PATIENCE_S)
    assert (_row(engine, job).state, _row(engine, job).tries) == ("done", 1)


def test_evaluation_does_not_need_the_checkpoint_that_its_training_engine_removes(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fake_run(engine)
    job = _evaluation(context, engine, run, hashlib.sha256(b"weights").hexdigest())
    get = context.store.get

    def get_and_thin(run_id: str, kind: ArtifactKind, file: str, folder: Path) -> Path:
        path = get(run_id, kind, file, folder)
        (context.run_dir(run.id) / "checkpoints" / file).unlink(missing_ok=True)
        return path

    monkeypatch.setattr(context.store, "get", get_and_thin)
    _do(context, engine).join(PATIENCE_S)
    assert (_row(engine, job).state, _row(engine, job).error) == ("done", None)


def test_cancelled_job_is_queued_again(context: Context, engine: Engine) -> None:
    job = _episode(context, engine, fake_run(engine, job_s=600))
    runner = _do(context, engine)
    until(lambda: engines_of(context.settings.runs_dir))
    runner.cancel()
    runner.join(PATIENCE_S)
    assert (_row(engine, job).state, _row(engine, job).tries) == ("queued", 0)


def test_output_of_cancelled_try_is_not_used_by_next_try(context: Context, engine: Engine) -> None:
    run = fake_run(engine, job_waits=True)
    job = _evaluation(context, engine, run, hashlib.sha256(b"weights").hexdigest())
    runner = _do(context, engine)
    until(lambda: any(path.stat().st_size for path in context.run_dir(run.id).glob("jobs/*/stdout.log")))
    runner.cancel()
    runner.join(PATIENCE_S)
    (context.run_dir(run.id) / "go").touch()
    _do(context, engine).join(PATIENCE_S)
    assert (_row(engine, job).state, _row(engine, job).error) == ("done", None)
    assert list(context.run_dir(run.id).glob("jobs/*")) == []


def test_job_does_not_change_spec_file_of_run(context: Context, engine: Engine) -> None:
    run = fake_run(engine)
    job = _episode(context, engine, run)
    spec = context.run_dir(run.id) / "spec.json"
    spec.write_text("written by a starting attempt")
    _do(context, engine).join(PATIENCE_S)
    assert _row(engine, job).state == "done"
    assert spec.read_text() == "written by a starting attempt"


def test_try_that_lost_its_lease_stores_nothing(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_s = [0.0]
    monkeypatch.setattr("workers.jobs.monotonic", lambda: clock_s[0])
    job = _episode(context, engine, fake_run(engine, job_s=600))
    runner = _do(context, engine)
    until(lambda: engines_of(context.settings.runs_dir))
    with writing(engine) as session:
        session.get_one(Job, job.id).tries = 2
    clock_s[0] += context.settings.lease_s / 3
    runner.join(PATIENCE_S)
    assert _row(engine, job).state == "running"
    with reading(engine) as session:
        assert session.get_one(Episode, job.target_id).video is None


def test_job_runs_during_a_training_run(context: Context, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=ENDLESS)
    agent = HostAgent(context, command=FAKE_ENGINE)
    agent.start()
    until_state(engine, run.id, "running")
    job = _episode(context, engine, run)
    until(lambda: _row(engine, job).state == "done")
    assert run_row(engine, run.id).state == "running"
    agent.stop(8)
