"""When files may be deleted that no row needs any longer.

A file is removed in two steps, so that a crash between them leaves no row without its file: the transaction
that no longer needs it adds a row of `removed_files`; later, clean-up deletes the file and then that row. In
between, a reader that has opened the file can finish.

A file that a request stores before its row is expected: it counts as removed from a later time on, until the
transaction that adds its row keeps it. Without that row clean-up deletes it.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import cast

from sqlalchemy.orm import Session

from backend.db import RemovedFile
from backend.db.clock import database_now
from backend.fleet.storage import repository
from backend.platform.artifacts import ArtifactKind

GRACE_S = 900.0
"""How long the file of a removed row stays for requests and jobs that still read it."""
SHORT_GRACE_S = 60.0
"""The same while a disk is nearly full."""

EXPECTED_S = 3600.0
"""How long an expected file may take until its row is added. `SHORT_GRACE_S` later clean-up may delete it."""

UPLOADS = "uploads"
"""Kind of the parts of an upload, whose id is the file's name."""
UNFINISHED_S = 24 * 3600.0
"""How long a script may take to send the parts of a file."""


def release_files(session: Session, run_id: str, kind: ArtifactKind, files: Iterable[str]) -> None:
    """Record that no row needs these files of a run any longer."""
    now = database_now(session)
    session.add_all(RemovedFile(run_id=run_id, kind=kind, file=file, removed_at=now) for file in files)


def release_all_files(session: Session, run_id: str) -> None:
    """Record that a run is deleted, and that its files are no longer needed."""
    session.add(RemovedFile(run_id=run_id, removed_at=database_now(session)))


def expect_file(session: Session, run_id: str, kind: ArtifactKind, file: str) -> None:
    """Record that a file of a run, under a name never used before, is going to be stored before its row."""
    removed_at = database_now(session) + timedelta(seconds=EXPECTED_S)
    session.add(RemovedFile(run_id=run_id, kind=kind, file=file, removed_at=removed_at))


def expect_upload(session: Session, run_id: str, upload: str) -> None:
    """Record that a script begins to send a file of a run in parts, which clean-up deletes after a day."""
    removed_at = database_now(session) + timedelta(seconds=UNFINISHED_S)
    session.add(RemovedFile(run_id=run_id, kind=UPLOADS, file=upload, removed_at=removed_at))


def keep_file(session: Session, run_id: str, kind: ArtifactKind, file: str) -> bool:
    """Record that this transaction adds the row of an expected file; False if it is too late for that."""
    return repository.delete_later_than(session, run_id, kind, file, database_now(session))


def hold(session: Session, seconds: float) -> None:
    """Delete no file for this long, or as long as an existing hold if that lasts longer."""
    state = repository.lock_clean_up(session)
    until = database_now(session) + timedelta(seconds=seconds)
    state.held_until = max(until, state.held_until or until)


def is_held(session: Session) -> bool:
    """Whether no file may be deleted."""
    until = repository.held_until(session)
    return until is not None and until > database_now(session)


def due_files(session: Session, grace_s: float, after: int = 0) -> Sequence[RemovedFile]:
    """The next files whose grace is over, of a deleted run all together; none during a hold.

    Args:
        session: any session.
        grace_s: seconds between the removal of a file and its deletion.
        after: id of the last row before them.
    """
    if is_held(session):
        return []
    return repository.removed_before(session, database_now(session) - timedelta(seconds=grace_s), after)


def is_needed(session: Session, removed: RemovedFile) -> bool:
    """Whether a row needs a removed file again, such as a video that was rendered once more."""
    if removed.file is None:
        return repository.has_run(session, removed.run_id)
    if removed.kind == UPLOADS:
        return False  # complete, or too late
    match kind_of(removed):
        case "checkpoints":
            return repository.has_checkpoint(session, removed.run_id, removed.file)
        case "replays":
            return repository.has_replay(session, removed.run_id, removed.file)
        case "videos":
            return repository.has_video(session, removed.run_id, removed.file)
        case "media":
            return repository.has_media(session, removed.run_id, removed.file)


def forget(session: Session, removed: Collection[RemovedFile]) -> None:
    """Forget files that are deleted, or needed again; the rows of episodes without a replay are deleted."""
    for row in removed:
        repository.delete(session, row)
        if row.kind == "replays" and row.file is not None:
            repository.delete_removed_episodes(session, row.run_id, row.file)


def files_of(session: Session, run_id: str) -> dict[tuple[ArtifactKind, str], bool]:
    """The checkpoints and replays that a run's rows name -> whether they are removed."""
    return repository.files_of(session, run_id)


def has_running_job(session: Session, run_id: str) -> bool:
    """Whether a worker executes a job of a run."""
    return repository.has_running_job(session, run_id)


def kind_of(removed: RemovedFile) -> ArtifactKind:
    """The kind of a single removed file."""
    return cast("ArtifactKind", removed.kind)
