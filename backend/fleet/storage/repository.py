"""Removed files, and the rows that name files, in the database."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete as delete_from
from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Checkpoint, CleanUp, Episode, Job, Media, RemovedFile, Run, StoredAgent, Video
from backend.db.job import OF_EPISODES, THUMBNAIL, VIDEO_THUMBNAIL
from backend.db.run import WITH_DELETED
from backend.platform.artifacts import ArtifactKind, thumbnail_file

_BATCH = 100


def delete_later_than(session: Session, run_id: str, kind: ArtifactKind, file: str, time: datetime) -> bool:
    """Delete the row of a file that counts as removed only after a time; False if there is none."""
    later = delete_from(RemovedFile).where(
        RemovedFile.run_id == run_id,
        RemovedFile.kind == kind,
        RemovedFile.file == file,
        RemovedFile.removed_at > time,
    )
    return session.scalar(later.returning(RemovedFile.id)) is not None


def lock_clean_up(session: Session) -> CleanUp:
    """The shared state of clean-up, locked."""
    state = session.get(CleanUp, 1, with_for_update=True, populate_existing=True)
    if state is None:
        state = CleanUp(id=1)
        session.add(state)
        session.flush()
    return state


def held_until(session: Session) -> datetime | None:
    """Time until which a backup holds all files; None if none has."""
    return session.scalar(select(CleanUp.held_until))


def removed_before(session: Session, before: datetime, after: int) -> Sequence[RemovedFile]:
    """The next files that were removed before a time, and all deleted runs, with ids after `after`."""
    due = select(RemovedFile).where((RemovedFile.removed_at < before) | RemovedFile.kind.is_(None))
    return session.scalars(due.where(RemovedFile.id > after).order_by(RemovedFile.id).limit(_BATCH)).all()


def has_run(session: Session, run_id: str) -> bool:
    """Whether a run exists, or can be restored."""
    rows = select(Run.id).where(Run.id == run_id)
    return session.scalar(rows, execution_options=WITH_DELETED) is not None


def has_checkpoint(session: Session, run_id: str, file: str) -> bool:
    """Whether a run has a checkpoint in this file that is not removed."""
    rows = select(Checkpoint.id).where(
        Checkpoint.run_id == run_id, Checkpoint.file == file, Checkpoint.removed.is_(False)
    )
    return session.scalar(rows.limit(1)) is not None


def has_replay(session: Session, run_id: str, file: str) -> bool:
    """Whether a run has an episode with this replay that is not removed."""
    rows = select(Episode.id).where(
        Episode.run_id == run_id, Episode.replay == file, Episode.removed.is_(False)
    )
    return session.scalar(rows.limit(1)) is not None


def has_video(session: Session, run_id: str, file: str) -> bool:
    """Whether a run has an uploaded video or an exported agent in this file, or an episode or uploaded video
    whose video or thumbnail it is or is going to be."""
    target_id = file[:26]
    is_thumbnail = file == thumbnail_file(target_id)
    names_it = (Video.video == file) | (Video.sent == file)
    is_its_thumbnail = (Video.id == target_id) & Video.thumbnail_bytes.is_not(None)
    sent = select(Video.id).where(Video.run_id == run_id, is_its_thumbnail if is_thumbnail else names_it)
    of_thumbnails = Job.kind.in_((THUMBNAIL, VIDEO_THUMBNAIL))
    rendering = select(Job.id).where(
        Job.target_id == target_id,
        of_thumbnails if is_thumbnail else ~of_thumbnails,
        Job.state.in_(["queued", "running"]),
    )
    has_file = (Episode.thumbnail_bytes if is_thumbnail else Episode.video).is_not(None)
    rendered = select(Episode.id).where(Episode.id == target_id, has_file, Episode.removed.is_(False))
    exported = select(StoredAgent.id).where(StoredAgent.id == target_id)
    return any(session.scalar(rows.limit(1)) is not None for rows in (sent, rendering, rendered, exported))


def has_media(session: Session, run_id: str, file: str) -> bool:
    """Whether a run has an image or a table in this file."""
    rows = select(Media.id).where(Media.run_id == run_id, Media.file == file)
    return session.scalar(rows.limit(1)) is not None


def delete(session: Session, removed: RemovedFile) -> None:
    """Delete the row of a removed file."""
    session.execute(delete_from(RemovedFile).where(RemovedFile.id == removed.id))


def delete_removed_episodes(session: Session, run_id: str, replay: str) -> None:
    """Delete the removed episodes of a run with this replay, and the jobs of their videos and thumbnails."""
    removed_ids = select(Episode.id).where(
        Episode.run_id == run_id, Episode.replay == replay, Episode.removed
    )
    session.execute(delete_from(Job).where(Job.kind.in_(OF_EPISODES), Job.target_id.in_(removed_ids)))
    session.execute(delete_from(Episode).where(Episode.id.in_(removed_ids)))


def files_of(session: Session, run_id: str) -> dict[tuple[ArtifactKind, str], bool]:
    """The checkpoints and replays that a run's rows name -> whether they are removed."""
    checkpoints = select(Checkpoint.file, Checkpoint.removed).where(Checkpoint.run_id == run_id)
    replays = select(Episode.replay, Episode.removed).where(Episode.run_id == run_id)
    files: dict[tuple[ArtifactKind, str], bool] = {}
    for file, removed in session.execute(checkpoints):
        files["checkpoints", file] = removed
    for file, removed in session.execute(replays):
        files["replays", file] = removed
    return files


def has_running_job(session: Session, run_id: str) -> bool:
    """Whether a job of a run is being executed."""
    running = select(Job.id).where(Job.run_id == run_id, Job.state == "running")
    return session.scalar(running.limit(1)) is not None
