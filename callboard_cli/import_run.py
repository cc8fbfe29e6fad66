"""`callboard runs import`: record a run trained in a terminal on this machine's server."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.platform.settings import Settings
from backend.specs.states import ENDED, RunState
from callboard_cli import fail
from callboard_cli.database import upgrade
from callboard_cli.run_directory import load_spec, occupying

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from backend.coordination.context import Context
    from backend.db import Run
    from backend.specs.events import EndedEvent
    from backend.specs.run import RunSpec

LEASE_S = 3600.0
"""Longer than an import takes; after it, a worker would claim the run."""

HOST = "import"


def import_run(
    command: typer.Context,
    run_directory: Annotated[
        Path, typer.Argument(help="Directory of a run, such as one of `callboard train`.")
    ],
) -> None:
    """Record a run directory as a run of this machine's server, and print its id."""
    spec = load_spec(run_directory)
    command.with_resource(occupying(run_directory))
    typer.echo(record(run_directory, spec))


def record(run_directory: Path, spec: "RunSpec") -> str:
    """Record a run directory, which no other process changes, as a run; return its id.

    Raises:
        typer.Exit: it has no attempt, or cannot be recorded.
    """
    numbers = [int(p.name) for p in (run_directory / "attempts").glob("*") if p.name.isdigit()]
    if not numbers:
        raise fail(f"run_directory: {run_directory} contains no attempt")
    from backend.coordination import claims
    from backend.coordination.context import Context
    from backend.platform.errors import Invalid
    from backend.runs.runs import service as runs
    from workers.host_files import COMPRESSED, decompress
    from workers.recorder import Recorder

    settings = Settings()
    upgrade(settings)
    with closing(Context.from_settings(settings)) as context:
        with context.writing() as session:
            try:
                run = runs.create(session, spec)
            except Invalid as error:
                raise fail(str(error)) from None
            # In the same transaction, so that no worker can claim it.
            claims.start_attempt(session, run, HOST, LEASE_S)
        try:
            # By this folder workers know the copy as theirs to clean up.
            (context.run_dir(run.id) / "jobs").mkdir(parents=True)
            shutil.copytree(run_directory, context.run_dir(run.id), dirs_exist_ok=True)
            for compressed in context.run_dir(run.id).glob(f"attempts/*/events.log{COMPRESSED}"):
                decompress(compressed)
            for number in range(1, max(numbers) + 1):
                _resume_attempt(context, run.id, number)
                conclude = _end if number == max(numbers) else _start_next
                Recorder(context, run.id, number).conclude(conclude)
        except BaseException as error:
            _give_up(context, run.id)
            if isinstance(error, OSError):
                raise fail(f"run_directory: {run_directory} cannot be recorded: {error}", 1) from None
            raise
    return run.id


def _give_up(context: "Context", run_id: str) -> None:
    """End a run that is recorded in part: else its lease would expire, and a worker train it."""
    from backend.coordination import claims
    from backend.runs.runs import service as runs

    with context.writing() as session:
        run = runs.get(session, run_id, for_update=True)
        if run.state not in ENDED:
            claims.end_attempt(session, run, RunState.FAILED, "its import was interrupted")


def _resume_attempt(context: "Context", run_id: str, number: int) -> None:
    """Set the checkpoint that an attempt resumed from, according to its log; by now its file may have been
    removed. An attempt that ended before it started supersedes nothing."""
    from backend.coordination import claims
    from backend.runs.checkpoints import service as checkpoints
    from backend.specs.events import StartedEvent
    from workers.engine.training.event_log import read_frames

    log = context.run_dir(run_id) / "attempts" / str(number) / "events.log"
    logged = (event for frame, _ in read_frames(log) for event in frame)
    started = next((event for event in logged if isinstance(event, StartedEvent)), None)
    if started is None:
        return
    file = started.resumed_from
    with context.writing() as session:
        checkpoint = checkpoints.of_file(session, run_id, file) if file else None
        # The row is missing where the log is damaged, but not how far the checkpoint had come.
        claims.resume_from(session, run_id, number, checkpoint, started.agent_steps if file else 0)


def _start_next(session: "Session", run: "Run", final_event: "EndedEvent | None") -> None:
    from backend.coordination import claims

    reason = final_event.reason if final_event else "its engine died"
    claims.end_attempt(session, run, RunState.QUEUED, reason)
    claims.start_attempt(session, run, HOST, LEASE_S)


def _end(session: "Session", run: "Run", final_event: "EndedEvent | None") -> None:
    from backend.coordination import claims

    if final_event is None:
        claims.end_attempt(session, run, RunState.STOPPED, "its engine died")
    else:
        claims.end_attempt(
            session, run, RunState(final_event.state), final_event.reason, final_event.traceback
        )
