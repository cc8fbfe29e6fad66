"""Prepares a claimed run to resume from its newest intact checkpoint, local or in the artifact store."""

import errno
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import structlog
from sqlalchemy.orm import Session

from backend.coordination import claims
from backend.coordination.claims import Claim
from backend.coordination.context import Context
from backend.db import Checkpoint, Run
from backend.platform.artifacts import ArtifactKind
from backend.runs.checkpoints import service as checkpoints
from backend.runs.runs import service as runs
from backend.runs.starts import service as starts
from backend.specs.events import EndedEvent
from backend.specs.protocols import starts_protocol
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.start_sets import STARTS_FILE
from backend.specs.states import RunState
from backend.upkeep.retention import service as retention
from workers import recovered_checkpoints
from workers.engine.files import file_sha256, replacing
from workers.engine_process import ProcessIdentity
from workers.recorder import Recorder

log = structlog.get_logger(__name__)


class CannotStart(Exception):
    """The run cannot be started; the message is shown to the user."""


def prepare(context: Context, claim: Claim) -> str | None:
    """Write the engine's spec and fetch the checkpoint that it resumes from.

    First, if an earlier attempt ran on this host, its engine is killed if it still runs, and the rest of its
    log is recorded, which may contain a newer checkpoint; attempts since then that started no engine have
    changed nothing. Checkpoints whose entries in that log are damaged are looked for on the disk.

    After a restore of the database, a host may have a later attempt's folder, with the number of this one: it
    is renamed, so that its event log is not mistaken for this attempt's.

    Returns:
        The checkpoint's file name in the run's folder; None to start from scratch.

    Raises:
        Superseded: the attempt no longer holds the run, or the earlier attempt had finished it.
        CannotStart: the run is evaluated from a set that does not exist any more.
        StoreUnavailable: the artifact store is unavailable, or has no file at all of a run with checkpoints.
    """
    folder = _kill_survivors(context, claim)
    before = _latest_logged(context, claim, folder)
    if before is not None:
        Recorder(context, claim.run_id, before, fence=claim.attempt).conclude(_release_if_finished)
        recovered_checkpoints.record(context, claim, before)
    checkpoint = _newest_intact(context, claim)
    with context.writing() as session:
        spec = claims.resume_from(session, claim.run_id, claim.attempt, checkpoint)
    _set_aside(folder / str(claim.attempt))
    written = write_spec(context.run_dir(claim.run_id), spec)
    if checkpoint is not None and written.config.scores_best_kept:
        _fetch_best(context, claim.run_id)
    _write_starts(context, claim.run_id, written.evaluation_protocol)
    return checkpoint.file if checkpoint else None


def prepare_folder(context: Context, claim: Claim) -> None:
    """Prepare the folder of an attempt that is to start anew: kill what is left of earlier ones."""
    _set_aside(_kill_survivors(context, claim) / str(claim.attempt))


def _kill_survivors(context: Context, claim: Claim) -> Path:
    """Kill what earlier attempts have left running on this host; returns the folder of all attempts."""
    folder = context.run_dir(claim.run_id) / "attempts"
    for number in range(1, claim.attempt + 1):
        if ProcessIdentity(folder / str(number)).kill_survivor():
            log.warning("engine.survivor_killed", run_id=claim.run_id, attempt=number)
    return folder


def _latest_logged(context: Context, claim: Claim, folder: Path) -> int | None:
    """The latest earlier attempt that came as far as to resume, if its log is on this host."""
    for number in range(claim.attempt - 1, 0, -1):
        if (folder / str(number) / "events.log").exists():
            return number
        with context.reading() as session:
            if claims.has_resumed(session, claim.run_id, number):
                return None  # on another host, and what came before is superseded
    return None


def _fetch_best(context: Context, run_id: str) -> None:
    """Fetch the best checkpoint, which the engine scores again at its end: another host may have saved it."""
    with context.reading() as session:
        files = retention.needed_by_engine(session, run_id, 0)
        rows = [row for file in files if (row := checkpoints.of_file(session, run_id, file)) is not None]
    for row in rows:
        fetch(context, row)


def _write_starts(context: Context, run_id: str, protocol: str) -> None:
    """Write the emulator states of the run's start set to the engine's file, atomically; nothing if it has no
    set."""
    if starts_protocol(protocol) is None:
        return
    with context.reading() as session:
        states = starts.states_of(session, protocol)
    if states is None:
        raise CannotStart(f"the start set of {protocol}, from which it is evaluated, has been deleted")
    with replacing(context.run_dir(run_id) / STARTS_FILE) as partial:
        partial.write_bytes(states)


def _set_aside(folder: Path) -> None:
    """Rename the folder of an attempt that has not started, if there is one."""
    if folder.exists():
        target = folder.with_name(f"{folder.name}.replaced-{uuid4().hex}")
        folder.rename(target)
        log.warning("attempt.folder_set_aside", folder=str(target))


def _release_if_finished(session: Session, run: Run, final_event: EndedEvent | None) -> None:
    if final_event is not None and final_event.state != "stopped":
        claims.end_attempt(
            session, run, RunState(final_event.state), final_event.reason, final_event.traceback
        )


def _newest_intact(context: Context, claim: Claim) -> Checkpoint | None:
    with context.reading() as session:
        candidates = checkpoints.resumable(session, claim.run_id)
    for n_tried, checkpoint in enumerate(candidates, 1):
        if fetch(context, checkpoint) is not None:
            return checkpoint
        context.store.check_has_run(claim.run_id)
        with context.writing() as session:
            claims.lock(session, claim.run_id, claim.attempt)
            way_out = "trying an older one" if n_tried < len(candidates) else "starting from scratch"
            message = f"checkpoint {checkpoint.file} is missing or damaged: {way_out}"
            runs.log(session, claim.run_id, claim.attempt, "warning", message)
            runs.bump_revision(session, claim.run_id)
    return None


def is_damaged(context: Context, claim: Claim, file: str) -> bool:
    """Whether this host's file of a checkpoint is not as it was recorded."""
    with context.reading() as session:
        candidates = checkpoints.resumable(session, claim.run_id)
    sha256 = {checkpoint.file: checkpoint.sha256 for checkpoint in candidates}.get(file)
    local = context.run_dir(claim.run_id) / "checkpoints" / file
    return not local.is_file() or file_sha256(local) != sha256


def fetch(context: Context, checkpoint: Checkpoint) -> Path | None:
    """The checkpoint's file on this host, fetched from the artifact store if needed; None unless intact."""
    return _fetch(context, checkpoint.run_id, "checkpoints", checkpoint.file, checkpoint.sha256)


def fetch_into(
    context: Context, owner_id: str, kind: ArtifactKind, file: str, sha256: str | None, folder: Path
) -> bool:
    """Get a file of a run, as this host has it or from the artifact store, into another folder of the runs;
    return whether its checksum is `sha256`; with None any content is accepted."""
    local = context.run_dir(owner_id) / kind / file
    if local.is_file() and _is_intact(local, sha256):
        os.link(local, folder / file)
        return True
    try:
        local = context.store.get(owner_id, kind, file, folder)
    except FileNotFoundError:
        return False
    return _is_intact(local, sha256)


def _fetch(context: Context, run_id: str, kind: ArtifactKind, file: str, sha256: str | None) -> Path | None:
    """A file whose checksum is `sha256`; with None any content is accepted."""
    folder = context.run_dir(run_id) / kind
    local = folder / file
    if local.is_file() and _is_intact(local, sha256):
        return local
    try:
        local = context.store.get(run_id, kind, file, folder)
    except FileNotFoundError:
        return None
    return local if _is_intact(local, sha256) else None


def _is_intact(file: Path, sha256: str | None) -> bool:
    try:
        return sha256 is None or file_sha256(file) == sha256
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return False  # a sector that cannot be read: an older file may be whole


def write_spec(run_dir: Path, spec: dict[str, Any]) -> RunSpec:
    """Write a stored spec to the engine's file, atomically, and return it.

    Raises:
        InvalidSpec: it was stored by a version with other config fields.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    partial = run_dir / f"spec.json.{uuid4().hex}"
    parsed = parse_run_spec(spec)
    partial.write_text(parsed.model_dump_json(indent=2))
    os.replace(partial, run_dir / "spec.json")
    return parsed
