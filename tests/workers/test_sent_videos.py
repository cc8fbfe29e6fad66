"""The jobs of a video that the script of an external run has sent: it is encoded, and has a thumbnail."""

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine, select, update

from backend.coordination.context import Context
from backend.db import Job, LogLine, RemovedFile, Run, Video
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.fleet.jobs.service import MAX_TRIES
from backend.fleet.storage import repository as storage_rows
from backend.fleet.storage import service as storage
from backend.platform.artifacts import thumbnail_file
from backend.platform.errors import Conflict, TooMany
from backend.replays.videos import repository as video_rows
from backend.replays.videos import service as videos
from backend.runs.runs import actions
from backend.runs.runs import service as runs
from backend.upkeep.backup import repository as backup_rows
from backend.upkeep.retention import repository as retention_rows
from backend.upkeep.retention import service as retention
from backend.upkeep.retention.policy import InstallationPolicy
from backend.upkeep.retention.removals import Policies
from tests.support.rows import make_run
from tests.support.waiting import PATIENCE_S
from workers import jobs
from workers.host_files import is_of_worker
from workers.jobs import JobRunner

pytestmark = pytest.mark.service


def _send(context: Context, engine: Engine, folder: Path, content: bytes | None, form: str) -> Run:
    """A video that has been received, in a run of an environment that no host knows."""
    upload = new_id()
    path = folder / f"{upload}.sent"
    if content is None:
        with path.open("wb") as file:
            np.savez_compressed(file, frames=np.full((6, 32, 48, 3), 90, np.uint8))
    else:
        path.write_bytes(content)
    run = make_run(engine)
    context.store.put(path, run.id, "videos")
    with writing(engine) as session:
        session.execute(update(Run).where(Run.id == run.id).values(environment="Mine-v0", origin="external"))
        locked = runs.find(session, run.id, for_update=True)
        assert locked is not None
        videos.add(
            session,
            locked,
            upload=upload,
            sent=path.name,
            sent_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
            sent_bytes=path.stat().st_size,
            agent_steps=70,
            wall_time_s=1.0,
            form=form,
            fps=3.0,
            sent_by="a script",
        )
    return run


def _do(context: Context, engine: Engine) -> None:
    with writing(engine) as session:
        won = jobs.claim(session, "a", 60, ["CartPole-v1"])
    assert won is not None
    runner = JobRunner(context, won)
    runner.start()
    runner.join(PATIENCE_S)


def test_job_encodes_frames_and_deletes_the_upload(context: Context, engine: Engine, tmp_path: Path) -> None:
    run = _send(context, engine, tmp_path, None, "frames")
    with reading(engine) as session:
        [video] = session.scalars(select(Video)).all()
        stored = video_rows.stored_size(session, run.id)
    assert stored == (1, video.sent_bytes)
    _do(context, engine)
    with reading(engine) as session:
        [video] = session.scalars(select(Video)).all()
        [job] = session.scalars(select(Job)).all()
        [removed] = session.scalars(select(RemovedFile)).all()
        assert not storage.is_needed(session, removed)
    assert (job.state, video.n_frames, video.duration_s, video.sent) == ("done", 6, 2.0, None)
    assert video.video == f"{video.id}.mp4"
    content = context.store.read(run.id, "videos", video.video, video.video_sha256)
    assert (len(content), content[4:8]) == (video.video_bytes, b"ftyp")
    assert not list(context.run_dir(run.id).glob("videos/*")), "the host keeps no copy"
    policies = Policies(InstallationPolicy(videos_days=1), {})
    with writing(engine) as session:
        removal = retention.apply(session, run.id, policies)
    assert removal is not None
    assert not removal.uploaded_videos, "it is new"
    with writing(engine) as session:
        session.execute(update(Video).values(received_at=run.created_at.replace(year=2020)))
        removal = retention.apply(session, run.id, policies)
    assert removal is not None
    assert [video.id for video in removal.uploaded_videos] == [video.id]
    with reading(engine) as session:
        assert session.scalars(select(Video)).all() == []
        assert session.scalars(select(Job)).all() == []
        gone = {row.file for row in session.scalars(select(RemovedFile))}
    assert gone == {removed.file, video.video}


def test_thumbnail_is_taken_when_asked_for_and_goes_with_its_video(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    run = _send(context, engine, tmp_path, None, "frames")
    _do(context, engine)
    with writing(engine) as session:
        [video] = session.scalars(select(Video)).all()
        assert not videos.has_thumbnail(context.store, video)
        videos.request_thumbnail(session, video, again=False)
    name = thumbnail_file(video.id)
    with reading(engine) as session:
        assert storage_rows.has_video(session, run.id, name), "it is going to be made"
    _do(context, engine)
    with reading(engine) as session:
        video = session.get_one(Video, video.id)
        kinds = {job.kind: job.state for job in session.scalars(select(Job))}
        assert storage_rows.has_video(session, run.id, name)
        stored = video_rows.stored_size(session, run.id)
        named = {file for _, _, file, _ in backup_rows.named_files(session)}
        by_kind = retention_rows.by_kind(session)["videos"]
    assert kinds == {"encode": "done", "video_thumbnail": "done"}
    assert videos.has_thumbnail(context.store, video)
    content = context.store.read(run.id, "videos", name, video.thumbnail_sha256)
    assert (content[:2], len(content)) == (b"\xff\xd8", video.thumbnail_bytes)
    n_bytes = video.video_bytes + len(content)
    assert (stored, by_kind) == ((1, n_bytes), (2, n_bytes))
    assert {video.video, name} <= named
    assert not list(context.run_dir(run.id).glob("videos/*")), "the host keeps no copy"
    with writing(engine) as session:
        session.execute(update(Video).values(received_at=run.created_at.replace(year=2020)))
        retention.apply(session, run.id, Policies(InstallationPolicy(videos_days=1), {}))
    with reading(engine) as session:
        assert session.scalars(select(Job)).all() == []
        assert name in {row.file for row in session.scalars(select(RemovedFile))}
        assert not storage_rows.has_video(session, run.id, name)


def test_video_is_kept_while_its_thumbnail_is_taken(context: Context, engine: Engine, tmp_path: Path) -> None:
    run = _send(context, engine, tmp_path, None, "frames")
    _do(context, engine)
    with writing(engine) as session:
        [video] = session.scalars(select(Video)).all()
        videos.request_thumbnail(session, video, again=False)
        session.execute(update(Video).values(received_at=run.created_at.replace(year=2020)))
        removal = retention.apply(session, run.id, Policies(InstallationPolicy(videos_days=1), {}))
    assert removal is not None
    assert not removal.uploaded_videos


def test_damaged_video_has_no_thumbnail_and_a_reason(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    _send(context, engine, tmp_path, None, "frames")
    _do(context, engine)
    with writing(engine) as session:
        [video] = session.scalars(select(Video)).all()
        video.video_sha256 = "0" * 64
        videos.request_thumbnail(session, video, again=False)
    _do(context, engine)
    with writing(engine) as session:
        video = session.get_one(Video, video.id)
        with pytest.raises(Conflict, match="missing or damaged; retry with again=true"):
            videos.request_thumbnail(session, video, again=False)
        assert videos.request_thumbnail(session, video, again=True).state == "queued"


def test_job_whose_engine_dies_logs_it_on_the_run(context: Context, engine: Engine, tmp_path: Path) -> None:
    run = _send(context, engine, tmp_path, None, "frames")
    for _ in range(MAX_TRIES):
        with reading(engine) as session:
            assert session.scalars(select(Video.error)).all() == [None], (
                "a killed engine is not the video's fault"
            )
        with writing(engine) as session:
            won = jobs.claim(session, "a", 60, [])
        assert won is not None
        command = (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
        runner = JobRunner(context, won, command=command)
        runner.start()
        runner.join(PATIENCE_S)
    with reading(engine) as session:
        [video] = session.scalars(select(Video)).all()
        [job] = session.scalars(select(Job)).all()
        [line] = session.scalars(
            select(LogLine).where(LogLine.run_id == run.id, LogLine.level == "warning")
        ).all()
    assert (job.state, video.sent, video.sent_bytes) == ("done", None, 0)
    assert "could not be encoded: the engine exited with status -9" in (video.error or "")
    assert "could not be encoded" in line.message
    assert is_of_worker(context.run_dir(run.id)), "clean-up removes its folder with the run"
    assert not list(context.run_dir(run.id).glob("videos/*"))


def test_video_of_a_deleted_run_is_encoded_once_the_run_is_restored(
    context: Context, engine: Engine, tmp_path: Path
) -> None:
    run = _send(context, engine, tmp_path, None, "frames")
    with writing(engine) as session:
        session.execute(update(Run).where(Run.id == run.id).values(state="finished"))
        actions.delete(session, run.id, restorable=True)
    with writing(engine) as session:
        assert jobs.claim(session, "a", 60, []) is None
    with writing(engine) as session:
        actions.restore(session, run.id)
    _do(context, engine)
    with reading(engine) as session:
        assert session.scalars(select(Job.state)).all() == ["done"]


def test_job_logs_an_invalid_video_on_the_run(context: Context, engine: Engine, tmp_path: Path) -> None:
    run = _send(context, engine, tmp_path, b"text", "file")
    _do(context, engine)
    with reading(engine) as session:
        [video] = session.scalars(select(Video)).all()
        [job] = session.scalars(select(Job)).all()
        [line] = session.scalars(
            select(LogLine).where(LogLine.run_id == run.id, LogLine.level == "warning")
        ).all()
    assert (job.state, video.video, video.sent, video.sent_bytes) == ("done", None, None, 0)
    assert "it is not an MP4" in (video.error or "")
    assert line.agent_steps == 70
    assert "cannot be shown: it is not an MP4" in line.message


def test_videos_of_one_sender_that_wait_and_their_time_are_bounded(
    context: Context, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(videos, "MAX_WAITING_OF_SENDER", 1)
    _send(context, engine, tmp_path, None, "frames")
    with reading(engine) as session:
        videos.require_turn(session, "another")
        with pytest.raises(TooMany, match="wait to be encoded"):
            videos.require_turn(session, "a script")
    _do(context, engine)
    with reading(engine) as session:
        videos.require_turn(session, "a script")
    with writing(engine) as session:
        session.execute(update(Job).values(took_s=videos.MAX_ENCODING_S_OF_DAY))
        with pytest.raises(TooMany, match="2 hours today"):
            videos.require_turn(session, "a script")
