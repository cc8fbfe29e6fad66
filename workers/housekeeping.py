"""Run folders on this host whose runs have been deleted."""

import shutil
import time
from pathlib import Path

import structlog

from backend.runs import repository as runs
from workers.context import Context

MIN_AGE_S = 3600.0
"""A folder that was touched lately is left alone."""

log = structlog.get_logger(__name__)


def forget_deleted_runs(context: Context) -> list[str]:
    """Remove the folders that workers made for runs that were deleted; gives their ids.

    What `callboard train` left there is not a worker's, and stays. So does what this database has never
    heard of: a worker started on another one has the same home.
    """
    ours = [folder for folder in context.settings.runs_dir.glob("*") if _is_ours(folder)]
    if not ours:
        return []
    with context.reading() as session:
        deleted = runs.deleted(session, [folder.name for folder in ours])
    gone = [folder for folder in ours if folder.name in deleted]
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
        log.info("run.forgotten", run_id=folder.name)
    return [folder.name for folder in gone]


def _is_ours(folder: Path) -> bool:
    made_by_worker = any(folder.glob("attempts/*/engine.json"))
    return made_by_worker and time.time() - folder.stat().st_mtime > MIN_AGE_S
