"""Videos that the scripts of external runs have sent, and that workers encode."""

from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy.orm import Session

from backend.db import Job, Run, Video
from backend.db.base import new_id, storable
from backend.db.clock import database_now
from backend.db.job import ENCODE, VIDEO_THUMBNAIL
from backend.fleet.jobs import repository as job_rows
from backend.fleet.jobs import service as jobs
from backend.fleet.storage import service as storage
from backend.platform.artifacts import ArtifactStore, Damaged, encoded_file, thumbnail_file
from backend.platform.errors import Conflict, NotFound, TooMany
from backend.replays.episodes.service import MAX_WAITING_THUMBNAILS, MAX_WAITING_THUMBNAILS_OF_USER, RETRY_S
from backend.replays.videos import repository
from backend.runs.runs import service as runs

WOKEN_QUEUE = "cpu"
"""Its workers are woken for a new video; any worker may encode it."""

MAX_ERROR = 500
MAX_WAITING_OF_SENDER = 20
"""Videos of a token that wait to be encoded."""
MAX_ENCODING_S_OF_DAY = 2 * 3600.0
"""How long a day the videos of a token may occupy hosts."""
LATER_S = 600.0
"""When a script may try again that has sent too many of them."""


def find(session: Session, video_id: str) -> Video | None:
    """The video, or None."""
    return repository.get(session, video_id)


def get(session: Session, video_id: str) -> Video:
    """The video.

    Raises:
        NotFound: there is no such video.
    """
    video = find(session, video_id)
    if video is None:
        raise NotFound(f"video {video_id} does not exist")
    return video


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
    sent_by: str,
) -> None:
    """Add a video that the script of a locked external run has sent, and queue the job that encodes it.
    `sent_by` is the token or session that pays for it."""
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
    jobs.request(session, ENCODE, run.id, video.id, queue=WOKEN_QUEUE, requested_by=sent_by)


def require_turn(session: Session, sent_by: str) -> None:
    """Refuse another video of who has sent too many: a host encodes one at a time, and does nothing else.

    Raises:
        TooMany: too many of theirs wait, or have taken too long today.
    """
    if job_rows.count_waiting(session, ENCODE).get(sent_by, 0) >= MAX_WAITING_OF_SENDER:
        detail = f"{MAX_WAITING_OF_SENDER} videos of this token wait to be encoded, the maximum"
        raise TooMany(f"{detail}: try again later", RETRY_S)
    since = database_now(session) - timedelta(days=1)
    if job_rows.time_taken_s(session, ENCODE, sent_by, since) >= MAX_ENCODING_S_OF_DAY:
        detail = f"the videos of this token have taken {MAX_ENCODING_S_OF_DAY / 3600:.0f} hours today"
        raise TooMany(f"{detail}, the maximum: try again later", LATER_S)


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


def has_thumbnail(store: ArtifactStore, video: Video) -> bool:
    """Whether the video's thumbnail is stored and intact; a damaged or lost one is rendered again."""
    if video.thumbnail_bytes is None:
        return False
    try:
        store.check(video.run_id, "videos", thumbnail_file(video.id), video.thumbnail_sha256)
    except (Damaged, FileNotFoundError):
        return False
    return True


def request_thumbnail(session: Session, video: Video, *, again: bool, requested_by: str | None = None) -> Job:
    """Queue a job that takes the frame in the middle of an encoded video as its thumbnail.

    The run is locked, so that retention does not remove the video meanwhile.

    Raises:
        NotFound: the video has been removed.
        Conflict: it cannot be shown, or an earlier try has failed and `again` is not set.
        TooMany: too many thumbnails wait to be rendered, of all users or of this one.
    """
    runs.get(session, video.run_id, for_update=True)
    row = get(session, video.id)
    if row.video is None:
        raise Conflict(f"video {video.id} has not been encoded")
    waiting = job_rows.count_waiting(session, VIDEO_THUMBNAIL)
    of_user = waiting.get(requested_by, 0)
    if sum(waiting.values()) >= MAX_WAITING_THUMBNAILS or of_user >= MAX_WAITING_THUMBNAILS_OF_USER:
        raise TooMany("too many thumbnails are queued for rendering: try again later", RETRY_S)
    row.thumbnail_sha256 = row.thumbnail_bytes = None
    job = job_rows.find(session, VIDEO_THUMBNAIL, video.id)
    if job is not None and job.state == "failed" and not again:
        raise Conflict(f"taking the thumbnail failed: {jobs.reason_of(job)}; retry with again=true")
    return jobs.request(
        session, VIDEO_THUMBNAIL, video.run_id, video.id, queue=WOKEN_QUEUE, requested_by=requested_by
    )


def record_thumbnail(session: Session, video_id: str, *, sha256: str, n_bytes: int) -> None:
    """Record the thumbnail of a video."""
    video = session.get_one(Video, video_id)
    video.thumbnail_sha256, video.thumbnail_bytes = sha256, n_bytes


def _forget_sent(session: Session, video: Video) -> None:
    if video.sent is not None:
        storage.release_files(session, video.run_id, "videos", [video.sent])
    video.sent, video.sent_bytes = None, 0
