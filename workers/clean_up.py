"""Clean-up: applies retention, deletes removed files, and purges deleted runs, a little at a time.

Every step can be interrupted and repeated: rows change first, files are deleted later, and what is left is
found again by the next clean-up, of this worker or another. A slow store delays only the clean-up thread. A
step that fails, such as for one bad file, is logged and tried again later; the others follow.

A run is deleted by a user, and purged once it can no longer be restored. A file is removed when its row says
so, and deleted when it is gone from the store.
"""

import shutil
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic

import structlog

from backend.coordination.context import TRANSIENT_ERRORS, Context
from backend.db import RemovedFile
from backend.fleet.storage import service as storage
from backend.replays.play import service as play
from backend.runs.runs import service as runs
from backend.upkeep.retention import service as retention
from workers import host_files

CHECK_INTERVAL_S = 60.0
PASS_INTERVAL_S = 3600.0
"""Time between two passes of retention over all runs, which the workers share."""
HOST_INTERVAL_S = 600.0
"""Time between two passes over the run directories of this host. Ended play sessions, of which there are few,
are deleted as often."""
URGENT_INTERVAL_S = 60.0
"""Minimum time between urgent clean-ups, while a disk fills."""
RUNS_PER_STEP = 50
MIN_AGE_S = 3600.0
"""A deleted run's folder is removed once it has been unchanged for this long."""
JOB_FOLDER_MIN_AGE_S = 7200.0
"""A job's folder that has been unchanged for this long, twice `workers.jobs.TIMEOUT_S`, is of a worker that
was killed."""

log = structlog.get_logger(__name__)


class CleanUpThread:
    """The thread of one worker. `start` it once, `begin_stop` and `join` it once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._urgent = False
        self._next_host_pass_at = 0.0
        self._thread = threading.Thread(target=self._run, name="clean-up", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def run_now(self) -> None:
        """Clean up now because a disk fills; ignored during such a clean-up and `URGENT_INTERVAL_S` after it.

        Returns immediately, and may be repeated.
        """
        if not self._urgent:
            self._urgent = True
            self._wake.set()

    def begin_stop(self) -> None:
        """Stop after the current step; returns immediately."""
        self._stopping.set()
        self._wake.set()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            urgent = self._urgent
            self._clean(urgent=urgent)
            if urgent:
                # While the disk is still nearly full, each heartbeat asks for it again.
                self._stopping.wait(URGENT_INTERVAL_S)
                self._urgent = False
            self._wake.wait(CHECK_INTERVAL_S)
            self._wake.clear()

    def _clean(self, *, urgent: bool) -> None:
        context, stopping = self._context, self._stopping.is_set
        host_pass_due = urgent or monotonic() >= self._next_host_pass_at
        grace_s = storage.SHORT_GRACE_S if urgent else storage.GRACE_S
        delete = partial(delete_removed_files, context, grace_s, stopping)
        if urgent:
            log.info("clean_up.disk_fills")
            self._step("delete", delete)
            self._step("start_pass", partial(_start_pass, context))
        if host_pass_due:
            self._next_host_pass_at = monotonic() + HOST_INTERVAL_S
            self._step("deleted_runs", partial(remove_deleted_runs, context))
            self._step("job_folders", partial(remove_abandoned_job_folders, context))
            self._step("copies", partial(host_files.remove_all_copies, context, stopping))
        self._step("retention", partial(apply_retention, context, stopping))
        self._step("purge", partial(purge_deleted_runs, context, stopping))
        if host_pass_due:
            self._step("play", partial(remove_ended_sessions, context, stopping))
        self._step("delete", delete)
        if host_pass_due:
            # Last, because it needs space.
            self._step("event_logs", partial(host_files.shorten_logs, context, stopping, now_due=urgent))

    def _step(self, name: str, action: Callable[[], object]) -> None:
        """Take one step, unless clean-up is to stop; an error is logged."""
        if self._stopping.is_set():
            return
        try:
            action()
        except TRANSIENT_ERRORS as error:
            log.warning("clean_up.waiting", step=name, error=str(error)[:500])
        except Exception:
            log.exception("clean_up.error", step=name)


def _start_pass(context: Context) -> None:
    with context.writing() as session:
        retention.start_pass(session)


def apply_retention(
    context: Context, stopping: Callable[[], bool] = lambda: False, *, interval_s: float = PASS_INTERVAL_S
) -> int:
    """Take part in the pass over all runs, if it is due; return the number of runs that lost something.

    Old entries of the audit trail, which belong to no pass, are deleted as well.
    """
    n_reduced = 0
    while not stopping():
        with context.writing() as session:
            run_ids = retention.take_runs(session, interval_s, RUNS_PER_STEP)
        with context.reading() as session:
            policies = retention.policies(session)
        for run_id in run_ids:
            if stopping():
                return n_reduced
            with context.reading() as session:
                planned = retention.plan(session, run_id, policies)
            if planned is None or planned.is_empty():
                continue
            n_reduced += 1
            more = True
            while more:  # one transaction each, so that others can write in between
                with context.writing() as session:
                    removal = retention.apply(session, run_id, policies)
                more = removal is not None and removal.old_log_lines and not stopping()
            log.info("retention.applied", run_id=run_id)
        if len(run_ids) < RUNS_PER_STEP:
            _remove_audit_entries(context, policies.installation.audit_days, stopping)
            return n_reduced
    return n_reduced


def _remove_audit_entries(context: Context, days: int | None, stopping: Callable[[], bool]) -> None:
    while days is not None and not stopping():
        with context.writing() as session:
            if not retention.remove_audit_entries(session, days):
                return


def delete_removed_files(
    context: Context, grace_s: float, stopping: Callable[[], bool] = lambda: False
) -> int:
    """Delete the removed files from the artifact store; return their number, all of a purged run as one.

    A file that cannot be deleted now is tried again the next time. One that is needed again, such as a video
    that was rendered anew, is kept.
    """
    n_deleted, after = 0, 0
    while not stopping():
        with context.reading() as session:
            due = storage.due_files(session, grace_s, after)
            needed = [row for row in due if storage.is_needed(session, row)]
        if not due:
            break
        after = due[-1].id
        deleted = [row for row in due if row not in needed and _delete(context, row)]
        if settled := needed + deleted:
            with context.writing() as session:
                storage.forget(session, settled)
        n_deleted += len(deleted)
    return n_deleted


def _delete(context: Context, row: RemovedFile) -> bool:
    """Delete a removed file, or all files of a purged run; return whether that was possible now."""
    try:
        if row.kind is None:
            context.store.delete_run(row.run_id)
        else:
            assert row.file is not None
            if row.kind == storage.UPLOADS:
                context.store.delete_upload(row.run_id, row.file)
                return True
            context.store.delete(row.run_id, storage.kind_of(row), row.file)
    except OSError as error:
        log.warning("clean_up.file_not_deleted", run_id=row.run_id, file=row.file, error=str(error))
        return False
    return True


def purge_deleted_runs(context: Context, stopping: Callable[[], bool] = lambda: False) -> list[str]:
    """Delete the runs that can no longer be restored, and record their files as removed; return their ids."""
    purged: list[str] = []
    while not stopping():
        with context.writing() as session:  # one transaction each, so that others can write in between
            run_id = runs.purge(session)
        if run_id is None:
            break
        log.info("run.purged", run_id=run_id)
        purged.append(run_id)
    return purged


def remove_ended_sessions(context: Context, stopping: Callable[[], bool] = lambda: False) -> int:
    """Delete the play sessions that ended long ago, and what deleted recordings have left; return their
    number."""
    n_deleted = 0
    while not stopping():
        with context.writing() as session:
            n = play.clean_up(session)
        if not n:
            break
        n_deleted += n
    return n_deleted


def remove_deleted_runs(context: Context) -> list[str]:
    """Remove the folders that workers created for runs since deleted; return their ids.

    Folders of `callboard train` stay. So do those of runs unknown to this database: a worker of another
    database may share the home folder.
    """
    candidates = [folder for folder in context.settings.runs_dir.glob("*") if _is_old_worker_folder(folder)]
    if not candidates:
        return []
    with context.reading() as session:
        deleted = runs.deleted_among(session, [folder.name for folder in candidates])
    removed = [folder for folder in candidates if folder.name in deleted]
    for folder in removed:
        shutil.rmtree(folder, ignore_errors=True)
        log.info("run.files_removed", run_id=folder.name)
    return [folder.name for folder in removed]


def _is_old_worker_folder(folder: Path) -> bool:
    return host_files.is_of_worker(folder) and time.time() - folder.stat().st_mtime > MIN_AGE_S


def remove_abandoned_job_folders(context: Context) -> None:
    """Remove the folders of jobs whose worker was killed. They may hold checkpoints."""
    for folder in context.settings.runs_dir.glob("*/jobs/*"):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)
            log.info("job.folder_removed", folder=str(folder))


def _is_abandoned(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > JOB_FOLDER_MIN_AGE_S
    except FileNotFoundError:  # its job has just ended
        return False
