"""Curves of formulas, and of metrics against another metric, of runs and of groups of seeds.

A formula is evaluated on the points of its metrics; of a series of more than `FINE_BUCKETS` points, on means
of 2, 4, 8, … consecutive ones. What a chart shows is then reduced and smoothed as any series is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.analysis.metrics.axes import Axes
from backend.analysis.metrics.charts import WINDOW, curves
from backend.analysis.metrics.formulas import Formula, Values, aligned, by_step
from backend.analysis.metrics.rollups import aggregate, not_finite
from backend.analysis.metrics.run_axes import conversions, convert
from backend.analysis.metrics.seed_groups import GroupGrid, GroupMember, smoothed_rows, whole_group
from backend.analysis.metrics.smoothing import average_over_x, average_windows, smooth_bucket_ends
from backend.db import Series
from backend.statistics.columns import Array, Columns, bucket_rows
from backend.statistics.grouping import Spread

FINE_BUCKETS = 2**15
"""Up to this many points of a series enter a formula one by one. Of a series of sixteen times as many and
more, only stored roll-ups are read."""

_X = "agent_steps"


@dataclass(frozen=True)
class RunValues:
    """The values of a formula over the training of one run."""

    run: str
    x: Array
    """Where each is drawn. In agent steps, if `across` is given."""
    y: Array
    across: Array | None = None
    """Of a chart against another metric, its values."""


@dataclass(frozen=True)
class ReadRun:
    """The series of one run that formulas need."""

    run: str
    series: Mapping[str, Values]
    """By metric."""
    places: Values | None
    """The x at each agent step that has a point; None where x is the agent steps themselves."""


def read_run(session: Session, run_id: str, rows: Sequence[Series], x: str) -> ReadRun:
    """Read series of one run, those as a whole, for formulas over this axis."""
    read = curves(session, rows, Axes(_X, FINE_BUCKETS))
    steps = {row.id: read[row.id].buckets[_X] for row in rows}
    series = {row.metric: by_step(steps[row.id], read[row.id].buckets["mean"]) for row in rows}
    if x == _X or not rows:
        return ReadRun(run_id, series, None)
    placed = curves(session, rows, Axes(x, FINE_BUCKETS))
    every_step = np.concatenate([np.maximum.accumulate(steps[row.id]) for row in rows])
    every_x = np.concatenate([placed[row.id].buckets[x] for row in rows]).astype("<f8")
    order = np.lexsort((every_x, every_step))
    is_last = np.append(np.diff(every_step[order]) > 0, [True] * bool(len(order)))
    return ReadRun(run_id, series, Values(every_step[order][is_last], every_x[order][is_last]))


def evaluate(read: ReadRun, formula: Formula, x_metric: str | None = None) -> RunValues:
    """The values of a formula, all of whose metrics the run has, on the axis of the reading or against a
    metric."""
    steps, y = formula.evaluate(read.series)
    if x_metric is not None:
        steps, y, across = aligned(Values(steps, y), read.series[x_metric])
        has_place = np.isfinite(y) & np.isfinite(across)
        y, across = (np.where(has_place, values, np.nan) for values in (y, across))
        return RunValues(read.run, steps, y, across)
    if read.places is None:
        return RunValues(read.run, steps, y)
    return RunValues(read.run, read.places.values[np.searchsorted(read.places.steps, steps)], y)


def reduce(rows: RunValues, axes: Axes) -> tuple[Columns, int]:
    """At most `max_points` buckets of the rows in the shown range, with `x`, and their number of rows; with
    the columns that `charts.curves` has. Those against another metric have the mean of it in `x`."""
    start, end, size = _shown(rows.x, axes)
    x, y = rows.x[:end], rows.y[:end]
    columns = _bucketed(x[start:], y[start:], size)
    if not np.isfinite(y[start:]).all():
        columns |= not_finite(y[start:], size)
    across = None if rows.across is None else rows.across[:end]
    if across is not None:
        columns["x"] = _bucketed(x[start:], across[start:], size)["mean"]
        # Charts merge buckets of one x that have no numbers; here each is another time of the training.
        columns["bucket"] = np.arange(len(columns["x"]))
    if not axes.smooths:
        return columns, end - start
    columns |= _smooth(y, x, axes, rows.run, start, size)
    columns["smoothed"] = np.where(np.isfinite(columns["mean"]), columns["smoothed"], np.nan)
    if across is not None:
        across_smoothed = _smooth(across, x, axes, rows.run, start, size)
        columns["x"] = across_smoothed["smoothed"]
        if axes.smoothing == "window":
            columns["window_x"] = across_smoothed["window_mean"]
    return columns, end - start


def reduce_group(session: Session, members: Sequence[RunValues], axes: Axes, spread: Spread) -> GroupGrid:
    """The curve of runs that differ in their seed alone. Against another metric, x is the centre of the runs'
    values of it at the same agent steps."""
    run_ids = [rows.run for rows in members]
    reached_column = repository.reached(session, run_ids, axes.column)
    conversion_of = conversions(session, run_ids, axes.x)
    reached = {
        run: float(convert(np.array([reached_column[run]]), conversion_of.get(run))[0]) for run in run_ids
    }
    group = whole_group([_member(rows, rows.y, axes, reached[rows.run]) for rows in members], axes, spread)
    if all(rows.across is None for rows in members):
        return group
    across = whole_group(
        [_member(rows, rows.across, axes, reached[rows.run]) for rows in members if rows.across is not None],
        axes,
        spread,
    )
    group.grid["x"] = across.grid[spread.centre]
    return group


def _member(rows: RunValues, values: Array, axes: Axes, reached: float) -> GroupMember:
    x, y, delay = smoothed_rows(values, rows.x, axes, rows.run)
    gaps = not_finite(values, max(1, len(values)))
    return GroupMember(x=x, y=y, holds_until=reached - delay, reached=reached, not_finite=gaps)


def _shown(x: Array, axes: Axes) -> tuple[int, int, int]:
    """The first row that is drawn, the row after the last one, and the rows of a bucket; with the rows beside
    the shown range, so that lines reach the edges of the plot."""
    first, end = 0, len(x)
    if axes.span:
        low, high = axes.span
        furthest = np.maximum.accumulate(x) if len(x) else x
        first = max(0, int(np.searchsorted(furthest, low)) - 1)
        end = min(len(x), int(np.searchsorted(furthest, high, side="right")) + 1)
    size = bucket_rows(max(0, end - first), axes.max_points)
    while -(-end // size) - first // size > axes.max_points:
        size *= 2
    return first // size * size, min(len(x), -(-end // size) * size), size


def _bucketed(x: Array, values: Array, size: int) -> Columns:
    columns = aggregate({_X: x, "value": values}, size, (_X,))
    columns["x"] = columns.pop(_X)
    return columns


def _smooth(values: Array, x: Array, axes: Axes, run_id: str, first: int, size: int) -> Columns:
    if axes.smoothing == "points":
        return {"smoothed": smooth_bucket_ends(values, axes.smooth, first, size)}
    scale = axes.scale_of(run_id)
    if axes.smoothing == "ema":
        return {"smoothed": average_over_x(values, x, scale, first, size)}
    finite = values[np.isfinite(values)]
    origin = float(finite[0]) if len(finite) else 0.0
    windows = average_windows(values, x, scale, first, size, value_origin=origin)
    drawn = (windows.x, windows.drawn, *windows.band, windows.n)
    return {"smoothed": windows.mean} | dict(zip(WINDOW, drawn, strict=True))
