"""Videos that the scripts of external runs have sent, and that workers encode."""

from collections.abc import Iterable

from sqlalchemy.orm import Session

from backend.artifacts import encoded_file
from backend.db import Job, Run, Video
from backend.db.base import new_id, storable
from backend.db.clock import database_now
from backend.jobs import repository as job_rows
from backend.jobs import service as jobs
from backend.runs import service as runs
from backend.storage import service as storage
from backend.videos import repository

ENCODE = job_rows.ENCODE
"""Kind of the job that encodes a video."""

WOKEN_QUEUE = "cpu"
"""Its workers are woken for a new video; any worker may encode it."""

MAX_ERROR = 500


def find(session: Session, video_id: str) -> Video | None:
    """The video, or None."""
    return repository.get(session, video_id)


def encoding_jobs(session: Session, videos: Iterable[Video]) -> dict[str, Job]:
    """The jobs that encode videos, by the video's id."""
    return job_rows.find_all(session, ENCODE, [video.id for video in videos if video.video is None])


def add(
    session: Session,
    run: Run,
    *,
    upload: str,
    sent: str,
    sent_sha256: str,
    sent_bytes: int,
    agent_steps: int,
    wall_time_s: float,
    form: str,
    fps: float | None,
) -> None:
    """Add a video that the script of a locked external run has sent, and queue the job that encodes it."""
    video = Video(
        id=new_id(),
        run_id=run.id,
        received_at=database_now(session),
        agent_steps=agent_steps,
        wall_time_s=wall_time_s,
        form=form,
        fps=fps,
        upload=upload,
        sent=sent,
        sent_sha256=sent_sha256,
        sent_bytes=sent_bytes,
        video_bytes=0,
    )
    repository.add(session, video)
    jobs.request(session, ENCODE, run.id, video.id, queue=WOKEN_QUEUE)


def record_encoded(
    session: Session, video_id: str, *, sha256: str, n_bytes: int, n_frames: int, duration_s: float
) -> None:
    """Record that a video is encoded; the uploaded file is no longer needed."""
    video = session.get_one(Video, video_id)
    video.video, video.video_sha256, video.video_bytes = encoded_file(video_id), sha256, n_bytes
    video.n_frames, video.duration_s = n_frames, duration_s
    _forget_sent(session, video)


def record_unusable(session: Session, video_id: str, error: str) -> None:
    """Record, also in the run's log, that the uploaded file is not a video; it is no longer needed."""
    video = session.get_one(Video, video_id)
    video.error = storable(error)[:MAX_ERROR]
    _forget_sent(session, video)
    attempt = session.get_one(Run, video.run_id).attempt
    message = f"A video that the script has sent cannot be shown: {video.error}"
    runs.log(session, video.run_id, attempt, "warning", message, video.agent_steps)


def _forget_sent(session: Session, video: Video) -> None:
    if video.sent is not None:
        storage.remove_files(session, video.run_id, "videos", [video.sent])
    video.sent, video.sent_bytes = None, 0
