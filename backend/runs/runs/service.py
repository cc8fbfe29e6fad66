"""The life of a run: its states, its log, its revision and its end.

What users may do with runs, and when, is in `actions`; what they may ask for is in `requests`.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy.orm import Session

from backend.db import Checkpoint, DeletedRun, Experiment, Run, Transition
from backend.db.alert import AlertKind, record_signal
from backend.db.base import new_run_id, storable
from backend.db.changes import host_queue, record_change, record_work
from backend.db.checked_json import UnreadableSpec
from backend.db.clock import database_now
from backend.db.run import RESTORABLE_S, averaged_rate
from backend.fleet.storage import service as storage
from backend.platform.errors import Conflict, NotFound
from backend.runs.runs import repository
from backend.runs.runs.external_spec import command_spec
from backend.runs.runs.grid import AnySpec
from backend.runs.starts import service as starts
from backend.specs.events import ReportEvent
from backend.specs.host_commands import CommandSpec
from backend.specs.names import default_name
from backend.specs.problems import InvalidSpec
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import ENDED, EXTERNAL_TRANSITIONS, LEASED, TRANSITIONS, RunState

_COPIED = ("algorithm", "seed", "queue", "priority", "group", "project", "notes")

LogLevel = Literal["info", "warning", "error"]

_LEVELS: dict[RunState, LogLevel] = {RunState.LOST: "warning", RunState.FAILED: "error"}
"""Level of the log line of a transition to a state; `info` for the others."""


_SIGNALS: dict[RunState, AlertKind] = {
    RunState.FINISHED: "finished",
    RunState.FAILED: "failed",
    RunState.LOST: "lost",
}
"""States of which rules for alerts may be."""


class IllegalTransition(Exception):
    """A transition that the table of the run's origin does not have."""

    def __init__(self, run_id: str, before: RunState, after: RunState) -> None:
        super().__init__(f"run {run_id} is {before.value}: it cannot become {after.value}")
        self.before = before
        self.after = after


def create(
    session: Session,
    spec: AnySpec,
    *,
    created_by: str | None = None,
    run_id: str | None = None,
    start: Checkpoint | None = None,
    reason: str = "created",
) -> Run:
    """Store a new run, `queued`, and wake the workers of its queue after the commit.

    Args:
        session: a writing session.
        spec: the specification.
        created_by: id of the user.
        run_id: id of the run; default: a new one.
        start: another run's checkpoint that the run starts from.
        reason: one line for the log.

    Raises:
        Invalid: its evaluations start from a set that does not exist, or that agents of this environment
            cannot start from.
    """
    if isinstance(spec, CommandSpec):
        stored = command_spec(spec)
        of_origin = {"origin": EXTERNAL, "return_metric": stored["return_metric"]}
        of_origin |= {"environment": stored["environment"]}
        memory_bytes = spec.command.memory_bytes
    else:
        spec = starts.pinned(session, spec)
        stored, of_origin = spec.model_dump(mode="json"), {"environment": spec.environment}
        memory_bytes = spec.memory_estimate_bytes
    run = Run(
        id=run_id or new_run_id(),
        created_at=database_now(session),
        created_by=created_by,
        name=(spec.name or "").strip() or default_name(spec),
        **{name: getattr(spec, name) for name in _COPIED},
        **of_origin,
        spec=stored,
        wanted_host=spec.host,
        tags=list(spec.tags),
        memory_estimate_bytes=memory_bytes,
        state=RunState.QUEUED,
        state_reason=reason,
        attempt=0,
        revision=0,
    )
    if start is not None:
        run.parent_id, run.forked_at_agent_steps = start.run_id, start.agent_steps
        run.agent_steps, run.frames, run.updates = start.agent_steps, start.frames, start.updates
        run.episodes, run.wall_time_s = start.episodes, start.wall_time_s
    add(session, run)
    _wake_workers(session, run)
    return run


def add(session: Session, run: Run) -> None:
    """Store a new run in its first state, with the reason for it."""
    repository.add(session, run)
    _record(session, run, None, run.state_reason, run.created_at, "info", run.created_at)


def find(session: Session, run_id: str, *, for_update: bool = False) -> Run | None:
    """The run, or None. `for_update` locks its row until the end of the transaction: read before you
    write."""
    return repository.get(session, run_id, for_update=for_update)


def get(session: Session, run_id: str, *, for_update: bool = False, any_spec: bool = False) -> Run:
    """The run; with `any_spec` also for an update if its specification cannot be read.

    Raises:
        NotFound: there is no such run.
        Conflict: it is for an update, and its specification cannot be read.
    """
    run = find(session, run_id, for_update=for_update)
    if run is None:
        raise NotFound(f"run {run_id} does not exist or has been deleted", code="run_not_found")
    if for_update and not any_spec:
        require_readable(run)
    return run


def require_readable(row: Run | Experiment) -> None:
    """Refuse an operation for a row that is damaged, or a run whose algorithm is not installed.

    Raises:
        Conflict: its specification cannot be read.
    """
    if isinstance(row.spec, UnreadableSpec):
        raise Conflict(row.spec.refusal)


def spec_of(run: Run) -> RunSpec:
    """The specification of a run of Callboard's own.

    Raises:
        Conflict: it cannot be read, or is of another version.
    """
    require_readable(run)
    try:
        return parse_run_spec(run.spec)
    except InvalidSpec as error:
        raise Conflict(f"its specification is of another version: {error}") from None


def transition(
    session: Session,
    run: Run,
    after: RunState,
    reason: str,
    level: LogLevel | None = None,
    logged_at: datetime | None = None,
) -> None:
    """Change the state of a run: the only function that does.

    Writes the new state and its reason, a `Transition` row and a line of the run's log, and bumps the
    revision. A state without a lease clears host and lease; an ended state clears the stop request.

    Args:
        session: a writing session.
        run: loaded with `get(..., for_update=True)`, or locked by a claim, in this transaction.
        after: the new state.
        reason: one line for users.
        level: level of the log line; by default that of the new state.
        logged_at: time of the log line; by default now. An engine's lines have the time of its host.

    Raises:
        IllegalTransition: the table of its origin does not allow it; nothing is changed.
    """
    before = RunState(run.state)
    if after not in (TRANSITIONS if run.runs_here else EXTERNAL_TRANSITIONS).get(before, ()):
        raise IllegalTransition(run.id, before, after)
    now = database_now(session)
    run.state = after
    run.state_reason = reason
    if after == RunState.STARTING and run.started_at is None:
        run.started_at = now
    if after not in LEASED:
        run.host = None
        run.lease_expires_at = None
        run.agent_steps_per_s = None
        run.checkpoint_requested_at = None
    if after in ENDED:
        run.ended_at = now
        run.stop_requested = None
    else:
        run.ended_at = None
    if after == RunState.QUEUED:
        _wake_workers(session, run)
    level = level or _LEVELS.get(after, "info")
    if after in _SIGNALS and not run.demo:
        steps = run.agent_steps
        record_signal(
            session, _SIGNALS[after], run.id, attempt=run.attempt, agent_steps=steps, level=level, text=reason
        )
    _record(session, run, before, reason, now, level, logged_at or now)


def request_stop(session: Session, run: Run, *, kill: bool, by: str = "") -> None:
    """Request the end of a locked run that a worker holds; repeated requests are harmless.

    Args:
        session: a writing session.
        run: a run in a state with a lease.
        kill: immediately, without a last checkpoint.
        by: words after "stop requested" in the reason.
    """
    request = "kill" if kill or run.stop_requested == "kill" else "stop"
    if request != run.stop_requested:
        run.stop_requested = request
        if run.host is not None:
            record_work(session, host_queue(run.host))
        if run.state == RunState.STOPPING:
            touch(session, run)
    if run.state != RunState.STOPPING:
        transition(session, run, RunState.STOPPING, f"{'kill' if kill else 'stop'} requested{by}")


def wanted_checkpoints(session: Session, run_ids: Iterable[str]) -> dict[str, datetime]:
    """When checkpoints of these runs were requested that are not recorded yet, by id."""
    return repository.wanted_checkpoints(session, list(run_ids))


def touch(session: Session, run: Run, parts: Collection[str] = ()) -> int:
    """Bump the revision of a locked run; the change is published after the commit. Returns the new revision.

    `parts` names what has changed, as in `backend.db.changes.ChangeEvent`; empty: anything may have.
    """
    run.revision += 1
    publish(session, run, parts)
    return run.revision


def publish(session: Session, run: Run, parts: Collection[str] = ()) -> None:
    """Publish after the commit that these parts of a locked run have changed."""
    record_change(session, "run", run.id, state=run.state, changed=parts)


def bump_revision(session: Session, run_id: str, parts: Collection[str] = ()) -> int:
    """Bump the revision of a run whose row is not loaded, as `touch` does. Returns the new revision."""
    revision, state = repository.bump_revision(session, run_id)
    record_change(session, "run", run_id, state=state, changed=parts)
    return revision


def log(
    session: Session,
    run_id: str,
    attempt: int,
    level: LogLevel,
    message: str,
    agent_steps: int | None = None,
) -> None:
    """Append a line to the run's log, with the current time of the database."""
    line = {"time": database_now(session), "level": level, "message": message, "agent_steps": agent_steps}
    add_log_lines(session, run_id, attempt, [line])


def add_log_lines(session: Session, run_id: str, attempt: int, lines: Iterable[dict[str, Any]]) -> None:
    """Append to the run's log; each line has `time`, `level`, `message`, and optionally `agent_steps`."""
    rows = [
        {"agent_steps": None, **line, "message": storable(line["message"])}
        | {"run_id": run_id, "attempt": attempt}
        for line in lines
    ]
    if rows:
        repository.add_log_lines(session, rows)


def record_report(run: Run, report: ReportEvent) -> None:
    """Update the counters, the speed and the score of a locked run from its engine's report."""
    passed_s = report.wall_time_s - run.wall_time_s
    run.agent_steps_per_s = averaged_rate(
        run.agent_steps_per_s, report.agent_steps_per_s, passed_s, report.wall_time_s
    )
    run.agent_steps = report.agent_steps
    run.frames = report.frames
    run.updates = report.updates
    run.episodes = report.episodes
    run.wall_time_s = report.wall_time_s
    run.score = report.mean_return_100
    run.best_return = report.best_return


def remove(session: Session, run: Run) -> None:
    """Delete a locked run with all its rows, and record that it existed; clean-up deletes its files."""
    session.add(DeletedRun(id=run.id))
    storage.release_all_files(session, run.id)
    record_change(session, "run", run.id, state="deleted")
    repository.delete(session, run)


def purge(session: Session) -> str | None:
    """Delete a run whose time to be restored has passed, and return its id; None if there is none.

    One run only, because its rows may be many and SQLite's write lock is held meanwhile.
    """
    before = database_now(session) - timedelta(seconds=RESTORABLE_S)
    for run in repository.deleted_before(session, before, limit=1):
        remove(session, run)
        return run.id
    return None


def has_any(session: Session) -> bool:
    """Whether there is a run, one that can be restored included."""
    return repository.has_any(session)


def deleted_among(session: Session, run_ids: Sequence[str]) -> set[str]:
    """The ids among these of deleted runs."""
    return repository.deleted_among(session, run_ids)


def _wake_workers(session: Session, run: Run) -> None:
    record_work(session, host_queue(run.wanted_host) if run.wanted_host else run.queue)


def _record(
    session: Session,
    run: Run,
    before: RunState | None,
    reason: str,
    now: datetime,
    level: LogLevel,
    logged_at: datetime,
) -> None:
    """Record the state that a run has reached: a row, a line of its log, and a new revision."""
    session.add(
        Transition(
            run_id=run.id, time=now, before=before, after=run.state, attempt=run.attempt, reason=reason
        )
    )
    line = {"level": level, "message": f"{run.state}: {reason}", "agent_steps": run.agent_steps}
    add_log_lines(session, run.id, run.attempt, [line | {"time": logged_at}])
    touch(session, run)
