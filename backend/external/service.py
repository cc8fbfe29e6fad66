"""What the scripts of external runs send: heartbeats, points, episodes and log lines, each exactly once.

A batch names the process that writes it and its number. The number of the last stored batch is committed with
its rows, under a lock of the run: a batch that is sent again changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from backend.analysis.media import service as media
from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics.early import mark_early
from backend.db import Attempt, ExternalSource, Run, ScriptProcess
from backend.db.alert import record_signal
from backend.db.clock import database_now
from backend.drawing.catalogue import EPISODE_RETURN
from backend.external import repository
from backend.external.columns import PointColumns, with_frames
from backend.external.progress import advance, has_points, interpret, reached, score, with_episodes
from backend.external.schemas import (
    ConfigBatch,
    DroppedRows,
    Heartbeat,
    HeartbeatOut,
    HistogramsBatch,
    LogBatch,
    NumberedBatch,
    ProvenanceBatch,
    SentLine,
    Stored,
)
from backend.external.separation import log_dropped, separate
from backend.platform.errors import Conflict, Forbidden, Invalid, NotFound
from backend.platform.principals import Principal
from backend.runs.runs import actions
from backend.runs.runs import service as runs
from backend.runs.runs.external import HEARTBEAT_S, describe, require_storable
from backend.runs.runs.script_provenance import MAX_OUTPUT_CHARACTERS
from backend.specs.events import HistogramEvent
from backend.specs.problems import FieldProblem, quoted
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import ENDED, RunState
from callboard.known_tags import return_metric, series_units

MAX_SOURCES = 1_000
"""Maximum number of processes that write a run, one after another or together."""
MAX_WAITING_ALERTS = 100
"""Alerts of a run's script that wait for a worker at most; further ones are lines of its log only."""
MAX_PROCESSES = 100
"""Maximum number of processes of a run of which it is kept where they came from."""


def heartbeat(session: Session, run_id: str, principal: Principal, body: Heartbeat) -> HeartbeatOut:
    """Record that a script is running, or has ended.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run.
        Invalid: the script resumes or rewinds a run that it ends.
    """
    state, rewind_to = RunState(body.state), body.rewind_to
    run = _external(session, run_id, principal, rewind_to)
    if run.runs_here:  # its worker knows when it ends
        if state != RunState.RUNNING and body.reason:
            runs.log(session, run.id, run.attempt, "info", f"its script reports {state}: {body.reason}")
            runs.touch(session, run, ["log"])
        return _heard(run, stop_requested=run.stop_requested is not None)
    resumes = body.resume or rewind_to is not None
    if resumes and state != RunState.RUNNING:
        raise Invalid.field("resume" if body.resume else "rewind_to", "needs the state running")
    if state != RunState.RUNNING:
        if run.state != state:
            runs.transition(session, run, state, body.reason or f"its script reports {state}")
            run.error = body.reason if state == RunState.FAILED else None
    elif run.state == RunState.STOPPED and not resumes:
        # A user stopped it, or a process of it did: one that has not heard of that is to end as well.
        return _heard(run, stop_requested=True)
    elif run.state in ENDED:
        run.archived = False
        run.error = None
        runs.transition(session, run, state, body.reason or "resumed by its script")
    if rewind_to is not None:
        _rewind(session, run, rewind_to)
    _record_contact(session, run, body.reason)
    return _heard(run, stop_requested=run.stop_requested is not None)


def _heard(run: Run, *, stop_requested: bool) -> HeartbeatOut:
    reached = {name: getattr(run, name) for name in ("state", "agent_steps", "wall_time_s", "step_unit")}
    return HeartbeatOut.model_validate(reached | {"stop_requested": stop_requested})


def _rewind(session: Session, run: Run, agent_steps: int) -> None:
    """Set aside what a locked run has after these agent steps, as an attempt from a checkpoint does."""
    # From the beginning, even a point at step 0 is logged again.
    after = agent_steps or -1
    # Both may be ahead of the points.
    repository.supersede_checkpoints(session, run.id, after)
    media.cut(session, run.id, after)
    if run.agent_steps <= after or not (run.agent_steps or has_points(session, run)):
        return
    before = run.agent_steps
    metrics.cut(session, run.id, after, runs.touch(session, run))
    run.agent_steps = agent_steps
    run.frames, run.wall_time_s, run.episodes = reached(session, run)
    score(session, run)
    message = f"continues from {agent_steps:,} agent steps; what it has logged up to {before:,} is kept aside"
    runs.log(session, run.id, run.attempt, "info", message)


def add_points(session: Session, run_id: str, principal: Principal, batch: PointColumns) -> Stored:
    """Store a batch of points, unless it is stored already.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
    """
    run = _external(session, run_id, principal)
    source = _next(session, run, batch)
    if source is None:
        return _answer_again(session, run, batch)
    kept, dropped = separate(session, run, batch)
    if batch.n_episodes is not None:  # as the points before them
        frames_per_step = run.frames / run.agent_steps if run.agent_steps else 1.0
        kept = {name: with_frames(columns, max(1.0, frames_per_step)) for name, columns in kept.items()}
    parts = {"progress", *("series/" + name.split("/")[0] for name in kept), *(["log"] if dropped else [])}
    if run.return_metric in kept:  # charts of the return show it under its own name
        parts.add("series/" + EPISODE_RETURN.split("/")[0])
    revision = runs.touch(session, run, parts)
    if kept:
        run.points_at = database_now(session)
        stored, scored_by = repository.step_units(session, run.id), run.return_metric
        units: Mapping[str, str] = stored
        if not kept.keys() <= stored.keys() or (scored_by is None and EPISODE_RETURN in stored):
            units = interpret(session, run, {*stored, *kept})
        advance(run, kept, units)
        complete = {(name, ""): with_episodes(run, name, kept, units) for name in kept}
        if metrics.append_columns(session, run.id, run.attempt, revision, complete):
            runs.publish(session, run, ["metrics"])
        stored = dict.fromkeys(kept, "agent_steps") | stored
        changed = {name: unit for name, unit in units.items() if stored[name] != unit}
        repository.set_step_units(session, run.id, changed)
        if run.return_metric in kept or run.return_metric != scored_by:
            score(session, run)
        mark_early(session, run)
    n_dropped = sum(part.rows for part in dropped)
    if n_dropped:
        log_dropped(session, run, source, dropped)
    _record_contact(session, run)
    return Stored(
        sequence=batch.sequence,
        stored=batch.rows - n_dropped,
        dropped=n_dropped,
        dropped_rows=dropped,
        dropped_in_all=source.dropped,
    )


def add_histograms(session: Session, run_id: str, principal: Principal, batch: HistogramsBatch) -> Stored:
    """Store a batch of histograms, unless it is stored already.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
    """
    events = [HistogramEvent(**sent.model_dump()) for sent in batch.histograms]
    first = batch.histograms[0].metric if batch.histograms else ""

    def add(run: Run) -> int:
        runs.touch(session, run, [media.PART])
        return media.add_histograms(session, run, run.attempt, events)

    return add_media(session, run_id, principal, batch, add, len(events), first)


def add_media(
    session: Session,
    run_id: str,
    principal: Principal,
    batch: NumberedBatch,
    add: Callable[[Run], int],
    n_items: int,
    metric: str,
) -> Stored:
    """Add the histograms, images or tables of a batch to the locked run, unless it is stored already.

    Args:
        session: a writing session.
        run_id: the run.
        principal: who sends it.
        batch: what is sent.
        add: adds them to the locked run, and returns how many it has no room for.
        n_items: how many there are.
        metric: that of the first.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
    """
    run = _external(session, run_id, principal)
    source = _next(session, run, batch)
    if source is None:
        return _answer_again(session, run, batch)
    n_dropped = add(run)
    _record_contact(session, run)
    answer = _answer(batch, source, n_items - n_dropped)
    if not n_dropped:
        return answer
    source.dropped += n_dropped
    row = DroppedRows(reason="too_many_media", rows=n_dropped, metric=metric, agent_steps=run.agent_steps)
    changes = {"dropped": n_dropped, "dropped_rows": [row], "dropped_in_all": source.dropped}
    return answer.model_copy(update=changes)


def add_lines(session: Session, run_id: str, principal: Principal, batch: LogBatch) -> Stored:
    """Store a batch of log lines, unless it is stored already.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
    """
    run = _external(session, run_id, principal)
    source = _next(session, run, batch)
    if source is None:
        return _answer_again(session, run, batch)
    runs.touch(session, run, ["log"])
    runs.add_log_lines(session, run.id, run.attempt, map(_line, batch.lines))
    _raise_alerts(session, run, [line for line in batch.lines if line.alert is not None])
    _record_contact(session, run)
    return _answer(batch, source, len(batch.lines))


def add_config(session: Session, run_id: str, principal: Principal, batch: ConfigBatch) -> Stored:
    """Add to the config of a run what its script has learnt, unless that is stored already.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
        InvalidSpec: a setting is invalid, or the config would have too many; nothing is stored.
    """
    run = _external(session, run_id, principal)
    source = _next(session, run, batch)
    if source is None:
        return _answer_again(session, run, batch)
    require_storable(batch)
    describe(run, batch.model_dump(mode="json", exclude={"source", "sequence"}))
    if batch.return_metric is not None:
        run.return_metric = batch.return_metric
        score(session, run)
    if batch.step_unit is not None:
        run.step_unit = batch.step_unit
        stored = repository.step_units(session, run.id)
        repository.set_step_units(session, run.id, series_units(stored.keys(), batch.step_unit))
    runs.touch(session, run)
    _record_contact(session, run)
    return _answer(batch, source, 1)


def add_provenance(
    session: Session, run_id: str, principal: Principal, batch: ProvenanceBatch, *, records: bool
) -> Stored:
    """Store where a process came from, and what it has printed, unless that is stored already.

    Args:
        session: the database.
        run_id: the run.
        principal: who sends it.
        batch: what is sent.
        records: whether the installation stores such things; otherwise it counts as stored.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
    """
    run = _external(session, run_id, principal)
    source = _next(session, run, batch)
    if source is None:
        return _answer_again(session, run, batch)
    if records:
        process = repository.process(session, run.id, batch.source)
        if process is None:
            process = repository.add_process(session, run.id, batch.source, MAX_PROCESSES)
        if batch.provenance is not None:
            process.provenance = batch.provenance.model_dump(mode="json", exclude={"diff"})
            process.diff = batch.provenance.diff
        process.output = (process.output + batch.output)[-MAX_OUTPUT_CHARACTERS:]
        runs.touch(session, run, ["processes"] if batch.provenance is None else [])
    _record_contact(session, run)
    return _answer(batch, source, int(records))


def process(session: Session, run_id: str, source: str) -> ScriptProcess:
    """Where a process of a run came from.

    Raises:
        NotFound: there is no such run, or nothing is known of this process.
    """
    row = repository.process(session, runs.get(session, run_id).id, source)
    if row is None:
        raise NotFound(f"nothing is known of process {source} of run {run_id}")
    return row


def change(session: Session, run_id: str, changes: Mapping[str, Any]) -> Run:
    """Change fields that can change in any state; an external run is scored anew by another return metric.

    Raises:
        NotFound: there is no such run.
        Overwritten: a field has another value than the one in `expected`.
        Invalid: the run has no such metric, or is trained by Callboard.
    """
    others = {name: value for name, value in changes.items() if name not in ("return_metric", "expected")}
    run = actions.change(session, run_id, others, changes.get("expected"))
    if "return_metric" not in changes:
        return run
    if run.origin != EXTERNAL:
        message = f"only an external run can have another one: this run is scored by {EPISODE_RETURN}"
        raise Invalid.field("return_metric", message)
    metric, names = changes["return_metric"], repository.step_units(session, run.id)
    if metric is not None and metric not in names:
        raise Invalid.field("return_metric", f"the run has no metric {quoted(metric)}")
    run.spec = run.spec | {"return_metric": metric}
    run.return_metric = metric or return_metric(names)
    score(session, run)
    runs.touch(session, run)
    return run


def add_file(
    session: Session, run_id: str, principal: Principal, batch: NumberedBatch, add: Callable[[Run], None]
) -> Stored:
    """Add what a batch with a file consists of to the locked run, unless it is stored already.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
    """
    run = _external(session, run_id, principal)
    source = _next(session, run, batch)
    if source is None:
        return _answer_again(session, run, batch)
    add(run)
    _record_contact(session, run)
    return _answer(batch, source, 1)


def external_run(session: Session, run_id: str, principal: Principal, *, for_update: bool = False) -> Run:
    """An external run that the user may write.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or cannot be read.
    """
    run = runs.get(session, run_id, for_update=for_update)
    runs.require_readable(run)
    is_own = run.token_id == principal.credential.id
    if principal.only_external_runs and not is_own:
        raise Forbidden("the run was not created with this token, which can write only its own external runs")
    if run.origin != EXTERNAL:
        detail = "the run is trained by Callboard: only external runs are written over REST"
        raise Conflict(detail, code="run_not_external")
    if run.runs_here and not is_own:
        raise Conflict("the run is that of a host's command, which alone writes it", code="run_of_command")
    return run


def lose(session: Session, run: Run) -> None:
    """End the lease of a locked run whose script no longer sends anything: it is lost, or stopped if that was
    requested."""
    silent = "its script has stopped sending data"
    if run.state == RunState.STOPPING:
        runs.transition(session, run, RunState.STOPPED, f"a stop was requested, and {silent}")
    else:
        runs.transition(session, run, RunState.LOST, silent)


def _external(session: Session, run_id: str, principal: Principal, rewind_to: int | None = None) -> Run:
    """The run, locked. Of a host's command, the first that an attempt sends sets aside what earlier ones have
    logged: all of it, unless the script continues from `rewind_to`."""
    run = external_run(session, run_id, principal, for_update=True)
    if run.runs_here:
        attempt = session.get_one(Attempt, (run.id, run.attempt))
        if not attempt.has_resumed or rewind_to is not None:
            attempt.has_resumed, attempt.resumed_from_agent_steps = True, rewind_to or 0
            _rewind(session, run, rewind_to or 0)
    return run


def _next(session: Session, run: Run, batch: PointColumns | NumberedBatch) -> ExternalSource | None:
    """The source of the next batch, which then counts as stored; None if it is stored already.

    Raises:
        Conflict: a batch before it is missing, or the run has too many sources.
    """
    source = repository.source(session, run.id, batch.source)
    expected = (source.sequence if source else 0) + 1
    if batch.sequence < expected:
        return None
    if batch.sequence > expected:
        problem = FieldProblem(field="sequence", message=f"must be {expected}, got {batch.sequence}")
        detail = f"batch {expected} of source {batch.source} must be sent first"
        raise Conflict(detail, [problem], code="batch_missing", expected=expected)
    if source is None:
        if repository.count_sources(session, run.id) >= MAX_SOURCES:
            problem = FieldProblem(field="source", message=f"the run has {MAX_SOURCES:,} already")
            detail = f"a run may have {MAX_SOURCES:,} sources: create a new run"
            raise Conflict(detail, [problem], code="too_many_sources")
        source = repository.add_source(session, run.id, batch.source)
    source.sequence = batch.sequence
    return source


def _answer_again(session: Session, run: Run, batch: PointColumns | NumberedBatch) -> Stored:
    """The answer for a batch that is stored already."""
    source = repository.source(session, run.id, batch.source)
    _record_contact(session, run)
    return Stored(
        sequence=source.sequence if source else 0,
        stored=0,
        dropped=0,
        dropped_rows=[],
        dropped_in_all=source.dropped if source else 0,
    )


def _answer(batch: NumberedBatch, source: ExternalSource, rows: int) -> Stored:
    """The answer for a batch of which nothing is dropped."""
    return Stored(
        sequence=batch.sequence, stored=rows, dropped=0, dropped_rows=[], dropped_in_all=source.dropped
    )


def _record_contact(session: Session, run: Run, reason: str | None = None) -> None:
    """Record that the script of a run is alive; of a command its worker knows."""
    if run.runs_here:
        return
    if run.state == RunState.LOST:
        runs.transition(session, run, RunState.RUNNING, reason or "its script sends data again")
    if run.state not in ENDED:
        run.lease_expires_at = database_now(session) + timedelta(seconds=HEARTBEAT_S)


def _raise_alerts(session: Session, run: Run, lines: Sequence[SentLine]) -> None:
    """Leave the alerts among the lines of a locked run to workers."""
    room = MAX_WAITING_ALERTS - repository.count_signals(session, run.id) if lines else 0
    for line in lines[: max(0, room)]:
        record_signal(
            session,
            "script",
            run.id,
            attempt=run.attempt,
            agent_steps=run.agent_steps if line.agent_steps is None else line.agent_steps,
            level="info" if line.level == "debug" else line.level,
            title=line.alert or "",
            text=line.message,
        )


def _line(line: SentLine) -> dict[str, Any]:
    time: datetime = line.time
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    message = ": ".join(filter(None, (line.alert, line.message)))
    return {"time": aware, "level": line.level, "message": message, "agent_steps": line.agent_steps}
