"""Files that no row needs any longer, the hold of a backup, and sizes, in the database.

A file is removed in two steps, so that a crash between them leaves no row without its file: the transaction
that no longer needs it adds a row of `removed_files`; later, clean-up deletes the file and then that row. In
between, a reader that has opened the file can finish.

A file that a request stores before its row is expected: it counts as removed from a later time on, until the
transaction that adds its row keeps it. Without that row clean-up deletes it.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import cast

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from backend.artifacts import ArtifactKind
from backend.db import Checkpoint, CleanUp, Episode, Job, RemovedFile, Run, Video
from backend.db.clock import database_now
from backend.db.run import WITH_DELETED

GRACE_S = 900.0
"""How long the file of a removed row stays for requests and jobs that still read it."""
SHORT_GRACE_S = 60.0
"""The same while a disk is nearly full."""

EXPECTED_S = 3600.0
"""How long an expected file may take until its row is added. `SHORT_GRACE_S` later clean-up may delete it."""

_BATCH = 100


def remove_files(session: Session, run_id: str, kind: ArtifactKind, files: Iterable[str]) -> None:
    """Record that no row needs these files of a run any longer."""
    now = database_now(session)
    session.add_all(RemovedFile(run_id=run_id, kind=kind, file=file, removed_at=now) for file in files)


def expect_file(session: Session, run_id: str, kind: ArtifactKind, file: str) -> None:
    """Record that a file of a run, under a name never used before, is going to be stored before its row."""
    removed_at = database_now(session) + timedelta(seconds=EXPECTED_S)
    session.add(RemovedFile(run_id=run_id, kind=kind, file=file, removed_at=removed_at))


def keep_file(session: Session, run_id: str, kind: ArtifactKind, file: str) -> bool:
    """Record that this transaction adds the row of an expected file; False if it is too late for that."""
    expected = delete(RemovedFile).where(
        RemovedFile.run_id == run_id,
        RemovedFile.kind == kind,
        RemovedFile.file == file,
        RemovedFile.removed_at > database_now(session),
    )
    return session.scalar(expected.returning(RemovedFile.id)) is not None


def remove_all_files(session: Session, run_id: str) -> None:
    """Record that a run is deleted, and that its files are no longer needed."""
    session.add(RemovedFile(run_id=run_id, removed_at=database_now(session)))


def lock_clean_up(session: Session) -> CleanUp:
    """The shared state of clean-up, locked."""
    state = session.get(CleanUp, 1, with_for_update=True, populate_existing=True)
    if state is None:
        state = CleanUp(id=1)
        session.add(state)
        session.flush()
    return state


def hold(session: Session, seconds: float) -> None:
    """Delete no file for this long, or as long as an existing hold if that lasts longer."""
    state = lock_clean_up(session)
    until = database_now(session) + timedelta(seconds=seconds)
    state.held_until = max(until, state.held_until or until)


def is_held(session: Session) -> bool:
    """Whether no file may be deleted."""
    until = session.scalar(select(CleanUp.held_until))
    return until is not None and until > database_now(session)


def due_files(session: Session, grace_s: float, after: int = 0) -> Sequence[RemovedFile]:
    """The next files whose grace is over, of a deleted run all together; none during a hold.

    `after` is the id of the last one before them.
    """
    if is_held(session):
        return []
    before = database_now(session) - timedelta(seconds=grace_s)
    due = select(RemovedFile).where((RemovedFile.removed_at < before) | RemovedFile.kind.is_(None))
    return session.scalars(due.where(RemovedFile.id > after).order_by(RemovedFile.id).limit(_BATCH)).all()


def is_needed(session: Session, removed: RemovedFile) -> bool:
    """Whether a row needs a removed file again, such as a video that was rendered once more."""
    run_id, file = removed.run_id, removed.file
    if file is None:
        found = select(Run.id).where(Run.id == run_id)
        return session.scalar(found, execution_options=WITH_DELETED) is not None
    if removed.kind == "checkpoints":
        rows = select(Checkpoint.id).where(
            Checkpoint.run_id == run_id, Checkpoint.file == file, Checkpoint.removed.is_(False)
        )
    elif removed.kind == "replays":
        rows = select(Episode.id).where(
            Episode.run_id == run_id, Episode.replay == file, Episode.removed.is_(False)
        )
    else:
        sent = select(Video.id).where(Video.run_id == run_id, (Video.video == file) | (Video.sent == file))
        if session.scalar(sent.limit(1)) is not None:
            return True
        episode_id = file[:26]
        rendering = select(Job.id).where(Job.target_id == episode_id, Job.state.in_(["queued", "running"]))
        if session.scalar(rendering.limit(1)) is not None:
            return True
        rows = select(Episode.id).where(
            Episode.id == episode_id, Episode.video.is_not(None), Episode.removed.is_(False)
        )
    return session.scalar(rows.limit(1)) is not None


def forget(session: Session, removed: Collection[RemovedFile]) -> None:
    """Forget files that are deleted, or needed again; the rows of episodes without a replay are deleted."""
    for row in removed:
        session.execute(delete(RemovedFile).where(RemovedFile.id == row.id))
        if row.kind == "replays":
            removed_ids = select(Episode.id).where(
                Episode.run_id == row.run_id, Episode.replay == row.file, Episode.removed
            )
            session.execute(delete(Job).where(Job.kind == "video", Job.target_id.in_(removed_ids)))
            session.execute(delete(Episode).where(Episode.id.in_(removed_ids)))


def files_of(session: Session, run_id: str) -> dict[tuple[ArtifactKind, str], bool]:
    """The checkpoints and replays that a run's rows name -> whether they are removed."""
    checkpoints = select(Checkpoint.file, Checkpoint.removed).where(Checkpoint.run_id == run_id)
    replays = select(Episode.replay, Episode.removed).where(Episode.run_id == run_id)
    found: dict[tuple[ArtifactKind, str], bool] = {}
    for file, removed in session.execute(checkpoints):
        found["checkpoints", file] = removed
    for file, removed in session.execute(replays):
        found["replays", file] = removed
    return found


def has_running_job(session: Session, run_id: str) -> bool:
    """Whether a worker renders a video or evaluates a checkpoint of a run."""
    running = select(Job.id).where(Job.run_id == run_id, Job.state == "running")
    return session.scalar(running.limit(1)) is not None


def kind_of(removed: RemovedFile) -> ArtifactKind:
    """The kind of a single removed file."""
    return cast("ArtifactKind", removed.kind)
