"""Checkpoints on this host whose entries in the event log were damaged.

A checkpoint's row comes from its entry in the log. Where the disk has damaged that entry, the file is still
there and is used. A file whose entry is absent from an undamaged log is not: the engine died before it wrote
the entry, and perhaps before it wrote points of earlier steps.
"""

import zipfile
from pathlib import Path

import structlog

from backend.coordination import claims
from backend.coordination.claims import Claim
from backend.coordination.context import Context
from backend.runs.checkpoints import service as checkpoints
from backend.runs.runs import service as runs
from backend.specs.events import CheckpointSavedEvent, ReportEvent
from workers.engine.files import file_sha256
from workers.engine.training.event_log import LogGap, is_damaged, read_frames, tail_is_damaged

log = structlog.get_logger(__name__)


def record(context: Context, claim: Claim, attempt: int) -> None:
    """Record the checkpoints of an earlier attempt on this host whose entries were damaged.

    Raises:
        Superseded: the attempt no longer holds the run.
    """
    run_dir = context.run_dir(claim.run_id)
    for report in _reports_before_damage(run_dir / "attempts" / str(attempt) / "events.log"):
        path = run_dir / "checkpoints" / f"a{attempt}-s{report.agent_steps:012d}.pt"
        if _is_intact(path):
            _record(context, claim, attempt, path, report)


def _reports_before_damage(path: Path) -> list[ReportEvent]:
    """The last report before each damaged part of a log, unless it was followed by an intact checkpoint.

    An engine reports its counters just before it saves a checkpoint.
    """
    if not is_damaged(path):
        return []
    reports = []
    last: ReportEvent | None = None
    end = 0
    for frame, offset in read_frames(path):
        end = offset
        for event in frame:
            if isinstance(event, LogGap) and last is not None:
                reports.append(last)
            if isinstance(event, ReportEvent):
                last = event
            elif isinstance(event, LogGap | CheckpointSavedEvent):
                last = None
    if last is not None and tail_is_damaged(path, end):
        reports.append(last)
    return reports


def _is_intact(path: Path) -> bool:
    """Whether the checkpoint is there and its members match their checksums; the file's is unknown."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except Exception:  # zipfile raises many types for a damaged directory
        return False


def _record(context: Context, claim: Claim, attempt: int, path: Path, report: ReportEvent) -> None:
    context.store.put(path, claim.run_id, "checkpoints")
    saved = CheckpointSavedEvent(
        agent_steps=report.agent_steps,
        frames=report.frames,
        updates=report.updates,
        episodes=report.episodes,
        wall_time_s=report.wall_time_s,
        file=path.name,
        sha256=file_sha256(path),
        size_bytes=path.stat().st_size,
    )
    with context.writing() as session:
        run = claims.lock(session, claim.run_id, claim.attempt)
        if checkpoints.of_file(session, claim.run_id, path.name) is not None:
            return
        checkpoints.record(session, run, attempt, saved, report=report)
        message = f"checkpoint {path.name} was found on disk: its entry in the event log is damaged"
        runs.log(session, claim.run_id, claim.attempt, "warning", message)
        runs.touch(session, run)
    log.warning("checkpoint.found", run_id=claim.run_id, file=path.name)
