"""Curves of groups of runs that differ in their seed alone, and what a client lacks of them.

`charts` does the same for single runs; the arithmetic is in `grouping`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.analysis.metrics.axes import Axes
from backend.analysis.metrics.chunks import empty, joined
from backend.analysis.metrics.known_rows import PointReader
from backend.analysis.metrics.rollups import not_finite
from backend.analysis.metrics.run_axes import conversions, convert, runs_with_changed_x
from backend.analysis.metrics.smoothing import average_over_x, average_row_windows, smooth_rows
from backend.db import Series
from backend.statistics.columns import NOT_FINITE, Array, Columns
from backend.statistics.grouping import Spread, draws_seeds, grid_step, lacks_value, on_grid, summary


@dataclass(frozen=True)
class GroupGrid:
    """The grid points of one group from `first_bucket` on."""

    n_rows: int
    n_points: int
    """Grid points of the whole curve."""
    step: float
    reset: bool
    """Whether these replace all that the client has: it had none, a series was cut, the x of its rows may
    have changed, or the step did."""
    first_bucket: int
    grid: Columns
    """`x`, `mean`, `median`, `iqm`, `low`, `high` and `n`. Where a run has no value though it has come there,
    such as after its last episode, they are NaN but for `x` and `n`."""
    seed_values: Array
    """The values of each run, one row per run; without rows if only a band is drawn."""
    is_partial: bool
    """Whether the centre is anywhere, before `first_bucket` too, that of fewer than all runs."""
    not_finite: Sequence[int]
    """Numbers of all values that are not finite, by kind as `columns.NOT_FINITE`."""


@dataclass(frozen=True)
class GroupMember:
    """The rows of one run of a group, smoothed."""

    x: Array
    y: Array
    holds_until: float
    """x until which its last value holds."""
    reached: float
    """Current x of the run."""
    not_finite: Columns
    n_known: int = 0
    """Rows that the client has."""


def group_curve(
    session: Session,
    members: Sequence[Series],
    axes: Axes,
    spread: Spread,
    since: Mapping[str, int] | None = None,
) -> GroupGrid:
    """One metric of one group: the grid points that a client lacks; `since` as in `charts.curves`."""
    loaded = _load(session, members, axes, since)
    whole, values = _whole_group(loaded, axes, spread)
    if since is None or not _keeps_rows(session, members, axes.x, since):
        return whole
    first = _first_changed(loaded, axes, spread, whole.step, (*whole.grid.values(), *values))
    if first is None:
        return whole
    return replace(
        whole,
        reset=False,
        first_bucket=first,
        grid={name: column[first:] for name, column in whole.grid.items()},
        seed_values=whole.seed_values[:, first:],
    )


def whole_group(members: Sequence[GroupMember], axes: Axes, spread: Spread) -> GroupGrid:
    """Every grid point of the curve of these runs."""
    return _whole_group(members, axes, spread)[0]


def _whole_group(members: Sequence[GroupMember], axes: Axes, spread: Spread) -> tuple[GroupGrid, Array]:
    """Every grid point, and the values of each run there."""
    rows = [_Rows(member.x, member.y, member.holds_until) for member in members]
    step, columns, values = _grid(rows, axes, spread)
    lacks = _lacks_value(rows, columns["x"], step, [member.reached for member in members])
    grid = _masked_where(columns, lacks)
    whole = GroupGrid(
        n_rows=sum(len(member.x) for member in members),
        n_points=len(grid["x"]),
        step=step,
        reset=True,
        first_bucket=0,
        grid=grid,
        seed_values=values[: len(members) if spread.seeds or draws_seeds(len(members), spread) else 0],
        is_partial=bool(((grid["n"] < len(members)) & np.isfinite(grid[spread.centre])).any()),
        not_finite=[sum(int(member.not_finite[name].sum()) for member in members) for name in NOT_FINITE],
    )
    return whole, values


def _keeps_rows(session: Session, members: Sequence[Series], x: str, since: Mapping[str, int]) -> bool:
    """Whether the rows that a client has are still rows of the runs, at the x where it has them."""
    was_cut = any(series.cut_revision > since[series.run_id] for series in members)
    return not was_cut and not runs_with_changed_x(session, (row.run_id for row in members), x, since)


def _load(
    session: Session, members: Sequence[Series], axes: Axes, since: Mapping[str, int] | None
) -> list[GroupMember]:
    """Every point of each run, smoothed."""
    chunks = repository.live_chunks(session, [series.id for series in members])
    points_of = PointReader(session, members)
    points_of.prepare(chunk for series in members for chunk in chunks[series.id])
    names = (axes.column, "value") if since is None else (axes.column, "value", "revision")
    run_ids = [series.run_id for series in members]
    reached_column = repository.reached(session, run_ids, axes.column)
    conversion_of = conversions(session, run_ids, axes.x)
    loaded = []
    for series in members:
        data = points_of(chunks[series.id], names)
        rows = joined([data[chunk.id] for chunk in chunks[series.id]]) if data else empty(names)
        conversion = conversion_of.get(series.run_id)
        x, y, delay = smoothed_rows(
            rows["value"], convert(rows[axes.column], conversion), axes, series.run_id
        )
        n_known = (
            0 if since is None else int(np.searchsorted(rows["revision"], since[series.run_id], "right"))
        )
        reached = float(convert(np.array([reached_column[series.run_id]]), conversion)[0])
        loaded.append(
            GroupMember(
                x=x,
                y=y,
                holds_until=reached - delay,
                reached=reached,
                not_finite=not_finite(rows["value"], max(1, len(rows["value"]))),
                n_known=n_known,
            )
        )
    return loaded


def _first_changed(
    members: Sequence[GroupMember], axes: Axes, spread: Spread, step: float, now: Sequence[Array]
) -> int | None:
    """The first grid point that a client has to get: what it has is computed again from the rows it had.

    How far each run had come then is not known: it was between its last row and where it is now. So its last
    value is not extended (0.0), both ends are tried, and a grid point that differs in either is sent again.

    Returns:
        None if the client has grid points at other places.
    """
    before = [_Rows(member.x[: member.n_known], member.y[: member.n_known], 0.0) for member in members]
    step_before, columns, values = _grid(before, axes, spread)
    if step_before != step:
        return None
    first = len(now[0])
    for reached in ([0.0] * len(members), [member.reached for member in members]):
        lacks = _lacks_value(before, columns["x"], step, reached)
        first = min(first, _first_difference((*_masked_where(columns, lacks).values(), *values), now))
    return first


def smoothed_rows(values: Array, x: Array, axes: Axes, run_id: str) -> tuple[Array, Array, float]:
    """The rows as they are drawn, and by how much at most the latest is drawn before its x."""
    if not axes.smooths:
        return x, values, 0.0
    if axes.smoothing == "points":
        return x, smooth_rows(values, axes.smooth), 0.0
    scale = axes.scale_of(run_id)
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


def _lacks_value(rows: Sequence[_Rows], x: Array, step: float, reached: Sequence[float]) -> Array:
    """At which grid points some run has no value though it has come there: each run to its `reached`."""
    first = round(x[0] / step) - 1 if len(x) else 0
    lacks = np.zeros(len(x), bool)
    for run, current in zip(rows, reached, strict=True):
        lacks |= lacks_value(run.x, step, len(x), run.holds_until, current, first)
    return lacks


def _masked_where(columns: Columns, lacks: Array) -> Columns:
    """The columns of a grid, with NaN for what is estimated from the runs where one of them lacks a value."""
    kept = ("x", "n")
    return {
        name: column if name in kept else np.where(lacks, np.nan, column) for name, column in columns.items()
    }


def _first_difference(arrays: Sequence[Array], other: Sequence[Array]) -> int:
    """The first column in which two lists of rows differ; NaN equals NaN."""
    n = min(len(arrays[0]), len(other[0]))
    same = np.ones(n, bool)
    for a, b in zip(arrays, other, strict=True):
        same &= (a[:n] == b[:n]) | ((a[:n] != a[:n]) & (b[:n] != b[:n]))
    return int(np.argmin(same)) if not same.all() else n
