"""Run folders on this host whose runs have been deleted."""

import shutil
import time
from pathlib import Path

import structlog
from sqlalchemy import select

from backend.db import Run
from workers.context import Context

MIN_AGE_S = 3600.0
"""A folder that was touched lately is left alone."""

log = structlog.get_logger(__name__)


def forget_deleted_runs(context: Context) -> list[str]:
    """Remove the folders that workers made for runs that are no more; gives their ids.

    What `callboard train` left there is not a worker's, and stays.
    """
    ours = [folder for folder in context.settings.runs_dir.glob("*") if _is_ours(folder)]
    if not ours:
        return []
    with context.reading() as session:
        known = set(session.scalars(select(Run.id).where(Run.id.in_([folder.name for folder in ours]))))
    gone = [folder for folder in ours if folder.name not in known]
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
        log.info("run.forgotten", run_id=folder.name)
    return [folder.name for folder in gone]


def _is_ours(folder: Path) -> bool:
    made_by_worker = any(folder.glob("attempts/*/engine.json"))
    return made_by_worker and time.time() - folder.stat().st_mtime > MIN_AGE_S
