"""X axes that points do not carry: updates and clock time.

Apart from `charts`, because the curves of groups and the places of changes and checkpoints need them too.

Updates are exact at checkpoints and at the run's latest report, and interpolated by agent steps between them.

Clock time counts from the start of a run's training. It passes as training time does, and also in
evaluations, saves and interruptions. How much passed there is known at the next checkpoint or start of an
attempt, and lies between the last point before it and the first one after it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from backend.db import Run
from backend.runs.checkpoints import repository as checkpoints
from backend.runs.checkpoints.repository import CheckpointCounters
from backend.runs.runs.repository import TrainingStart, training_starts
from backend.statistics.columns import Array

STORED_FOR = {"updates": "agent_steps", "clock_time_s": "wall_time_s"}
"""The stored column from which each of these axes is computed."""


def stored_column(x: str) -> str:
    """The column of points that an x axis is read or computed from."""
    return STORED_FOR.get(x, x)


@dataclass(frozen=True)
class Conversion:
    """A run's x as a function of a stored column: linear between known places."""

    stored: Array
    """f8[n], ascending, n > 0."""
    x: Array
    """f8[n], not descending."""
    slope: float
    """Outside the known places."""

    def x_of(self, stored: Array) -> Array:
        """The x at values of the stored column; never below 0."""
        values = np.asarray(stored, "f8")
        beyond = np.maximum(values - self.stored[-1], 0) + np.minimum(values - self.stored[0], 0)
        return np.asarray(np.maximum(np.interp(values, self.stored, self.x) + self.slope * beyond, 0.0))

    def stored_of(self, x: float) -> float:
        """The largest value of the stored column that lies at this x."""
        beyond = max(x - float(self.x[-1]), 0.0) + min(x - float(self.x[0]), 0.0)
        return float(np.interp(x, self.x, self.stored)) + beyond / (self.slope or 1.0)


def conversions(session: Session, run_ids: Iterable[str], x: str) -> dict[str, Conversion]:
    """By run id, how x is computed; empty for an axis that points carry."""
    ids = list(dict.fromkeys(run_ids))
    if x not in STORED_FOR or not ids:
        return {}
    saved: dict[str, list[CheckpointCounters]] = {run_id: [] for run_id in ids}
    for checkpoint in checkpoints.counters(session, ids):
        saved[checkpoint.run_id].append(checkpoint)
    runs = [session.get_one(Run, run_id) for run_id in ids]
    if x == "updates":
        return {run.id: updates_by_agent_steps(run, saved[run.id]) for run in runs}
    starts: dict[str, list[TrainingStart]] = {run_id: [] for run_id in ids}
    for start in training_starts(session, ids):
        starts[start.run_id].append(start)
    return {run.id: clock_by_training_time(run, saved[run.id], starts[run.id]) for run in runs}


def runs_with_changed_x(
    session: Session, run_ids: Iterable[str], x: str, since: Mapping[str, int]
) -> set[str]:
    """The runs whose rows may have had another x at these revisions of the runs: each report, checkpoint and
    start of an attempt can change an x that is computed."""
    if x not in STORED_FOR:
        return set()
    return {run_id for run_id in run_ids if session.get_one(Run, run_id).revision > since[run_id]}


def locator(session: Session, run_ids: Iterable[str], x: str) -> Callable[[Any], float | None]:
    """A function that returns the x of a run's row, such as a checkpoint; None if the row lacks it."""
    known = conversions(session, run_ids, x)
    column = stored_column(x)

    def located(row: Any) -> float | None:
        value = getattr(row, column, None)
        if value is None or row.run_id not in known:
            return value
        return float(known[row.run_id].x_of(np.array([value]))[0])

    return located


def updates_by_agent_steps(run: Run, saved: Sequence[CheckpointCounters]) -> Conversion:
    """A run's number of updates at its agent steps."""
    at = {checkpoint.agent_steps: checkpoint.updates for checkpoint in saved}
    at |= {run.agent_steps: run.updates}
    if run.forked_at_agent_steps is None:
        at |= {0: 0}
    stored = np.array(sorted(at), "f8")
    return Conversion(
        stored, np.maximum.accumulate(np.array([at[int(steps)] for steps in stored], "f8")), 0.0
    )


def clock_by_training_time(
    run: Run, saved: Sequence[CheckpointCounters], starts: Sequence[TrainingStart]
) -> Conversion:
    """A run's clock time, as a function of its training time: seconds since its training started."""
    time_of_steps = {checkpoint.agent_steps: checkpoint.wall_time_s for checkpoint in saved} | {0: 0.0}
    # Moments of which the database has the clock time: when a checkpoint was saved, an attempt started.
    moments: list[tuple[float, datetime]] = [
        # A fork's first checkpoint is a copy, which was added before its training.
        (checkpoint.wall_time_s, checkpoint.recorded_at)
        for checkpoint in saved
        if checkpoint.attempt > 0
    ]
    moments += [
        (time_of_steps[start.resumed_from_agent_steps], start.time)
        for start in starts
        if start.resumed_from_agent_steps in time_of_steps
    ]
    origin = min([start.time for start in starts], default=run.started_at or run.created_at)
    known = sorted((trained_s, (time - origin).total_seconds()) for trained_s, time in moments)
    trained_s, clock_s = known[0] if known else (0.0, 0.0)
    clock_at = {trained_s: clock_s}
    for next_trained_s, recorded_s in known[1:]:
        # The clock never runs backwards. While the run trains, it runs as fast as the training time, or
        # slower if less time was recorded.
        next_clock_s = max(clock_s, recorded_s)
        trained_until_s = min(clock_s + next_trained_s - trained_s, next_clock_s)
        if next_trained_s > trained_s:
            clock_at[next_trained_s] = trained_until_s
        # The rest passed without training, between the last point before this moment and the next: a step.
        if next_clock_s > trained_until_s:
            clock_at[float(np.nextafter(next_trained_s, np.inf))] = next_clock_s
        trained_s, clock_s = next_trained_s, next_clock_s
    return Conversion(np.array(list(clock_at)), np.array(list(clock_at.values())), 1.0)


def convert(stored: Array, conversion: Conversion | None) -> Array:
    """The x at values of the stored column; these themselves for an axis that points carry."""
    return stored if conversion is None else conversion.x_of(stored)
