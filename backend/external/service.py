"""What the scripts of external runs send: heartbeats, points, episodes and log lines, each exactly once.

A batch names the process that writes it and its number. The number of the last stored batch is committed with
its rows, under a lock of the run: a batch that is sent again changes nothing.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics.catalogue import EPISODE_RETURN
from backend.analysis.metrics.chunks import Array, Columns, n_rows
from backend.analysis.metrics.early import mark_early
from backend.db import ExternalSource, Run, ScriptProcess
from backend.db.clock import database_now
from backend.db.run import averaged_rate
from backend.external import repository
from backend.external.columns import EPISODE_LENGTH, PointColumns, in_order, with_frames
from backend.external.schemas import (
    ConfigBatch,
    DroppedRows,
    DropReason,
    Heartbeat,
    HeartbeatOut,
    LogBatch,
    NumberedBatch,
    ProvenanceBatch,
    SentLine,
    Stored,
)
from backend.platform.errors import Conflict, Forbidden, Invalid, NotFound
from backend.platform.principals import Principal
from backend.runs.runs import actions
from backend.runs.runs import service as runs
from backend.runs.runs.external import HEARTBEAT_S, describe, require_storable
from backend.runs.runs.script_provenance import MAX_OUTPUT_CHARACTERS
from backend.specs.problems import FieldProblem, quoted
from backend.specs.run_fields import EXTERNAL, SCORE_EPISODES
from backend.specs.states import ENDED, RunState
from callboard.known_tags import is_per_episode, return_metric, run_unit, series_units

ROLLOUT = "rollout/"
"""Section of the metrics that runs are compared by: others never take their room."""
MAX_SERIES = 5_000
"""Maximum number of metrics of a run in sections other than `ROLLOUT`."""
MAX_ROLLOUT_SERIES = 500
"""Maximum number of metrics of a run in the section `ROLLOUT`."""
MAX_SOURCES = 1_000
"""Maximum number of processes that write a run, one after another or together."""
MAX_PROCESSES = 100
"""Maximum number of processes of a run of which it is kept where they came from."""
_SCORE_CHUNKS = 32
"""Maximum number of chunks of a metric that are read for a score, where its last values are not finite."""


def heartbeat(session: Session, run_id: str, principal: Principal, body: Heartbeat) -> HeartbeatOut:
    """Record that a script is running, or has ended.

    Raises:
        NotFound: there is no such run.
        Forbidden: the token may only write the runs that it has created.
        Conflict: it is not an external run.
        Invalid: the script resumes or rewinds a run that it ends.
    """
    run = _external(session, run_id, principal)
    state = RunState(body.state)
    resumes = body.resume or body.rewind_to is not None
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
    if body.rewind_to is not None:
        _rewind(session, run, body.rewind_to)
    _record_contact(session, run, body.reason)
    return _heard(run, stop_requested=run.stop_requested is not None)


def _heard(run: Run, *, stop_requested: bool) -> HeartbeatOut:
    reached = {name: getattr(run, name) for name in ("state", "agent_steps", "wall_time_s", "step_unit")}
    return HeartbeatOut.model_validate(reached | {"stop_requested": stop_requested})


def _rewind(session: Session, run: Run, agent_steps: int) -> None:
    """Set aside what a locked run has after these agent steps, as an attempt from a checkpoint does."""
    # From the beginning, even a point at step 0 is logged again.
    after = agent_steps or -1
    repository.supersede_checkpoints(session, run.id, after)  # they may be ahead of the points
    if run.agent_steps <= after or not (run.agent_steps or _has_points(session, run)):
        return
    before = run.agent_steps
    metrics.cut(session, run.id, after, runs.touch(session, run))
    run.agent_steps = agent_steps
    run.frames, run.wall_time_s, run.episodes = _reached(session, run)
    _score(session, run)
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
    kept, dropped = _separate(session, run, batch)
    if batch.n_episodes is not None:  # as the points before them
        frames_per_step = run.frames / run.agent_steps if run.agent_steps else 1.0
        kept = {name: with_frames(columns, max(1.0, frames_per_step)) for name, columns in kept.items()}
    parts = {"progress", *("series/" + name.split("/")[0] for name in kept), *(["log"] if dropped else [])}
    if run.return_metric in kept:  # charts of the return show it under its own name
        parts.add("series/" + EPISODE_RETURN.split("/")[0])
    revision = runs.touch(session, run, parts)
    if kept:
        stored, scored_by = repository.step_units(session, run.id), run.return_metric
        units: Mapping[str, str] = stored
        if not kept.keys() <= stored.keys() or (scored_by is None and EPISODE_RETURN in stored):
            units = _interpret(session, run, {*stored, *kept})
        _advance(run, kept, units)
        complete = {(name, ""): _with_episodes(run, name, kept, units) for name in kept}
        if metrics.append_columns(session, run.id, run.attempt, revision, complete):
            runs.publish(session, run, ["metrics"])
        stored = dict.fromkeys(kept, "agent_steps") | stored
        changed = {name: unit for name, unit in units.items() if stored[name] != unit}
        repository.set_step_units(session, run.id, changed)
        if run.return_metric in kept or run.return_metric != scored_by:
            _score(session, run)
        mark_early(session, run)
    n_dropped = sum(part.rows for part in dropped)
    if n_dropped:
        _log_dropped(session, run, source, dropped)
    _record_contact(session, run)
    return Stored(
        sequence=batch.sequence,
        stored=batch.rows - n_dropped,
        dropped=n_dropped,
        dropped_rows=dropped,
        dropped_in_all=source.dropped,
    )


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
        _score(session, run)
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
    _score(session, run)
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
    """Record that the script of a run is alive."""
    if run.state == RunState.LOST:
        runs.transition(session, run, RunState.RUNNING, reason or "its script sends data again")
    if run.state not in ENDED:
        run.lease_expires_at = database_now(session) + timedelta(seconds=HEARTBEAT_S)


def _separate(
    session: Session, run: Run, batch: PointColumns
) -> tuple[dict[str, Columns], list[DroppedRows]]:
    """By metric, the columns that can be stored, and what cannot, by reason."""
    last = repository.furthest(session, run.id, list(batch.series))
    kept, dropped = {}, _DroppedByReason(of_episodes=batch.n_episodes is not None)
    known: _Metrics | None = None
    for name, columns in batch.series.items():
        if name not in last:
            known = known or _Metrics(repository.series_names(session, run.id))
            if not known.add(name):
                dropped.add("too_many_metrics", n_rows(columns), name, 0)
                continue
        accepted = in_order(columns, last.get(name, 0))
        n_dropped = n_rows(columns) - n_rows(accepted)
        if n_dropped:
            reached = max(last.get(name, 0), int(columns["agent_steps"].max()))
            dropped.add("agent_steps_decrease", n_dropped, name, reached)
        if n_rows(accepted):
            kept[name] = accepted
    return kept, dropped.rows()


class _Metrics:
    """The metrics of a run, and the room that it has for more."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = set(names)
        self._n_rollout = sum(name.startswith(ROLLOUT) for name in names)

    def add(self, name: str) -> bool:
        """Add a metric; False if there is no room. Those of episodes always have room."""
        if name in self._names:
            return True
        is_rollout = name.startswith(ROLLOUT)
        n, most = self._n_rollout, MAX_ROLLOUT_SERIES
        if not is_rollout:
            n, most = len(self._names) - self._n_rollout, MAX_SERIES
        if n >= most and name not in (EPISODE_RETURN, EPISODE_LENGTH):
            return False
        self._names.add(name)
        self._n_rollout += is_rollout
        return True


class _DroppedByReason:
    """Counts of rows, with the first metric of each reason."""

    def __init__(self, *, of_episodes: bool) -> None:
        self._parts: dict[str, DroppedRows] = {}
        self._of_episodes = of_episodes

    def add(self, reason: DropReason, n: int, metric: str, agent_steps: int) -> None:
        part = self._parts.get(reason)
        if part is None:
            self._parts[reason] = DroppedRows(reason=reason, rows=n, metric=metric, agent_steps=agent_steps)
        elif self._of_episodes:
            part.rows = max(part.rows, n)  # of an episode, which is one row, two metrics are dropped
        else:
            part.rows += n

    def rows(self) -> list[DroppedRows]:
        return list(self._parts.values())


def _interpret(session: Session, run: Run, names: Collection[str]) -> Mapping[str, str]:
    """Derive from all metrics of a locked run how it is scored and what its steps count, unless its script
    has specified these. Return what the steps of each metric count."""
    if not run.spec.get("return_metric"):
        run.return_metric = return_metric(names) or run.return_metric
    if not run.spec.get("step_unit"):
        run.step_unit = run_unit(names)
    return series_units(names, "iterations" if run.step_unit == "iterations" else "agent_steps")


def _counts_episodes(run: Run, metric: str) -> bool:
    """Whether each value of the metric is a finished episode."""
    return metric == run.return_metric and bool(is_per_episode(metric))


def _with_episodes(run: Run, name: str, kept: Mapping[str, Columns], units: Mapping[str, str]) -> Columns:
    """The columns of a metric with the number of finished episodes at each point; the run already counts
    those of these columns."""
    columns = kept[name]
    returns = next((metric for metric in kept if _counts_episodes(run, metric)), None)
    if returns is None or units[returns] != units[name]:
        return columns | {"episodes": np.full(n_rows(columns), run.episodes, "<i8")}
    ended_at = kept[returns]["agent_steps"]
    if name == returns:
        n = np.arange(1, len(ended_at) + 1, dtype="<i8")
    else:
        n = np.searchsorted(ended_at, columns["agent_steps"], side="right").astype("<i8")
    return columns | {"episodes": run.episodes - len(ended_at) + n}


def _advance(run: Run, kept: Mapping[str, Columns], units: Mapping[str, str]) -> None:
    """Update the progress of a locked run."""
    counted = {name: columns for name, columns in kept.items() if units[name] == run.step_unit}
    steps = max([run.agent_steps, *(int(columns["agent_steps"][-1]) for columns in counted.values())])
    wall_time_s = max(run.wall_time_s, *(float(columns["wall_time_s"].max()) for columns in kept.values()))
    passed_s = wall_time_s - run.wall_time_s
    if passed_s > 0 and run.wall_time_s > 0:
        rate = (steps - run.agent_steps) / passed_s
        run.agent_steps_per_s = averaged_rate(run.agent_steps_per_s, rate, passed_s, wall_time_s)
    run.agent_steps, run.wall_time_s = steps, wall_time_s
    if run.step_unit == "agent_steps":
        run.frames = max([run.frames, *(int(columns["frames"].max()) for columns in counted.values())])
    run.episodes += sum(n_rows(columns) for name, columns in kept.items() if _counts_episodes(run, name))


def _score(session: Session, run: Run) -> None:
    """Update a run's score and best return: the mean of the last 100 returns, or the last of a metric whose
    values are means already."""
    if run.return_metric is None:
        run.score = run.best_return = None
        return
    n = 1 if is_per_episode(run.return_metric) is False else SCORE_EPISODES
    values = _last_finite(session, run.id, run.return_metric, n)
    run.score = float(values.mean()) if len(values) else None
    run.best_return = repository.largest_value(session, run.id, run.return_metric)


def _has_points(session: Session, run: Run) -> bool:
    return any(row.n_points for row in metrics.list_series(session, [run.id]))


def _reached(session: Session, run: Run) -> tuple[int, float, int]:
    """Frames, wall time and episodes that the points of a locked run reach, without those set aside."""
    series = [row for row in metrics.list_series(session, [run.id]) if row.n_points]
    chunks = metrics.live_chunks(session, [row.id for row in series])
    last = [chunks[row.id][-1] for row in series if chunks[row.id]]
    points = metrics.points_of(session, last, ("frames", "wall_time_s")).values()
    frames = max((int(columns["frames"].max()) for columns in points), default=0)
    wall_time_s = max((float(columns["wall_time_s"].max()) for columns in points), default=0.0)
    episodes = sum(row.n_points for row in series if row.source == "" and _counts_episodes(run, row.metric))
    return frames, wall_time_s, episodes


def _last_finite(session: Session, run_id: str, metric: str, n: int) -> Array:
    """The last `n` finite values of a metric, in order; fewer if it has fewer in its last chunks."""
    values = [np.zeros(0)]
    for row in metrics.list_series(session, [run_id], [metric]):
        for chunk in reversed(metrics.live_chunks(session, [row.id])[row.id][-_SCORE_CHUNKS:]):
            if sum(map(len, values)) >= n:
                break
            stored = metrics.points_of(session, [chunk], ("value",))[chunk.id]["value"]
            values.insert(0, stored[np.isfinite(stored)])
    return np.concatenate(values)[-n:]


def _log_dropped(session: Session, run: Run, source: ExternalSource, dropped: Sequence[DroppedRows]) -> None:
    """Log rows that were dropped: the first, and again whenever their number has one more digit."""
    before = source.dropped
    source.dropped += sum(part.rows for part in dropped)
    if before and int(math.log10(before)) == int(math.log10(source.dropped)):
        return
    reasons = "; ".join(
        f"{part.rows:,} of {part.metric} and others, because the run has its maximum of metrics"
        if part.reason == "too_many_metrics"
        else f"{part.rows:,} of {part.metric} and others, behind the {part.agent_steps:,} agent steps reached"
        for part in dropped
    )
    message = f"{source.dropped:,} rows of source {source.source} have been dropped; the latest: {reasons}"
    runs.log(session, run.id, run.attempt, "warning", message)


def _line(line: SentLine) -> dict[str, Any]:
    time: datetime = line.time
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return {"time": aware, "level": line.level, "message": line.message, "agent_steps": line.agent_steps}
