"""Changes to a run's settings during training: requested by users, sent to engines by supervisors, completed
by recorders."""

from typing import Any

from sqlalchemy.orm import Session

from backend.db import LiveSettings, Run
from backend.db.changes import host_queue, record_work
from backend.db.clock import database_now
from backend.fleet.hosts import repository as hosts
from backend.platform.errors import Conflict
from backend.runs.live_settings import repository
from backend.runs.live_settings.repository import APPLIED, REFUSED, REQUESTED
from backend.runs.runs import external
from backend.runs.runs import service as runs
from backend.specs.commands import ChangeSettings
from backend.specs.departures import with_change
from backend.specs.events import SettingsChangedEvent
from backend.specs.problems import FieldProblem, InvalidSpec
from backend.specs.run import RunSpec, change_live, parse_run_spec
from backend.specs.states import ENDED, LEASED


def request(session: Session, run_id: str, changes: dict[str, Any], requested_by: str | None) -> LiveSettings:
    """Validate changes against the current and the pending settings, and request them; they apply immediately
    if no engine runs.

    Raises:
        NotFound: there is no such run.
        Conflict: it is an external run, or has ended: its settings are those that it was trained with.
        InvalidSpec: with one problem per setting that cannot be changed live, whose value is invalid, or that
            needs more memory than the run's host has.
    """
    run = runs.get(session, run_id, for_update=True)
    spec = external.trainable_spec(run, "change the settings of")
    if run.state in ENDED:
        raise Conflict(
            f"the run is {run.state}: settings change only before the end; fork it to train with others"
        )
    for earlier in repository.pending(session, run_id):
        spec = change_live(spec, earlier.changes)
    changed = change_live(spec, changes)
    _check_memory(session, run, spec, changed, changes)
    checked = changed.config.model_dump(mode="json")
    row = LiveSettings(
        run_id=run.id,
        version=repository.next_version(session, run.id),
        requested_at=database_now(session),
        requested_by=requested_by,
        changes={name: checked[name] for name in changes},
        state=REQUESTED,
    )
    repository.add(session, row)
    if run.state not in LEASED and not repository.pending(session, run.id, before=row.version):
        _apply(session, run, row, run.agent_steps, run.frames, run.wall_time_s)
    elif run.host is not None:
        record_work(session, host_queue(run.host))
    runs.touch(session, run)
    return row


def pending_commands(session: Session, run_id: str) -> list[ChangeSettings]:
    """The changes that the engine of a run has not answered yet, oldest first."""
    rows = repository.pending(session, run_id)
    return [ChangeSettings(version=row.version, changes=row.changes) for row in rows]


def settle(session: Session, run: Run, answer: SettingsChangedEvent) -> None:
    """Apply an engine's reply, once: the spec of the locked run then holds its changes.

    The caller bumps the run's revision.
    """
    row = repository.get(session, run.id, answer.version)
    if row is None or row.state != REQUESTED:
        return
    if answer.refused is None:
        _apply(session, run, row, answer.agent_steps, answer.frames, answer.wall_time_s)
    else:
        row.state, row.refused = REFUSED, answer.refused
    session.flush()


def _check_memory(
    session: Session, run: Run, spec: RunSpec, changed: RunSpec, changes: dict[str, Any]
) -> None:
    """Reject changes that the host of the run has no memory for, as a claim would."""
    more = changed.memory_estimate_bytes - spec.memory_estimate_bytes
    host = hosts.get(session, run.host) if run.host is not None and run.state in LEASED else None
    if host is None or more <= 0:
        return
    free = host.memory_bytes - int(host.load.get("memory_used_bytes", 0))
    if more > free:
        message = (
            f"requires {more / 2**30:.1f} GiB more memory, and {host.id} has {free / 2**30:.1f} GiB available"
        )
        at_fault = [
            name
            for name, value in changes.items()
            if change_live(spec, {name: value}).memory_estimate_bytes > spec.memory_estimate_bytes
        ]
        raise InvalidSpec([FieldProblem(field=f"config.{name}", message=message) for name in at_fault])


def _apply(
    session: Session, run: Run, row: LiveSettings, agent_steps: int, frames: int, wall_time_s: float
) -> None:
    """Apply a change to the spec of a locked run, from this point of its training on."""
    row.state = APPLIED
    row.agent_steps, row.frames, row.wall_time_s = agent_steps, frames, wall_time_s
    config = run.spec["config"]
    shown = ", ".join(f"{name} {config[name]} → {value}" for name, value in row.changes.items())
    for name, value in row.changes.items():
        run.departures = with_change(run.departures, name, config[name], value, agent_steps)
    run.spec = run.spec | {"config": config | row.changes}
    run.memory_estimate_bytes = parse_run_spec(run.spec).memory_estimate_bytes
    runs.log(session, run.id, run.attempt, "info", f"settings, version {row.version}: {shown}", agent_steps)
