"""Series in buckets for charts, reading no more than the chart needs.

A chart of a range of x has buckets of the rows in that range alone, hence finer ones.

`since` is the revision that a client already has: it lacks the buckets from the first changed one on. A
client with buckets of another size, or with rows that were superseded or may have had another x, starts from
scratch (`reset`). So does one with a range of x, unless nothing in it has changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.analysis.metrics.axes import Axes
from backend.analysis.metrics.chunks import empty, joined, n_rows, select_rows
from backend.analysis.metrics.known_rows import PointReader, rows_kept, rows_known
from backend.analysis.metrics.repository import ChunkInfo
from backend.analysis.metrics.rollups import BASE_ROWS, aggregate, merge_buckets, not_finite, sum_each
from backend.analysis.metrics.run_axes import (
    Conversion,
    conversions,
    convert,
    runs_with_changed_x,
)
from backend.analysis.metrics.smoothing import (
    EMA_REACH,
    average_over_x,
    average_windows,
    ema_rows,
    smooth_bucket_ends,
)
from backend.db import Series
from backend.statistics.columns import NOT_FINITE, Array, Columns, bucket_rows, last_rows, merge_at_equal_x

LARGE_BUCKETS = 100_000
"""Number of buckets above which only one chart is computed at a time."""

_MAX_ROWS_AT_ONCE = 1_000_000

WINDOW = ("window_x", "window_mean", "window_low", "window_high", "window_n")
"""Of the smoothing `window`: where the mean of each window is drawn, the mean, NaN where a line may not pass,
a standard deviation below and above it, but not beyond the window's values, and their number."""


@dataclass(frozen=True)
class SeriesBuckets:
    """The buckets of one series, or of the part in a range of x, from `first_bucket` on."""

    n_rows: int
    """Rows of the series, or of this part."""
    bucket_rows: int
    reset: bool
    first_bucket: int
    buckets: Columns
    """The x column, the columns of `rollups.AGGREGATES` and, on request, `smoothed`, those of `WINDOW` and
    `bucket`. With `has_joining_bucket`, preceded by the bucket before `first_bucket`, if there is one."""

    @property
    def n_buckets(self) -> int:
        """Number of buckets of the whole series, or of this part, before any are merged."""
        return -(-self.n_rows // self.bucket_rows)


@dataclass
class _Plan:
    """The chunks that the buckets of a series are computed from."""

    series_id: int
    n_rows: int
    """Rows that are shown, of the whole series or of a range of it."""
    bucket_rows: int
    """Rows of each bucket."""
    reset: bool
    """Whether the client keeps nothing of the series."""
    first_bucket: int
    """First bucket that the client lacks, counted from the start of what is shown."""
    start_row: int
    """First row of the first bucket that is computed, in rows of the whole series."""
    n_joining: int
    """Number of buckets that are computed before `first_bucket`."""
    end_row: int
    """Row after the last bucket."""
    stored: list[ChunkInfo]
    """Closed chunks whose roll-ups are sufficient."""
    points: list[ChunkInfo]
    """Chunks whose points are needed."""
    has_gaps: bool
    """Whether to count what is not finite."""
    mean_value: float
    """Mean of the whole series, 0 without finite values."""
    scale: float
    """Of smoothing over x."""
    values: list[ChunkInfo] = field(default_factory=list)
    """Chunks whose values enter the moving average."""


def curves(
    session: Session,
    series: Sequence[Series],
    axes: Axes,
    since: Mapping[str, int] | None = None,
    *,
    is_merged: bool = False,
    has_joining_bucket: bool = False,
    has_gaps: bool = False,
) -> dict[int, SeriesBuckets]:
    """By series id, the buckets that a client lacks.

    Args:
        session: a reading session.
        series: the series.
        axes: parameters of the chart.
        since: by run id, the revision that the client has; None for a client without data.
        is_merged: merge consecutive buckets at one x, as a chart draws them; `bucket` is then the index of
            the last of them.
        has_joining_bucket: with `is_merged`, also the last bucket that the client keeps, which an area has to
            join.
        has_gaps: also the columns of `columns.NOT_FINITE` of series with such values.
    """
    chunks = repository.live_chunks(session, [row.id for row in series])
    by_run = conversions(session, [row.run_id for row in series], axes.x)
    conversion_of = {row.id: by_run.get(row.run_id) for row in series}
    points_of = PointReader(session, series)

    # What the client has: by series, the rows whose buckets it keeps, perhaps 0. Of a series that is left out
    # here, it keeps nothing.
    n_kept: Mapping[int, int] = {}
    if since is not None:
        changed = runs_with_changed_x(session, by_run, axes.x, since)
        unchanged = [row for row in series if row.run_id not in changed]
        n_kept = rows_known(points_of, unchanged, chunks, since)
    last_kept: Mapping[int, int] = {}
    if is_merged and not axes.span:
        n_kept, last_kept = rows_kept(points_of, chunks, axes.column, axes.max_points, n_kept)

    # What it lacks: the buckets of each series, and the chunks that they are computed from.
    row_ranges: Mapping[int, tuple[int, int]] = {}
    if axes.span:
        spans = {id_: _stored_span(axes, conversion) for id_, conversion in conversion_of.items()}
        row_ranges = _rows_in_span(session, points_of, chunks, axes.column, spans)
    plans = [
        _plan(
            row,
            chunks[row.id],
            axes,
            n_kept.get(row.id),
            row_ranges.get(row.id),
            last_kept.get(row.id) if has_joining_bucket else None,
            has_gaps=has_gaps and row.n_finite < row.n_points,
        )
        for row in series
    ]
    if axes.smooths:
        averaged = [plan for plan in plans if plan.start_row < plan.end_row]
        ranges = _ranges(points_of, [chunks[p.series_id] for p in averaged if p.start_row], axes)
        for plan in averaged:
            conversion = conversion_of[plan.series_id]
            plan.values = _chunks_to_average(chunks[plan.series_id], axes, plan, ranges, conversion)

    # Read and compute, in batches of plans.
    by_series = {}
    for batch in _batches(plans):
        data = _read(session, points_of, batch, axes)
        for plan in batch:
            buckets = _buckets(plan, axes, conversion_of[plan.series_id], data)
            if plan.has_gaps:
                buckets |= _not_finite(plan, data)
            if is_merged:
                buckets["bucket"] = plan.first_bucket - plan.n_joining + np.arange(n_rows(buckets))
                buckets = merge_at_equal_x(buckets, axes.x)
            by_series[plan.series_id] = SeriesBuckets(
                n_rows=plan.n_rows,
                bucket_rows=plan.bucket_rows,
                reset=plan.reset,
                first_bucket=plan.first_bucket,
                buckets=buckets,
            )
    return by_series


class _Data(NamedTuple):
    """What the buckets of some plans are computed from, by chunk id."""

    points: Mapping[int, Columns]
    """x and value of each point."""
    values: Mapping[int, Columns]
    """What enters the moving averages: values, with x where they are averages over x."""
    stored: Mapping[int, Columns]
    """Roll-ups of closed chunks."""
    infinite: Mapping[int, Columns]
    """The values of closed chunks with infinite ones: a roll-up does not state how many there are."""


def _read(session: Session, points_of: PointReader, plans: Sequence[_Plan], axes: Axes) -> _Data:
    """Read what these plans need, each chunk once."""
    points = points_of([chunk for plan in plans for chunk in plan.points], (axes.column, "value"))
    averaged = [chunk for plan in plans for chunk in plan.values if chunk.id not in points]
    names = ("value",) if axes.smoothing == "points" else ("value", axes.column)
    values = points | points_of(averaged, names)
    stored = repository.rollups_of(session, [chunk for plan in plans for chunk in plan.stored], axes.column)
    with_infinite = [
        chunk
        for plan in plans
        for chunk in plan.stored
        if plan.has_gaps and np.isinf([stored[chunk.id]["min"], stored[chunk.id]["max"]]).any()
    ]
    return _Data(points, values, stored, points_of(with_infinite, ("value",)))


def _stored_span(axes: Axes, conversion: Conversion | None) -> tuple[float, float]:
    """The shown range of x in terms of the stored column."""
    low, high = axes.span or (-np.inf, np.inf)
    return (
        (conversion.stored_of(low), conversion.stored_of(high)) if conversion and axes.span else (low, high)
    )


def _rows_in_span(
    session: Session,
    points_of: PointReader,
    chunks: Mapping[int, list[ChunkInfo]],
    column: str,
    spans: Mapping[int, tuple[float, float]],
) -> dict[int, tuple[int, int]]:
    """By series id, the first row in its range of a column and the row after the last, to whole `BASE_ROWS`;
    with the adjacent rows, so that lines reach the edges of the plot."""
    closed = [chunk for series_chunks in chunks.values() for chunk in series_chunks if chunk.closed]
    opened = [chunk for series_chunks in chunks.values() for chunk in series_chunks if not chunk.closed]
    ends = repository.rollup_x_of(session, closed, column)
    points = points_of(opened, (column,))
    row_spans = {}
    for series_id, series_chunks in chunks.items():
        tail = [points[chunk.id][column] for chunk in series_chunks if not chunk.closed]
        open_x = np.concatenate(tail) if tail else np.empty(0)
        parts = [ends[chunk.id] for chunk in series_chunks if chunk.closed]
        x = np.concatenate([*parts, open_x[last_rows(len(open_x), BASE_ROWS)] if len(open_x) else open_x])
        low, high = spans[series_id]
        # The x of several actors may decrease a little.
        furthest = np.maximum.accumulate(x) if len(x) else x
        n_rows = series_chunks[-1].end_row if series_chunks else 0
        first = max(0, int(np.searchsorted(furthest, low)) - 1) * BASE_ROWS
        end = (int(np.searchsorted(furthest, high, side="right")) + 1) * BASE_ROWS
        row_spans[series_id] = (min(first, n_rows), min(end, n_rows))
    return row_spans


def _plan(
    series: Series,
    chunks: list[ChunkInfo],
    axes: Axes,
    n_kept_rows: int | None,
    row_range: tuple[int, int] | None,
    last_kept: int | None,
    *,
    has_gaps: bool,
) -> _Plan:
    """Which buckets of a series a client lacks, and which chunks they are computed from.

    Args:
        series: the series.
        chunks: all of its live chunks, in order.
        axes: parameters of the chart.
        n_kept_rows: rows whose buckets the client keeps; None for a client that starts from scratch.
        row_range: the first row that is shown and the row after the last; None for all.
        last_kept: first row of the last bucket that the client keeps, if an area has to join it.
        has_gaps: whether to count what is not finite.
    """
    n_series_rows = chunks[-1].end_row if chunks else 0
    n_joining = 0
    if row_range is None:
        n_rows = end = n_series_rows
        size = bucket_rows(n_rows, axes.max_points)
        if n_kept_rows is None or bucket_rows(n_kept_rows, axes.max_points) != size:
            reset, first_bucket = True, 0
        elif n_kept_rows == n_rows:  # nothing is new
            reset, first_bucket = False, -(-n_rows // size)
        else:  # from the first bucket that was not full
            reset, first_bucket = False, n_kept_rows // size
            n_joining = 0 if last_kept is None else first_bucket - last_kept // size
        start = (first_bucket - n_joining) * size
    else:
        # Buckets begin at multiples of their size in the whole series: none changes as the range moves.
        size = bucket_rows(row_range[1] - row_range[0], axes.max_points)
        while -(-row_range[1] // size) - row_range[0] // size > axes.max_points:
            size *= 2
        start, end = row_range[0] // size * size, min(n_series_rows, -(-row_range[1] // size) * size)
        n_rows = end - start
        reset, first_bucket = True, 0
        if n_kept_rows is not None and n_kept_rows >= end:  # nothing in the range is new
            reset, first_bucket, start = False, -(-n_rows // size), end
    from_points = size < BASE_ROWS
    read = [c for c in chunks if start < end and c.end_row > start and c.first_row < end]
    return _Plan(
        series_id=series.id,
        n_rows=n_rows,
        bucket_rows=size,
        reset=reset,
        first_bucket=first_bucket,
        start_row=start,
        n_joining=n_joining,
        end_row=end,
        stored=[c for c in read if c.closed and not from_points],
        points=[c for c in read if from_points or not c.closed],
        has_gaps=has_gaps,
        mean_value=series.mean_value or 0.0,
        scale=0.0 if axes.smoothing == "points" else axes.scale_of(series.run_id),
    )


def _ranges(
    points_of: PointReader, chunks: Iterable[list[ChunkInfo]], axes: Axes
) -> dict[int, tuple[float, float]]:
    """By chunk id, the range of the column that x is read or computed from, for smoothing over x."""
    if axes.smoothing == "points":
        return {}
    return points_of.ranges((chunk for series_chunks in chunks for chunk in series_chunks), axes.column)


def _chunks_to_average(
    chunks: list[ChunkInfo],
    axes: Axes,
    plan: _Plan,
    ranges: Mapping[int, tuple[float, float]],
    conversion: Conversion | None,
) -> list[ChunkInfo]:
    """The chunks with rows that enter the moving average of the plan's rows."""
    start, size = plan.start_row, plan.bucket_rows
    before = [c for c in chunks if c.first_row < plan.end_row]
    if axes.smoothing == "points":
        return [c for c in before if c.end_row > start - ema_rows(axes.smooth) + 1]
    if axes.smoothing == "window":  # which looks at the bucket before
        start = max(0, start - size)
    if not start:
        return before
    stored = np.array([ranges[c.id] for c in before], "f8")
    lowest, highest = convert(stored[:, 0], conversion), convert(stored[:, 1], conversion)
    is_shown = np.array([c.end_row > start for c in before])
    reach = plan.scale * (EMA_REACH if axes.smoothing == "ema" else 1)
    # The rows must be consecutive, and the buckets whole.
    needed = np.argmax(is_shown | (highest >= lowest[is_shown].min() - reach))
    first_row = before[needed].first_row // size * size
    return [c for c in before if c.end_row > first_row]


def _batches(plans: Sequence[_Plan]) -> Iterator[list[_Plan]]:
    """Groups of plans that load at most `_MAX_ROWS_AT_ONCE` points into memory; one plan may need more."""
    batch: list[_Plan] = []
    size = 0
    for plan in plans:
        n = sum(chunk.n_rows for chunk in {*plan.points, *plan.values})
        if batch and size + n > _MAX_ROWS_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(plan)
        size += n
    if batch:
        yield batch


def _not_finite(plan: _Plan, data: _Data) -> Columns:
    """How many values of each bucket are not finite, by kind."""
    if plan.start_row >= plan.end_row:
        return not_finite(np.empty(0), 1)
    parts: list[Columns] = []
    for chunk in plan.stored:
        if chunk.id in data.infinite:
            part = not_finite(data.infinite[chunk.id]["value"], BASE_ROWS)
        else:
            nan = BASE_ROWS - data.stored[chunk.id]["count"]
            part = {name: nan if name == "nan" else np.zeros_like(nan) for name in NOT_FINITE}
        first, end = plan.start_row - chunk.first_row, plan.end_row - chunk.first_row
        parts.append(select_rows(part, slice(max(0, first) // BASE_ROWS, -(-end // BASE_ROWS))))
    if plan.points:
        values = np.concatenate([data.points[chunk.id]["value"] for chunk in plan.points])
        first = plan.points[0].first_row
        shown = values[max(0, plan.start_row - first) : plan.end_row - first]
        parts.append(not_finite(shown, min(plan.bucket_rows, BASE_ROWS)))
    factor = max(1, plan.bucket_rows // BASE_ROWS)
    return {name: sum_each(column, factor) for name, column in joined(parts).items()}


def _buckets(plan: _Plan, axes: Axes, conversion: Conversion | None, data: _Data) -> Columns:
    """The plan's buckets: from roll-ups and points, over x, with the smoothed columns."""
    if plan.start_row >= plan.end_row:
        nothing = aggregate(empty((axes.column, "value")), 1, (axes.column,))
        nothing[axes.x] = nothing.pop(axes.column)
        names = ("smoothed", *(WINDOW if axes.smoothing == "window" else ())) if axes.smooths else ()
        return nothing | dict.fromkeys(names, nothing["mean"])
    parts: list[Columns] = []
    if plan.stored:
        base = joined([data.stored[chunk.id] for chunk in plan.stored])
        first = plan.stored[0].first_row
        shown = slice(max(0, plan.start_row - first) // BASE_ROWS, -(-(plan.end_row - first) // BASE_ROWS))
        parts.append(select_rows(base, shown))
    if plan.points:
        rows = joined([data.points[chunk.id] for chunk in plan.points])
        first = plan.points[0].first_row
        shown = slice(max(0, plan.start_row - first), plan.end_row - first)
        part = {name: rows[name] for name in (axes.column, "value")}
        parts.append(aggregate(select_rows(part, shown), min(plan.bucket_rows, BASE_ROWS), (axes.column,)))
    buckets = merge_buckets(joined(parts), max(1, plan.bucket_rows // BASE_ROWS))
    buckets[axes.x] = convert(buckets.pop(axes.column), conversion)
    return buckets | _smooth(plan, axes, conversion, data, buckets["mean"]) if axes.smooths else buckets


def _smooth(plan: _Plan, axes: Axes, conversion: Conversion | None, data: _Data, means: Array) -> Columns:
    """The smoothed columns of the plan's buckets, which have these means; `smoothed` is NaN where the mean is
    not finite."""
    first = plan.values[0].first_row
    until_end = slice(None, plan.end_row - first)
    values = np.concatenate([data.values[chunk.id]["value"] for chunk in plan.values])[until_end]
    ends = plan.start_row - first, plan.bucket_rows
    columns: Columns = {}
    if axes.smoothing == "points":
        smooth = smooth_bucket_ends(values, axes.smooth, *ends)
    else:
        stored_x = np.concatenate([data.values[chunk.id][axes.column] for chunk in plan.values])
        x, scale = convert(stored_x[until_end], conversion), plan.scale
        if axes.smoothing == "ema":
            smooth = average_over_x(values, x, scale, *ends)
        else:
            # Of the whole series: a whole line and its tail alone have the same values, but for rounding.
            windows = average_windows(values, x, scale, *ends, value_origin=plan.mean_value)
            smooth = windows.mean
            drawn = (windows.x, windows.drawn, *windows.band, windows.n)
            columns = dict(zip(WINDOW, drawn, strict=True))
    return columns | {"smoothed": np.where(np.isfinite(means), smooth, np.nan)}
