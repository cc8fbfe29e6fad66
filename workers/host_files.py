"""The files in this host's run directories: recorded event logs, and copies that the store has too."""

import gzip
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.coordination.context import Context
from backend.db import Attempt
from backend.fleet.storage import service as storage
from backend.platform.artifacts import ArtifactKind
from backend.runs.runs import service as runs
from backend.specs.states import ENDED
from backend.upkeep.retention import service as retention
from workers.engine.training.event_log import read_frames

UNCHANGED_S = 60.0
"""A file that changed more recently is left for the next time."""
_ABANDONED_S = 3600.0
"""No file takes so long to write."""
RUNS_PER_STEP = 50

COMPRESSED = ".gz"

log = structlog.get_logger(__name__)


def is_of_worker(folder: Path) -> bool:
    """Whether a worker, and not `callboard train`, created this run directory, for attempts or for jobs."""
    return (folder / "jobs").is_dir() or any(folder.glob("attempts/*/engine.json"))


def shorten_logs(
    context: Context, stopping: Callable[[], bool] = lambda: False, *, now_due: bool = False
) -> None:
    """Compress or remove the event logs of this host's runs as their policies require.

    Args:
        context: the worker's context.
        stopping: whether to return after the current log.
        now_due: compress and remove event logs however new, because the disk fills.
    """
    folders = _folders(context)
    for at in range(0, len(folders), RUNS_PER_STEP):
        step = [folder.name for folder in folders[at : at + RUNS_PER_STEP]]
        with context.reading() as session:
            due = retention.due_event_logs(session, step, now_due=now_due)
        for log_due in due:
            if stopping():
                return
            attempt = log_due.attempt
            path = context.run_dir(attempt.run_id) / "attempts" / str(attempt.number) / "events.log"
            with _logging_errors(attempt.run_id):
                _shorten_log(context, attempt, path, remove=log_due.remove)


def remove_all_copies(context: Context, stopping: Callable[[], bool] = lambda: False) -> None:
    """Remove, of every run, the checkpoints and replays that this host need not keep."""
    for folder in _folders(context):
        if stopping():
            return
        with _logging_errors(folder.name):
            remove_copies(context, folder.name)


def _folders(context: Context) -> list[Path]:
    return sorted(folder for folder in context.settings.runs_dir.glob("*") if is_of_worker(folder))


@contextmanager
def _logging_errors(run_id: str) -> Iterator[None]:
    """Log an error of one run's files, so that it does not hold up other runs."""
    try:
        yield
    except SQLAlchemyError:
        raise  # the database is unavailable
    except OSError as error:
        log.warning("clean_up.run_skipped", run_id=run_id, error=str(error)[:500])
    except Exception:
        log.exception("clean_up.run_skipped", run_id=run_id)


def remove_copies(context: Context, run_id: str) -> int:
    """Remove the checkpoints and replays of a run that this host need not keep; return their number.

    Those that changed within `UNCHANGED_S` stay for now. Of a run that has not ended, so do the checkpoints
    that its engine may read. The run is locked meanwhile, so that no worker claims it and finds a file that
    is about to be removed.
    """
    _remove_partial_files(context, run_id)
    present = list(_copies(context, run_id))
    if not present:
        return 0
    with context.reading() as session:
        surplus = _surplus(session, run_id)
    removable = [(kind, path) for kind, path in present if (kind, path.name) in surplus]
    # One that the store has lost is worth keeping.
    removable = [
        (kind, path)
        for kind, path in removable
        if surplus[kind, path.name]
        or context.store.size_or_zero(run_id, kind, path.name) == path.stat().st_size
    ]
    if not removable:
        return 0
    with context.writing() as session:
        run = runs.find(session, run_id, for_update=True)
        if run is None or storage.has_running_job(session, run_id):
            return 0
        surplus = _surplus(session, run_id)
        surplus_paths = [path for kind, path in removable if (kind, path.name) in surplus]
        for path in surplus_paths:
            path.unlink(missing_ok=True)
    return len(surplus_paths)


def _remove_partial_files(context: Context, run_id: str) -> None:
    """Remove what an engine or a transfer that was killed has left half-written."""
    for kind in ("checkpoints", "replays"):
        folder = context.run_dir(run_id) / kind
        for path in [*folder.glob("*.partial.*"), *folder.glob(".*")]:
            if time.time() - path.stat().st_mtime > _ABANDONED_S:
                path.unlink(missing_ok=True)


def _copies(context: Context, run_id: str) -> Iterator[tuple[ArtifactKind, Path]]:
    kinds: dict[ArtifactKind, str] = {"checkpoints": "*.pt", "replays": "*.npz"}
    for kind, pattern in kinds.items():
        for path in (context.run_dir(run_id) / kind).glob(pattern):
            if time.time() - path.stat().st_mtime > UNCHANGED_S:
                yield kind, path


def _surplus(session: Session, run_id: str) -> dict[tuple[ArtifactKind, str], bool]:
    """The recorded files that a host need not keep -> whether they are removed from the store as well."""
    run = runs.find(session, run_id)
    if run is None:
        return {}
    files = storage.files_of(session, run_id)
    if run.state not in ENDED:
        for file in retention.needed_by_engine(session, run_id):
            files.pop(("checkpoints", file), None)
    return files


def _shorten_log(context: Context, attempt: Attempt, path: Path, *, remove: bool) -> None:
    """Compress or remove the event log of an attempt that has ended, if all of it is recorded.

    The file comes before the row: after a crash in between, the next clean-up finds the file in its new form.
    """
    compressed = path.with_name(path.name + COMPRESSED)
    if path.exists():
        changed_s = time.time() - path.stat().st_mtime
        if changed_s < UNCHANGED_S or next(read_frames(path, attempt.log_offset_bytes), None) is not None:
            return
    elif not compressed.exists() and not (remove and attempt.host == context.settings.host_name):
        return  # it is on another host
    if not remove and path.exists():
        _compress(path, compressed)
    path.unlink(missing_ok=True)
    if remove:
        compressed.unlink(missing_ok=True)
    left_bytes = 0 if remove else compressed.stat().st_size
    with context.writing() as session:
        retention.record_log_size(session, attempt.run_id, attempt.number, left_bytes)
    log.info("event_log.shortened", run_id=attempt.run_id, attempt=attempt.number, left_bytes=left_bytes)


def _compress(path: Path, compressed: Path) -> None:
    """Write a compressed copy, which appears only once it is complete and checked."""
    partial = compressed.with_name(compressed.name + ".partial")
    try:
        with path.open("rb") as source, partial.open("wb") as raw:
            with gzip.GzipFile(path.name, "wb", fileobj=raw, mtime=0) as target:
                shutil.copyfileobj(source, target, 2**20)
            raw.flush()
            os.fsync(raw.fileno())
        with path.open("rb") as source, gzip.open(partial, "rb") as copy:
            while block := source.read(2**20):  # a full disk or bad memory must not cost the only copy
                if block != copy.read(len(block)):
                    raise OSError(f"the compressed copy of {path} differs from it")
        os.replace(partial, compressed)
    finally:
        partial.unlink(missing_ok=True)


def decompress(compressed: Path) -> None:
    """Restore an event log next to its compressed copy, unless it is there."""
    path = compressed.with_name(compressed.name.removesuffix(COMPRESSED))
    if path.exists():
        return
    with gzip.open(compressed, "rb") as source, path.open("wb") as target:
        shutil.copyfileobj(source, target, 2**20)
