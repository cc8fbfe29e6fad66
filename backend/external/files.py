"""Complete files of external runs: their checkpoints, videos, images and tables."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from fastapi import Depends
from sqlalchemy.orm import Session

from backend.analysis.media import service as media
from backend.db import Run
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.external import repository, service
from backend.external.contents import Shape, shape_of
from backend.external.schemas import CheckpointUpload, CompletedUpload, MediaUpload, Stored, VideoUpload
from backend.external.uploads import Uploads
from backend.fleet.storage import service as storage
from backend.http.access import ExternalWriter
from backend.http.dependencies import AppState, AppStateDep
from backend.http.pages import RunId
from backend.http.streaming import HashTurn
from backend.platform.artifacts import ArtifactKind
from backend.platform.errors import Invalid, Unavailable
from backend.platform.principals import Principal
from backend.replays.videos import repository as video_rows
from backend.replays.videos import service as videos
from backend.runs.checkpoints import repository as checkpoint_rows
from backend.runs.checkpoints import service as checkpoints
from backend.runs.runs import service as runs

MAX_FILES = 1_000
"""Maximum number of a run's checkpoints whose files are stored, and of its videos."""
MAX_FILES_BYTES = 20 * 2**30
"""Maximum size of all checkpoints of a run, and of all its videos."""
MAX_VIDEO_BYTES = 256 * 2**20
"""Maximum size of an uploaded video."""

_SIZE_OF_ALL = {"checkpoints": checkpoint_rows.stored_size, "videos": video_rows.stored_size}

B = TypeVar("B", bound=CompletedUpload)


@dataclass(frozen=True)
class StoredFile(Generic[B]):
    """A file that is in the artifact store, unless an earlier request has stored that of the same batch."""

    body: B
    kind: ArtifactKind
    file: str
    """Its name in the store, which no other request uses."""
    shape: Shape | None = None
    """Of an image or a table; None if it is stored already, or the run has no room for it."""


def uploads_of(state: AppState) -> Uploads:
    """The unfinished uploads of the installation."""
    settings = state.settings
    return Uploads(state.artifacts, settings.home_dir / "uploads", settings.min_free_disk_bytes)


def append(state: AppState, run_id: str, principal: Principal, upload: str, offset: int, part: bytes) -> int:
    """Append a part to an upload; return how many of its bytes are stored.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or the upload has another number of bytes.
        Invalid: the upload is too large.
        Unavailable: the disk is nearly full.
    """
    with reading(state.db_engine) as session:
        service.external_run(session, run_id, principal)
    if offset == 0:
        with writing(state.db_engine) as session:
            storage.expect_upload(session, run_id, upload)
    return uploads_of(state).append(run_id, upload, offset, part)


def _put(
    state: AppState, run_id: str, principal: Principal, body: B, kind: ArtifactKind, file: str
) -> StoredFile[B]:
    """Put a complete upload into the artifact store, before the transaction that adds its row.

    If that transaction fails, or this process dies before it, clean-up deletes the file.
    """
    stored = StoredFile(body, kind, file)
    with reading(state.db_engine) as session:
        service.external_run(session, run_id, principal)
        source = repository.source(session, run_id, body.source)
        if body.sequence != (source.sequence if source else 0) + 1:
            return stored  # by an earlier request, or refused as too early
        _check_limits(session, state, run_id, stored)
        if kind == "videos":
            videos.require_turn(session, principal.credential.payer_id)
        if kind == "media" and not media.has_room(session, run_id, body.size_bytes):
            return stored
    try:
        with uploads_of(state).complete(run_id, body.upload, body.size_bytes, body.sha256) as path:
            if isinstance(body, MediaUpload):
                stored = replace(stored, shape=_shape(state, run_id, body, path))
            with writing(state.db_engine) as session:
                storage.expect_file(session, run_id, kind, file)
            state.artifacts.put(path, run_id, kind, file)
    except FileNotFoundError:
        detail = "another request stores the same upload: try again"
        raise Unavailable(detail, retry_after_s=1) from None
    return stored


def _checkpoint(
    run_id: RunId, principal: ExternalWriter, state: AppStateDep, turn: HashTurn, body: CheckpointUpload
) -> StoredFile[CheckpointUpload]:
    file = f"s{body.agent_steps:012d}-{new_id()}{body.suffix}"
    return _put(state, run_id, principal, body, "checkpoints", file)


def _video(
    run_id: RunId, principal: ExternalWriter, state: AppStateDep, turn: HashTurn, body: VideoUpload
) -> StoredFile[VideoUpload]:
    return _put(state, run_id, principal, body, "videos", f"{new_id()}.sent")


def _media(
    run_id: RunId, principal: ExternalWriter, state: AppStateDep, turn: HashTurn, body: MediaUpload
) -> StoredFile[MediaUpload]:
    return _put(state, run_id, principal, body, "media", f"{new_id()}.{body.kind}")


def _shape(state: AppState, run_id: str, body: MediaUpload, path: Path) -> Shape:
    """What the file of an upload is.

    Raises:
        Invalid: it is nothing that is kept; the upload is deleted.
    """
    try:
        return shape_of(body.kind, path.read_bytes())
    except Invalid:
        uploads_of(state).remove(run_id, body.upload)
        raise


CompleteCheckpoint = Annotated[StoredFile[CheckpointUpload], Depends(_checkpoint)]
"""The checkpoint of the request's body."""
CompleteVideo = Annotated[StoredFile[VideoUpload], Depends(_video)]
"""The video of the request's body."""
CompleteMedia = Annotated[StoredFile[MediaUpload], Depends(_media)]
"""The image or table of the request's body."""


def add_checkpoint(
    session: Session, state: AppState, run_id: str, principal: Principal, stored: StoredFile[CheckpointUpload]
) -> Stored:
    """Add the row of a checkpoint, unless it is stored already.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
        Invalid: the run has too many checkpoints.
        Unavailable: the file took too long to store.
    """
    body = stored.body

    def add_row(run: Run) -> None:
        checkpoints.add_external(
            session,
            run,
            file=stored.file,
            sha256=body.sha256,
            size_bytes=body.size_bytes,
            agent_steps=body.agent_steps,
            frames=body.agent_steps if body.frames is None else body.frames,
            wall_time_s=body.wall_time_s,
            score=body.score,
        )

    return _add(session, state, run_id, principal, stored, add_row)


def add_video(
    session: Session, state: AppState, run_id: str, principal: Principal, stored: StoredFile[VideoUpload]
) -> Stored:
    """Add the row of a video, unless it is stored already, and have a worker encode it.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
        Invalid: the video is too large, or the run has too many.
        Unavailable: the file took too long to store.
    """
    body = stored.body

    def add_row(run: Run) -> None:
        videos.add(
            session,
            run,
            upload=body.upload,
            sent=stored.file,
            sent_sha256=body.sha256,
            sent_bytes=body.size_bytes,
            agent_steps=body.agent_steps,
            wall_time_s=body.wall_time_s,
            form=body.form,
            fps=body.fps,
            sent_by=principal.credential.payer_id,
        )

    return _add(session, state, run_id, principal, stored, add_row)


def add_media(
    session: Session, state: AppState, run_id: str, principal: Principal, stored: StoredFile[MediaUpload]
) -> Stored:
    """Add the row of an image or a table, unless it is stored already or the run has no room for it.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
        Unavailable: the file took too long to store.
    """
    body, shape = stored.body, stored.shape

    def add(run: Run) -> int:
        runs.touch(session, run, [media.PART])
        if shape is None:
            media.count_not_kept(session, run, 1)
            return 1
        content = media.Content(
            kind=body.kind,
            file=stored.file,
            sha256=body.sha256,
            media_type=shape.media_type,
            size_bytes=body.size_bytes,
            width=shape.width,
            height=shape.height,
            caption=body.caption,
        )
        n_dropped = media.add_file(
            session,
            run,
            content,
            metric=body.metric,
            agent_steps=body.agent_steps,
            wall_time_s=body.wall_time_s,
        )
        if not n_dropped and not storage.keep_file(session, run_id, stored.kind, stored.file):
            raise Unavailable(f"the upload {body.upload} took too long to store: try again", retry_after_s=1)
        return n_dropped

    answer = service.add_media(session, run_id, principal, body, add, 1, body.metric)
    uploads_of(state).remove(run_id, body.upload)
    return answer


def _add(
    session: Session,
    state: AppState,
    run_id: str,
    principal: Principal,
    stored: StoredFile[B],
    add_row: Callable[[Run], None],
) -> Stored:
    """Add the row of a stored file, unless that of its batch is there already."""
    upload = stored.body.upload

    def add(run: Run) -> None:
        _check_limits(session, state, run_id, stored)
        if not storage.keep_file(session, run_id, stored.kind, stored.file):
            raise Unavailable(f"the upload {upload} took too long to store: try again", retry_after_s=1)
        add_row(run)
        runs.touch(session, run, [stored.kind])

    answer = service.add_file(session, run_id, principal, stored.body, add)
    uploads_of(state).remove(run_id, upload)
    return answer


def _check_limits(session: Session, state: AppState, run_id: str, stored: StoredFile[B]) -> None:
    """Refuse a file that the run cannot have, and delete its upload, which would only count as unfinished.

    Raises:
        Invalid: the file is too large, or the run has too many files of its kind.
    """
    if stored.kind == "media":
        return  # what has no room is counted
    n_files, n_bytes = _SIZE_OF_ALL[stored.kind](session, run_id)
    if stored.kind == "videos" and stored.body.size_bytes > MAX_VIDEO_BYTES:
        field, message = "size_bytes", f"must be at most {MAX_VIDEO_BYTES:,} for a video"
    elif n_files >= MAX_FILES:
        field, message = "upload", f"is one too many: the run has {n_files:,} {stored.kind}, the maximum"
    elif n_bytes + stored.body.size_bytes > MAX_FILES_BYTES:
        field = "upload"
        message = f"the run's {stored.kind} have {n_bytes:,} bytes; the maximum is {MAX_FILES_BYTES:,}"
    else:
        return
    uploads_of(state).remove(run_id, stored.body.upload)
    raise Invalid.field(field, message)
