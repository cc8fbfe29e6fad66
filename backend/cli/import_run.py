"""`callboard runs import`: a run that was trained in a terminal, into this machine's server."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.database import upgrade
from backend.cli.terminal import fail
from backend.settings import Settings
from backend.specs.states import RunState

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from backend.db import Run
    from backend.specs.events import Ended
    from workers.context import Context

LEASE_S = 3600.0
"""Longer than an import takes; a worker would take the run over after it."""

HOST = "import"


def import_run(
    run_directory: Annotated[
        Path, typer.Argument(help="Directory of a run, such as `callboard train` leaves.")
    ],
) -> None:
    """Record a run directory as a run of this machine's server, and print its id."""
    from backend.specs.run import InvalidSpec, parse_run_spec

    try:
        spec = parse_run_spec(json.loads((run_directory / "spec.json").read_text("utf-8")))
    except (OSError, ValueError, InvalidSpec) as error:
        raise fail(f"run_directory: {error}") from None
    numbers = [int(p.name) for p in (run_directory / "attempts").glob("*") if p.name.isdigit()]
    if not numbers:
        raise fail(f"run_directory: {run_directory} holds no attempt's log")
    from backend.runs import repository as runs
    from workers import claims
    from workers.context import Context
    from workers.recorder import Recorder

    settings = Settings()
    upgrade(settings)
    context = Context.of(settings)
    with context.writing() as session:
        run = runs.create(session, spec)
        # In the same transaction: no worker sees it waiting.
        claims.take(session, run, HOST, LEASE_S)
    shutil.copytree(run_directory, context.run_dir(run.id))
    for number in range(1, max(numbers) + 1):
        _begin(context, run.id, number)
        conclude = _end if number == max(numbers) else _go_on
        Recorder(context, run.id, number).conclude(conclude)
    context.close()
    typer.echo(run.id)


def _begin(context: "Context", run_id: str, number: int) -> None:
    """Settle where an attempt went on from, as its log says."""
    from backend.specs.events import Started
    from workers import claims
    from workers.engine.event_log import read_frames

    log = context.run_dir(run_id) / "attempts" / str(number) / "events.log"
    frame, _ = next(read_frames(log), ([], 0))
    started = next((event for event in frame if isinstance(event, Started)), None)
    resumed_from = started.resumed_from if started else None
    with context.writing() as session:
        checkpoints = {c.file: c for c in claims.checkpoints(session, run_id)}
        claims.begin(session, run_id, number, checkpoints.get(resumed_from or ""))


def _go_on(session: "Session", run: "Run", last_word: "Ended | None") -> None:
    from workers import claims

    reason = last_word.reason if last_word else "it died"
    claims.release(session, run, RunState.QUEUED, reason)
    claims.take(session, run, HOST, LEASE_S)


def _end(session: "Session", run: "Run", last_word: "Ended | None") -> None:
    from workers import claims

    if last_word is None:
        claims.release(session, run, RunState.STOPPED, "its engine had died")
    else:
        claims.release(session, run, RunState(last_word.state), last_word.reason, last_word.traceback)
