"""Curves of groups of runs that differ in their seed alone, and what a client lacks of them.

As `charts` is of single runs; the arithmetic is in `grouping`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sqlalchemy.orm import Session

from backend.db import Series
from backend.metrics import repository
from backend.metrics.charts import Axes
from backend.metrics.chunks import Array, Columns, empty, joined
from backend.metrics.grouping import Spread, draws_seeds, grid_step, leaves_open, on_grid, summary
from backend.metrics.known_rows import PointReader
from backend.metrics.rollups import NOT_FINITE, not_finite
from backend.metrics.run_axes import conversions, convert
from backend.metrics.smoothing import average_over_x, average_row_windows, smooth_rows


@dataclass(frozen=True)
class GroupGrid:
    """The grid points of one group from `first_bucket` on."""

    n_rows: int
    n_points: int
    """Grid points of the whole curve."""
    step: float
    reset: bool
    first_bucket: int
    grid: Columns
    """`x`, `mean`, `median`, `iqm`, `low`, `high` and `n`. Where a run has no value though it has come there,
    such as after its last episode, they are NaN but for `x` and `n`."""
    seed_values: Array
    """The values of each run, one row per run; without rows if only a band is drawn."""
    is_partial: bool
    """Whether the centre is anywhere, before `first_bucket` too, that of fewer than all runs."""
    not_finite: Sequence[int]
    """Numbers of all values that are not finite, by kind as `rollups.NOT_FINITE`."""


@dataclass(frozen=True)
class _Member:
    x: Array
    y: Array
    n_known: int
    """Rows that the client has."""
    holds_until: float
    """x until which its last value holds."""
    reached: float
    """Current x of the run."""
    not_finite: Columns


def group_curve(
    session: Session,
    members: Sequence[Series],
    axes: Axes,
    spread: Spread,
    since: Mapping[str, int] | None = None,
) -> GroupGrid:
    """One metric of one group; `since` as in `charts.curves`."""
    chunks = repository.live_chunks(session, [series.id for series in members])
    points_of = PointReader(session, members)
    points_of.prepare(chunk for series in members for chunk in chunks[series.id])
    names = (axes.column, "value") if since is None else (axes.column, "value", "revision")
    reached = repository.reached(session, [series.run_id for series in members], axes.column)
    known = conversions(session, [series.run_id for series in members], axes.x)
    loaded = []
    for series in members:
        data = points_of(chunks[series.id], names)
        rows = joined([data[chunk.id] for chunk in chunks[series.id]]) if data else empty(names)
        conversion = known.get(series.run_id)
        x = convert(rows[axes.column], conversion)
        x, y, delay = _smoothed(rows["value"], x, axes)
        had = 0 if since is None else int(np.searchsorted(rows["revision"], since[series.run_id], "right"))
        gaps = not_finite(rows["value"], max(1, len(rows["value"])))
        current = float(convert(np.array([reached[series.run_id]]), conversion)[0])
        loaded.append(_Member(x, y, had, current - delay, current, gaps))
    rows_of = [_Rows(member.x, member.y, member.holds_until) for member in loaded]
    step, columns, values = _grid(rows_of, axes, spread)
    is_open = _open_points(rows_of, columns["x"], step, [member.reached for member in loaded])
    grid = _without(columns, is_open)
    reset, first = True, 0
    if since is not None and all(series.cut_revision <= since[series.run_id] for series in members):
        # The current x of each run at that time is not known. So its last value is not extended (0.0), and
        # the grid points after it are sent again.
        before = [_Rows(member.x[: member.n_known], member.y[: member.n_known], 0.0) for member in loaded]
        step_before, columns_before, values_before = _grid(before, axes, spread)
        if step_before == step:
            reset, first = False, len(columns["x"])
            # Each run was between its last point and where it is now.
            for ends in ([0.0] * len(loaded), [member.reached for member in loaded]):
                opened = _open_points(before, columns_before["x"], step, ends)
                known_columns = (*_without(columns_before, opened).values(), *values_before)
                first = min(first, _first_difference(known_columns, (*grid.values(), *values)))
    return GroupGrid(
        n_rows=sum(len(member.x) for member in loaded),
        n_points=len(grid["x"]),
        step=step,
        reset=reset,
        first_bucket=first,
        grid={name: column[first:] for name, column in grid.items()},
        seed_values=values[: len(loaded) if spread.seeds or draws_seeds(len(loaded), spread) else 0, first:],
        is_partial=bool(((grid["n"] < len(loaded)) & np.isfinite(grid[spread.centre])).any()),
        not_finite=[sum(int(member.not_finite[name].sum()) for member in loaded) for name in NOT_FINITE],
    )


def _smoothed(values: Array, x: Array, axes: Axes) -> tuple[Array, Array, float]:
    """The rows as they are drawn, and by how much the latest is drawn before its x."""
    if not axes.smooths:
        return x, values, 0.0
    if axes.smoothing == "points":
        return x, smooth_rows(values, axes.smooth), 0.0
    scale = axes.scale or 0.0
    if axes.smoothing == "window":
        return *average_row_windows(values, x, scale), scale / 2
    return x, np.where(np.isfinite(values), average_over_x(values, x, scale), np.nan), 0.0


class _Rows(NamedTuple):
    """Rows of a run, and the x until which its last value holds."""

    x: Array
    y: Array
    holds_until: float


def _grid(rows: Sequence[_Rows], axes: Axes, spread: Spread) -> tuple[float, Columns, Array]:
    furthest = max((float(run.x.max()) for run in rows if len(run.x)), default=-1.0)
    low, high = axes.span or (0.0, furthest)
    high = min(high, furthest)
    step = grid_step(high - low, axes.max_points)
    first = max(0, int(low / step) - 1)
    n_points = max(1, int(np.ceil(high / step)) - first) if high >= max(low, 0) else 0
    values = np.array([on_grid(run.x, run.y, step, n_points, run.holds_until, first) for run in rows])
    return step, {"x": step * (first + np.arange(1, n_points + 1))} | summary(values, spread), values


def _open_points(rows: Sequence[_Rows], x: Array, step: float, reached: Sequence[float]) -> Array:
    """Which grid points some run leaves open, of runs that have come to `reached`."""
    first = round(x[0] / step) - 1 if len(x) else 0
    is_open = np.zeros(len(x), bool)
    for run, current in zip(rows, reached, strict=True):
        is_open |= leaves_open(run.x, step, len(x), run.holds_until, current, first)
    return is_open


def _without(columns: Columns, is_open: Array) -> Columns:
    """The columns of a grid, with what is estimated from the runs only where no run leaves it open."""
    kept = ("x", "n")
    return {
        name: column if name in kept else np.where(is_open, np.nan, column)
        for name, column in columns.items()
    }


def _first_difference(arrays: Sequence[Array], other: Sequence[Array]) -> int:
    n = min(len(arrays[0]), len(other[0]))
    same = np.ones(n, bool)
    for a, b in zip(arrays, other, strict=True):
        same &= (a[:n] == b[:n]) | ((a[:n] != a[:n]) & (b[:n] != b[:n]))
    return int(np.argmin(same)) if not same.all() else n
