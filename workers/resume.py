"""Where a claimed run goes on from: its newest intact checkpoint, on this host or in the artifact store."""

import hashlib
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import structlog
from sqlalchemy.orm import Session

from backend.db import Checkpoint, Run
from backend.db.clock import database_now
from backend.runs import repository as runs
from backend.specs.events import Ended
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState
from workers import claims
from workers.claims import Claim
from workers.context import Context
from workers.engine_process import Birthmark
from workers.recorder import Recorder

log = structlog.get_logger(__name__)


def prepare(context: Context, claim: Claim) -> str | None:
    """Make everything ready for the engine: its spec, and the checkpoint it is to go on from.

    What an earlier attempt left on this host comes first: an engine that still lives is killed, and the rest
    of its log is recorded, for it may tell of a newer checkpoint.

    Returns:
        The checkpoint's file name in the run's folder; none to begin anew.

    Raises:
        Superseded: the attempt holds the run no more, or the earlier one had brought it to its end.
    """
    folder = context.run_dir(claim.run_id) / "attempts"
    for number in range(1, claim.attempt):
        if Birthmark(folder / str(number)).kill_survivor():
            log.warning("engine.survivor", run_id=claim.run_id, attempt=number)
    if (folder / str(claim.attempt - 1) / "events.log").exists():
        Recorder(context, claim.run_id, claim.attempt - 1, fence=claim.attempt).conclude(_end_if_over)
    checkpoint = _newest_intact(context, claim)
    with context.writing() as session:
        spec = claims.begin(session, claim.run_id, claim.attempt, checkpoint)
    write_spec(context.run_dir(claim.run_id), spec)
    return checkpoint.file if checkpoint else None


def _end_if_over(session: Session, run: Run, last_word: Ended | None) -> None:
    if last_word is not None and last_word.state != "stopped":
        claims.release(session, run, RunState(last_word.state), last_word.reason, last_word.traceback)


def _newest_intact(context: Context, claim: Claim) -> Checkpoint | None:
    with context.reading() as session:
        candidates = claims.checkpoints(session, claim.run_id)
    for checkpoint in candidates:
        if fetch(context, checkpoint) is not None:
            return checkpoint
        with context.writing() as session:
            claims.held(session, claim.run_id, claim.attempt)
            message = f"checkpoint {checkpoint.file} is missing or damaged: going on from an older one"
            line = {"time": database_now(session), "level": "warning", "message": message}
            runs.add_log_lines(session, claim.run_id, claim.attempt, [line])
            runs.bump_revision(session, claim.run_id)
    return None


def fetch(context: Context, checkpoint: Checkpoint) -> Path | None:
    """The checkpoint's file on this host, from the artifact store where need be; none unless intact."""
    folder = context.run_dir(checkpoint.run_id) / "checkpoints"
    local = folder / checkpoint.file
    if local.is_file() and _sha256(local) == checkpoint.sha256:
        return local
    try:
        local = context.store.get(checkpoint.run_id, "checkpoints", checkpoint.file, folder)
    except FileNotFoundError:
        return None
    return local if _sha256(local) == checkpoint.sha256 else None


def write_spec(run_dir: Path, spec: dict[str, Any]) -> None:
    """Put a stored spec where the engine reads it, whole.

    Raises:
        InvalidSpec: it was stored by a version with other settings.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    partial = run_dir / f"spec.json.{uuid4().hex}"
    partial.write_text(parse_run_spec(spec).model_dump_json(indent=2))
    os.replace(partial, run_dir / "spec.json")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
