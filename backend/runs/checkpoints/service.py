"""Checkpoints: those that engines save, copies in forks, and files of external runs."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from backend.db import Checkpoint, Run
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.fleet.jobs.kinds import FileLost, Stored
from backend.platform.errors import NotFound
from backend.runs.checkpoints import repository
from backend.specs.events import CheckpointSavedEvent, ReportEvent


def get_stored(session: Session, checkpoint_id: str) -> Checkpoint:
    """The checkpoint, whose file is stored.

    Raises:
        NotFound: there is no such checkpoint, or its file has been removed.
    """
    checkpoint = repository.get(session, checkpoint_id)
    if checkpoint is None:
        raise NotFound(f"checkpoint {checkpoint_id} does not exist")
    if checkpoint.removed:
        raise NotFound(f"the file of checkpoint {checkpoint_id} has been removed")
    return checkpoint


def resumable(session: Session, run_id: str) -> Sequence[Checkpoint]:
    """The checkpoints that a run can resume from, latest first."""
    return repository.resumable(session, run_id)


def of_file(session: Session, run_id: str, file: str) -> Checkpoint | None:
    """The latest row of a checkpoint file of a run, removed and superseded ones included, or None."""
    return repository.of_file(session, run_id, file)


def stored_file(session: Session, run_id: str, file: str) -> Stored:
    """A checkpoint file of a run that a job needs.

    Raises:
        FileLost: the run has no such checkpoint.
    """
    title = f"the checkpoint {file}"
    checkpoint = of_file(session, run_id, file)
    if checkpoint is None:
        raise FileLost(title)
    return Stored(run_id, "checkpoints", file, checkpoint.sha256, title)


def record(
    session: Session,
    run: Run,
    attempt: int,
    saved: CheckpointSavedEvent,
    *,
    removed: bool = False,
    report: ReportEvent | None = None,
) -> None:
    """Record a checkpoint that the engine of a locked run has saved.

    Args:
        session: a writing session.
        run: the run, locked.
        attempt: number of the attempt whose engine has saved it.
        saved: the engine's event.
        removed: whether its file no longer exists.
        report: the engine's report of its scores at that time; default: the run's scores as they are now.
    """
    checkpoint = Checkpoint(
        id=new_id(),
        run_id=run.id,
        attempt=attempt,
        recorded_at=database_now(session),
        score=run.score if report is None else report.mean_return_100,
        best_return=run.best_return if report is None else report.best_return,
        removed=removed,
        **saved.model_dump(exclude={"type"}),
    )
    session.add(checkpoint)
    run.attempts_without_checkpoint = run.host_deaths = 0
    run.checkpoint_requested_at = None


def add_copy(session: Session, original: Checkpoint, run_id: str, file: str) -> None:
    """Add a copy of another run's checkpoint as the first of a new run (attempt 0)."""
    copy = Checkpoint(
        id=new_id(),
        run_id=run_id,
        attempt=0,
        recorded_at=database_now(session),
        agent_steps=original.agent_steps,
        frames=original.frames,
        updates=original.updates,
        episodes=original.episodes,
        wall_time_s=original.wall_time_s,
        file=file,
        sha256=original.sha256,
        size_bytes=original.size_bytes,
        score=original.score,
        best_return=original.best_return,
    )
    repository.add(session, copy)


def add_external(
    session: Session,
    run: Run,
    *,
    file: str,
    sha256: str,
    size_bytes: int,
    agent_steps: int,
    frames: int,
    wall_time_s: float,
    score: float | None,
) -> None:
    """Add a file that the script of a locked external run has saved. Nothing here can load it."""
    checkpoint = Checkpoint(
        id=new_id(),
        run_id=run.id,
        attempt=run.attempt,
        recorded_at=database_now(session),
        agent_steps=agent_steps,
        frames=frames,
        updates=0,
        episodes=run.episodes,
        wall_time_s=wall_time_s,
        file=file,
        sha256=sha256,
        size_bytes=size_bytes,
        score=score,
        best_return=run.best_return,
    )
    repository.add(session, checkpoint)
