"""Live settings: requested over REST, sent to engines by supervisors, completed by recorders."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db import LiveSettings, Run
from backend.db.changes import host_queue, record_work
from backend.db.clock import database_now
from backend.runs import repository as runs
from backend.specs.events import SettingsChangedEvent
from backend.specs.run import parse_run_spec
from backend.specs.states import LEASED

REQUESTED, APPLIED, REFUSED = "asked", "applied", "refused"


def request(session: Session, run: Run, changes: dict[str, Any], requested_by: str | None) -> LiveSettings:
    """Request changes to a locked run; they apply immediately if no engine runs.

    `changes` must be validated already.
    """
    version = select(func.coalesce(func.max(LiveSettings.version), 0) + 1)
    row = LiveSettings(
        run_id=run.id,
        version=session.scalars(version.where(LiveSettings.run_id == run.id)).one(),
        requested_at=database_now(session),
        requested_by=requested_by,
        changes=changes,
        state=REQUESTED,
    )
    session.add(row)
    session.flush()
    if run.state not in LEASED and not pending(session, run.id, before=row.version):
        _apply(session, run, row, run.agent_steps, run.frames, run.wall_time_s)
    elif run.host is not None:
        record_work(session, host_queue(run.host))
    runs.touch(session, run)
    return row


def pending(session: Session, run_id: str, *, before: int | None = None) -> Sequence[LiveSettings]:
    """The changes that an engine has not answered yet, oldest first."""
    statement = select(LiveSettings).where(LiveSettings.run_id == run_id, LiveSettings.state == REQUESTED)
    if before is not None:
        statement = statement.where(LiveSettings.version < before)
    return session.scalars(statement.order_by(LiveSettings.version)).all()


def settle(session: Session, run: Run, answer: SettingsChangedEvent) -> None:
    """Apply an engine's reply, once: the spec of the locked run then holds its changes.

    The caller bumps the run's revision.
    """
    row = session.get(LiveSettings, (run.id, answer.version))
    if row is None or row.state != REQUESTED:
        return
    if answer.refused is None:
        _apply(session, run, row, answer.agent_steps, answer.frames, answer.wall_time_s)
    else:
        row.state, row.refused = REFUSED, answer.refused
    session.flush()


def all_versions(session: Session, run_id: str) -> Sequence[LiveSettings]:
    """Every requested change, latest first."""
    statement = select(LiveSettings).where(LiveSettings.run_id == run_id)
    return session.scalars(statement.order_by(LiveSettings.version.desc())).all()


def _apply(
    session: Session, run: Run, row: LiveSettings, agent_steps: int, frames: int, wall_time_s: float
) -> None:
    row.state = APPLIED
    row.agent_steps, row.frames, row.wall_time_s = agent_steps, frames, wall_time_s
    config = run.spec["config"]
    shown = ", ".join(f"{name} {config[name]} → {value}" for name, value in row.changes.items())
    run.spec = run.spec | {"config": config | row.changes}
    run.memory_estimate_bytes = parse_run_spec(run.spec).memory_estimate_bytes
    message = f"settings, version {row.version}: {shown}"
    line = {"time": database_now(session), "level": "info", "message": message, "agent_steps": agent_steps}
    runs.add_log_lines(session, run.id, run.attempt, [line])
