"""Groups of runs that differ in their seed alone, as a chart shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from backend.db import Run, Series
from backend.metrics import repository
from backend.metrics.charts import Axes
from backend.metrics.chunks import Array, Columns, empty, joined
from backend.metrics.grouping import Interval, grid_step, on_grid, summary
from backend.metrics.smoothing import smoothed


@dataclass(frozen=True)
class GroupCurve:
    """The grid points of one group from `first_bucket` on."""

    n_rows: int
    n_points: int
    """Grid points of the whole curve."""
    step: float
    reset: bool
    first_bucket: int
    grid: Columns
    """`x`, `mean`, `low`, `high` and `n`."""


@dataclass(frozen=True)
class _Member:
    x: Array
    y: Array
    n_had: int
    """Rows the reader has."""
    at: float
    """Where the run is."""


def group_curve(
    session: Session,
    members: Sequence[Series],
    axes: Axes,
    interval: Interval,
    since: Mapping[str, int] | None = None,
) -> GroupCurve:
    """One metric of one group; `since` as in `charts.curves`."""
    chunks = repository.live_chunks(session, [series.id for series in members])
    names = (axes.x, "value") if since is None else (axes.x, "value", "revision")
    loaded = []
    for series in members:
        data = repository.points_of(session, chunks[series.id], names)
        rows = joined([data[chunk.id] for chunk in chunks[series.id]]) if data else empty(names)
        y = smoothed(rows["value"], axes.smooth) if axes.smooth > 0 else rows["value"]
        had = 0 if since is None else int(np.searchsorted(rows["revision"], since[series.run_id], "right"))
        at = getattr(session.get_one(Run, series.run_id), axes.x)
        loaded.append(_Member(rows[axes.x], y, had, at))
    step, grid = _grid([(one.x, one.y, one.at) for one in loaded], axes.max_points, interval)
    reset, first = True, 0
    if since is not None and all(series.cut_revision <= since[series.run_id] for series in members):
        # How far the last values held then is not known: all of that is sent again.
        before = [(one.x[: one.n_had], one.y[: one.n_had], 0.0) for one in loaded]
        step_before, grid_before = _grid(before, axes.max_points, interval)
        if step_before == step:
            reset, first = False, _first_difference(grid_before, grid)
    return GroupCurve(
        n_rows=sum(len(one.x) for one in loaded),
        n_points=len(grid["x"]),
        step=step,
        reset=reset,
        first_bucket=first,
        grid={name: column[first:] for name, column in grid.items()},
    )


def _grid(
    rows: Sequence[tuple[Array, Array, float]], max_points: int, interval: Interval
) -> tuple[float, Columns]:
    furthest = max((float(x.max()) for x, _, _ in rows if len(x)), default=-1.0)
    step = grid_step(furthest, max_points)
    n_points = max(1, int(np.ceil(furthest / step))) if furthest >= 0 else 0
    values = np.array([on_grid(x, y, step, n_points, at) for x, y, at in rows])
    return step, {"x": step * np.arange(1, n_points + 1)} | summary(values, interval)


def _first_difference(one: Columns, other: Columns) -> int:
    n = min(len(one["x"]), len(other["x"]))
    same = np.ones(n, bool)
    for name in one:
        a, b = one[name][:n], other[name][:n]
        same &= (a == b) | ((a != a) & (b != b))
    return int(np.argmin(same)) if not same.all() else n
