"""The jobs that encode a video that a script has sent, and take its thumbnail. Any host can do them."""

import json

from sqlalchemy.orm import Session

from backend.db import Video
from backend.db.job import ENCODE, VIDEO_THUMBNAIL
from backend.fleet.jobs.kinds import (
    Command,
    EngineFailed,
    FileLost,
    JobFailed,
    JobKind,
    Options,
    Output,
    Result,
    Stored,
    TargetDeleted,
)
from backend.platform.artifacts import ArtifactStore, encoded_file, thumbnail_file
from backend.replays.videos import service
from backend.runs.runs import service as runs


def _load(session: Session, store: ArtifactStore, video_id: str) -> Video:
    video = service.find(session, video_id)
    if video is None or runs.find(session, video.run_id) is None:
        raise TargetDeleted
    return video


def _load_upload(session: Session, store: ArtifactStore, video_id: str) -> Video | None:
    video = _load(session, store, video_id)
    return None if video.sent is None else video


def _encode_command(video: Video) -> Command:
    assert video.sent is not None
    options: Options = {
        "--upload": Stored(video.run_id, "videos", video.sent, video.sent_sha256, "the uploaded video"),
        "--out": Output(encoded_file(video.id)),
        "--form": video.form,
    }
    return Command("encode", options if video.fps is None else options | {"--fps": str(video.fps)})


def _record_encoded(session: Session, video_id: str, result: Result) -> None:
    answer = json.loads(result.answer)
    if error := answer.get("error"):
        service.record_unusable(session, video_id, error)
        return
    file = result.files["--out"]
    service.record_encoded(
        session,
        video_id,
        sha256=file.sha256,
        n_bytes=file.n_bytes,
        n_frames=answer["n_frames"],
        duration_s=answer["duration_s"],
    )


def _record_unusable(session: Session, video_id: str, failure: JobFailed) -> None:
    """No user could request it again."""
    reason = str(failure)
    if isinstance(failure, EngineFailed):
        lines = reason.strip().splitlines()
        reason = f"it could not be encoded: {lines[-1] if lines else 'the engine died'}"
    service.record_unusable(session, video_id, reason)


def _thumbnail_command(video: Video) -> Command:
    title = f"the video {video.video or video.id}"
    if video.video is None:
        raise FileLost(title)
    options: Options = {
        "--video": Stored(video.run_id, "videos", video.video, video.video_sha256, title),
        "--out": Output(thumbnail_file(video.id)),
    }
    return Command("thumbnail", options)


def _record_thumbnail(session: Session, video_id: str, result: Result) -> None:
    file = result.files["--out"]
    service.record_thumbnail(session, video_id, sha256=file.sha256, n_bytes=file.n_bytes)


KINDS = (
    JobKind(
        ENCODE,
        load=_load_upload,
        command=_encode_command,
        record=_record_encoded,
        record_failure=_record_unusable,
        rank=2,
        environment_of=None,
    ),
    JobKind(
        VIDEO_THUMBNAIL,
        load=_load,
        command=_thumbnail_command,
        record=_record_thumbnail,
        environment_of=None,
        changes_run=False,
    ),
)
