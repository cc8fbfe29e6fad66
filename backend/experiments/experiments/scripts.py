"""Sweeps whose runs are of a script that somebody starts in a terminal: the next run, and how it ended."""

from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from backend.access.auth import service as auth
from backend.db import Experiment, Run
from backend.db.clock import database_now
from backend.experiments.cells.equal_runs import key_of_stored
from backend.experiments.experiments import repository, service
from backend.experiments.experiments.sweep import script_run
from backend.experiments.specs.sweep import SweepSpec
from backend.platform.errors import Conflict, NotFound
from backend.platform.principals import Principal
from backend.runs.runs import requests
from backend.runs.runs import service as runs
from backend.runs.runs.external import HEARTBEAT_S
from backend.specs.states import ENDED, EXTERNAL_TRANSITIONS, RunState


class Taken(NamedTuple):
    """A run that somebody starts."""

    run: Run
    config: dict[str, Any]
    seed: int | None
    """None if the script gets none."""
    token: str
    """With which the script can write this run alone."""


def take(session: Session, sweep_id: str, principal: Principal) -> tuple[Experiment, Taken | None]:
    """Create the run of a sweep's next configuration; None if none is due now.

    Where no other is due, a configuration whose run is lost is free again.

    Raises:
        NotFound: there is no such sweep.
        Conflict: workers start its runs.
    """
    sweep = service.get(session, "sweep", sweep_id, for_update=True)
    spec = SweepSpec.model_validate(sweep.spec)
    if not spec.is_of_scripts:
        raise Conflict("workers start the runs of this sweep: only one of the origin external is run here")
    while service.reconcile(session, sweep_id):
        pass
    if sweep.state != "running":
        return sweep, None
    due, rows, configurations = service.plan_of(session, sweep, spec)
    if not due.start:
        lost = [row.number for row in rows if row.state == RunState.LOST]
        if not lost:
            return sweep, None
        repository.restart(session, sweep_id, lost[:1])
        due, rows, configurations = service.plan_of(session, sweep, spec)
        if not due.start:
            return sweep, None
    number, draw = due.start[0]
    by_place = {(row.arm, row.environment, row.draw): row.number for row in rows}
    [cell] = repository.rows(session, sweep_id, [by_place[*configurations[number], draw]]).values()
    fields, config, seed = script_run(spec, cell.settings, cell.seed)
    run = requests.create_external(session, fields, principal)
    token = auth.create_token_of_run(session, run)
    assert token is not None  # of the user whose request this is
    cell.started, cell.run_id, cell.key = True, run.id, key_of_stored(run.spec)
    service.touch(session, sweep)
    return sweep, Taken(run, config, seed, token)


def report(
    session: Session, sweep_id: str, run_id: str, state: RunState, reason: str | None, *, free: bool
) -> Run:
    """Record that the script of a run goes on, or how it has ended: then its token is revoked.

    Args:
        session: a writing session.
        sweep_id: the sweep.
        run_id: a run of it.
        state: `running`, or how the script has ended. A script that has reported its own end otherwise, and
            one that was to be stopped, has not finished.
        reason: one line for the run's page.
        free: whether its configuration and seed are to be run again, by another run.

    Raises:
        NotFound: the sweep has no such run, or it has been given to somebody else since.
    """
    sweep = service.get(session, "sweep", sweep_id, for_update=True)
    number = repository.cell_of_run(session, sweep_id, run_id)
    if number is None:
        raise NotFound(f"sweep {sweep_id} has no run {run_id}, or another one in its place")
    run = runs.get(session, run_id, for_update=True)
    if state == RunState.RUNNING:
        if run.state == RunState.LOST:
            runs.transition(session, run, state, "its terminal runs it still")
        if run.state not in ENDED:
            run.lease_expires_at = database_now(session) + timedelta(seconds=HEARTBEAT_S)
        return run
    auth.revoke_token_of_run(session, run)
    if state == RunState.FINISHED:
        if run.state in ENDED:
            state = run.state
        elif run.stop_requested is not None:
            state = RunState.STOPPED
    if run.state != state and state in EXTERNAL_TRANSITIONS[run.state]:
        runs.transition(session, run, state, reason or f"its script has {state}")
        run.error = reason if state == RunState.FAILED else None
    if free:
        repository.restart(session, sweep_id, [number])
    service.touch(session, sweep)
    return run
