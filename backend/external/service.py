"""What the scripts of external runs send: heartbeats, points, episodes and log lines, each exactly once.

A batch names the process that writes it and its number. The number of the last stored batch is committed with
its rows, under a lock of the run: a batch that is sent again changes nothing.
"""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from backend.db import ExternalSource, Run
from backend.db.clock import database_now
from backend.db.run import averaged_rate
from backend.errors import Conflict, Forbidden
from backend.external import repository
from backend.external.columns import PointColumns, in_order
from backend.external.schemas import Heartbeat, HeartbeatOut, LogBatch, NumberedBatch, SentLine, Stored
from backend.metrics import repository as metrics
from backend.metrics.catalogue import EPISODE_RETURN
from backend.metrics.chunks import Array, Columns, n_rows
from backend.principals import Principal
from backend.runs import service as runs
from backend.runs.external import HEARTBEAT_S
from backend.specs.problems import FieldProblem
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import ENDED, RunState

MAX_SERIES = 5_000
"""Maximum number of metrics of a run."""
MAX_SOURCES = 1_000
"""Maximum number of processes that write a run, one after another or together."""
SCORE_EPISODES = 100


def heartbeat(session: Session, run_id: str, principal: Principal, body: Heartbeat) -> HeartbeatOut:
    """Record that a script is running, or has ended.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run.
    """
    run = _external(session, run_id, principal)
    state = RunState(body.state)
    if state != RunState.RUNNING:
        if run.state != state:
            runs.transition(session, run, state, body.reason or f"its script reports {state}")
            run.error = body.reason if state == RunState.FAILED else None
    elif run.state in ENDED:
        run.archived = False
        run.error = None
        runs.transition(session, run, state, body.reason or "resumed by its script")
    _sent(session, run, body.reason)
    return HeartbeatOut(state=RunState(run.state), stop_requested=run.stop_requested is not None)


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
        return _known(session, run, batch)
    kept, dropped = _accepted(session, run, batch.series)
    parts = {"series/" + name.split("/")[0] for name in kept} | ({"log"} if dropped else set())
    revision = runs.touch(session, run, parts)
    if kept:
        _advance(run, kept)
        complete = {(name, ""): _with_episodes(run, name, columns) for name, columns in kept.items()}
        if metrics.append_columns(session, run.id, run.attempt, revision, complete):
            runs.publish(session, run, ["metrics"])
        if EPISODE_RETURN in kept:
            _score(session, run, kept[EPISODE_RETURN])
    n_dropped = sum(dropped.values())
    if n_dropped:
        _log_dropped(session, run, source, dropped)
    _sent(session, run)
    return Stored(sequence=batch.sequence, stored=batch.rows - n_dropped, dropped=n_dropped)


def add_lines(session: Session, run_id: str, principal: Principal, batch: LogBatch) -> Stored:
    """Store a batch of log lines, unless it is stored already.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run, or a batch is missing before this one.
    """
    run = _external(session, run_id, principal)
    if _next(session, run, batch) is None:
        return _known(session, run, batch)
    runs.touch(session, run, ["log"])
    runs.add_log_lines(session, run.id, run.attempt, map(_line, batch.lines))
    _sent(session, run)
    return Stored(sequence=batch.sequence, stored=len(batch.lines), dropped=0)


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
    if _next(session, run, batch) is None:
        return _known(session, run, batch)
    add(run)
    _sent(session, run)
    return Stored(sequence=batch.sequence, stored=1, dropped=0)


def external_run(session: Session, run_id: str, principal: Principal, *, for_update: bool = False) -> Run:
    """An external run that the user may write.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run.
    """
    run = runs.get(session, run_id, for_update=for_update)
    if principal.only_external_runs and run.token_id != principal.credential.id:
        raise Forbidden("the run was not created with this token, which can write only its own external runs")
    if run.origin != EXTERNAL:
        detail = "the run is trained by Callboard: only external runs are written over REST"
        raise Conflict(detail, code="run_not_external")
    return run


def lose(session: Session, run: Run) -> None:
    """End the lease of a locked run whose script no longer sends anything: it is lost, or stopped if that was
    requested."""
    silent = "its script has stopped sending data"
    if run.state == RunState.STOPPING:
        runs.transition(session, run, RunState.STOPPED, f"a stop was requested, and {silent}")
    else:
        runs.transition(session, run, RunState.LOST, silent)


def _external(session: Session, run_id: str, principal: Principal) -> Run:
    """The run, locked."""
    return external_run(session, run_id, principal, for_update=True)


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


def _known(session: Session, run: Run, batch: PointColumns | NumberedBatch) -> Stored:
    """The answer for a batch that is stored already."""
    source = repository.source(session, run.id, batch.source)
    _sent(session, run)
    return Stored(sequence=source.sequence if source else 0, stored=0, dropped=0)


def _sent(session: Session, run: Run, reason: str | None = None) -> None:
    """Record that the script of a run is alive."""
    if run.state == RunState.LOST:
        runs.transition(session, run, RunState.RUNNING, reason or "its script sends data again")
    if run.state not in ENDED:
        run.lease_expires_at = database_now(session) + timedelta(seconds=HEARTBEAT_S)


def _accepted(
    session: Session, run: Run, series: Mapping[str, Columns]
) -> tuple[dict[str, Columns], dict[str, int]]:
    """By metric, the columns that can be stored and how many rows cannot."""
    last = repository.furthest(session, run.id, list(series))
    kept, dropped = {}, {}
    known: set[str] | None = None
    for name, columns in series.items():
        if name not in last:
            known = repository.series_names(session, run.id) if known is None else known
            if name not in known and len(known) >= MAX_SERIES:
                dropped[name] = n_rows(columns)
                continue
            known.add(name)
        found = in_order(columns, last.get(name, 0))
        if n_rows(found) < n_rows(columns):
            dropped[name] = n_rows(columns) - n_rows(found)
        if n_rows(found):
            kept[name] = found
    return kept, dropped


def _with_episodes(run: Run, name: str, columns: Columns) -> Columns:
    """The columns with the number of finished episodes at each point; the run already counts these."""
    n = n_rows(columns)
    first = run.episodes - n + 1 if name == EPISODE_RETURN else run.episodes
    step = 1 if name == EPISODE_RETURN else 0
    return columns | {"episodes": first + step * np.arange(n, dtype="<i8")}


def _advance(run: Run, kept: Mapping[str, Columns]) -> None:
    """Update the progress of a locked run."""
    steps = max(run.agent_steps, *(int(columns["agent_steps"][-1]) for columns in kept.values()))
    wall_time_s = max(run.wall_time_s, *(float(columns["wall_time_s"].max()) for columns in kept.values()))
    passed_s = wall_time_s - run.wall_time_s
    if passed_s > 0 and run.wall_time_s > 0:
        rate = (steps - run.agent_steps) / passed_s
        run.agent_steps_per_s = averaged_rate(run.agent_steps_per_s, rate, passed_s)
    run.agent_steps, run.wall_time_s = steps, wall_time_s
    run.frames = max(run.frames, *(int(columns["frames"].max()) for columns in kept.values()))
    if EPISODE_RETURN in kept:
        run.episodes += n_rows(kept[EPISODE_RETURN])


def _score(session: Session, run: Run, new: Columns) -> None:
    """Update a run's score and best return after new episode returns."""
    values = np.concatenate(_last_values(session, run.id, EPISODE_RETURN, SCORE_EPISODES))
    finite = values[-SCORE_EPISODES:][np.isfinite(values[-SCORE_EPISODES:])]
    run.score = float(finite.mean()) if len(finite) else None
    best = new["value"][np.isfinite(new["value"])]
    if len(best):
        run.best_return = float(max(best.max(), -math.inf if run.best_return is None else run.best_return))


def _last_values(session: Session, run_id: str, metric: str, n: int) -> list[Array]:
    """The last chunks of a metric with at least `n` values, if it has as many."""
    values: list[Array] = []
    for row in metrics.list_series(session, [run_id], [metric]):
        chunks = metrics.live_chunks(session, [row.id])[row.id]
        while chunks and sum(map(len, values)) < n:
            last = chunks.pop()
            values.insert(0, metrics.points_of(session, [last], ("value",))[last.id]["value"])
    return values


def _log_dropped(session: Session, run: Run, source: ExternalSource, dropped: Mapping[str, int]) -> None:
    """Log rows that were dropped, when their number has grown tenfold since the last line."""
    before = source.dropped
    source.dropped += sum(dropped.values())
    if before and int(math.log10(before)) == int(math.log10(source.dropped)):
        return
    names = ", ".join(list(dropped)[:3])
    message = (
        f"{source.dropped:,} points of source {source.source} have been dropped: their agent steps decrease, "
        f"or the run has more than {MAX_SERIES:,} metrics; the latest are of {names}"
    )
    runs.log(session, run.id, run.attempt, "warning", message)


def _line(line: SentLine) -> dict[str, Any]:
    time: datetime = line.time
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return {"time": aware, "level": line.level, "message": line.message, "agent_steps": line.agent_steps}
