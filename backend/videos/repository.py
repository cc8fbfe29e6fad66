"""Videos of external runs in the database."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db import Job, Run, Video, keyset
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.jobs import repository as jobs
from backend.jobs.repository import ENCODE
from backend.runs import repository as runs
from backend.storage import repository as storage

WOKEN_QUEUE = "cpu"
"""Its workers are woken for a new video; any worker may encode it."""

MAX_ERROR = 500


def get(session: Session, video_id: str) -> Video | None:
    """The video, or None."""
    return session.get(Video, video_id)


def page(session: Session, run_id: str, *, limit: int, cursor: str | None) -> tuple[list[Video], str | None]:
    """One page of a run's videos, latest first, and the cursor of the next page."""
    return keyset.page(
        session,
        select(Video).where(Video.run_id == run_id),
        by=Video.agent_steps,
        row_id=Video.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )


def encoding(session: Session, videos: Iterable[Video]) -> dict[str, Job]:
    """The jobs that encode videos, by the video's id."""
    return jobs.find_all(session, ENCODE, [video.id for video in videos if video.video is None])


def stored_size(session: Session, run_id: str) -> tuple[int, int]:
    """Number and bytes of a run's videos."""
    n_bytes: Any = func.coalesce(func.sum(Video.video_bytes + Video.sent_bytes), 0)
    row = session.execute(select(func.count(), n_bytes).where(Video.run_id == run_id)).one()
    return row[0], int(row[1])


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
    session.add(video)
    session.flush()
    jobs.request(session, ENCODE, run.id, video.id, queue=WOKEN_QUEUE)


def encoded(
    session: Session, video_id: str, *, sha256: str, n_bytes: int, n_frames: int, duration_s: float
) -> None:
    """Record that a video is encoded; the uploaded file is no longer needed."""
    video = session.get_one(Video, video_id)
    video.video, video.video_sha256, video.video_bytes = encoded_file(video_id), sha256, n_bytes
    video.n_frames, video.duration_s = n_frames, duration_s
    _forget_sent(session, video)


def unusable(session: Session, video_id: str, error: str) -> None:
    """Record, also in the run's log, that the uploaded file is not a video; it is no longer needed."""
    video = session.get_one(Video, video_id)
    video.error = error[:MAX_ERROR]
    _forget_sent(session, video)
    line = {
        "time": database_now(session),
        "level": "warning",
        "message": f"A video that the script has sent cannot be shown: {video.error}",
        "agent_steps": video.agent_steps,
    }
    attempt = session.get_one(Run, video.run_id).attempt
    runs.add_log_lines(session, video.run_id, attempt, [line])


def encoded_file(video_id: str) -> str:
    """File name of an encoded video."""
    return f"{video_id}.mp4"


def _forget_sent(session: Session, video: Video) -> None:
    if video.sent is not None:
        storage.remove_files(session, video.run_id, "videos", [video.sent])
    video.sent, video.sent_bytes = None, 0
