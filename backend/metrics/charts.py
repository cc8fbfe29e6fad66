"""Series as a chart shows them, read no further than the chart needs.

`since` is the revision a reader already has: what it lacks are the buckets from the first changed one on.
A reader whose buckets have another size, or who has rows that a cut took away, starts again (`reset`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from backend.db import Series
from backend.metrics import repository
from backend.metrics.chunks import Columns, empty, joined, taken
from backend.metrics.repository import Chunk
from backend.metrics.rollups import BASE_ROWS, bucket_rows, bucketed, folded
from backend.metrics.smoothing import smoothed_at_ends, window_rows

_MAX_ROWS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Axes:
    """How a chart wants its series."""

    x: str
    """One of `chunks.X_COLUMNS`."""
    max_points: int
    smooth: float = 0.0
    """Weight of the past in [0, 1); 0 for none."""


@dataclass(frozen=True)
class Curve:
    """The buckets of one series from `first_bucket` on."""

    n_rows: int
    bucket_rows: int
    reset: bool
    first_bucket: int
    buckets: Columns
    """The x column, those of `rollups.AGGREGATES` and, where asked for, `smoothed`."""

    @property
    def n_buckets(self) -> int:
        """Buckets of the whole series."""
        return -(-self.n_rows // self.bucket_rows)


@dataclass(frozen=True)
class _Plan:
    """Which chunks a curve is made of."""

    series_id: int
    n_rows: int
    bucket_rows: int
    reset: bool
    first_bucket: int
    stored: list[Chunk]
    """Closed chunks whose roll-ups do."""
    points: list[Chunk]
    """Chunks whose points are needed."""
    values: list[Chunk]
    """Chunks whose values a moving average is taken of."""

    @property
    def start_row(self) -> int:
        """First row of the first bucket."""
        return self.first_bucket * self.bucket_rows


def curves(
    session: Session, series: Sequence[Series], axes: Axes, since: Mapping[str, int] | None = None
) -> dict[int, Curve]:
    """By series id, what a chart of these series lacks.

    Args:
        session: a reading session.
        series: which.
        axes: how.
        since: by run id, the revision the reader has; none for a reader who has nothing.
    """
    chunks = repository.live_chunks(session, [one.id for one in series])
    had = _rows_had(session, series, chunks, since) if since is not None else {}
    plans = [_plan(one, chunks[one.id], axes, had.get(one.id)) for one in series]
    found = {}
    for some in _batches(plans):
        points = repository.points_of(session, [c for p in some for c in p.points], (axes.x, "value"))
        rest = [c for p in some for c in p.values if c.id not in points]
        values = points | repository.points_of(session, rest, ("value",))
        stored = repository.rollups_of(session, [c for p in some for c in p.stored], axes.x)
        for plan in some:
            found[plan.series_id] = Curve(
                n_rows=plan.n_rows,
                bucket_rows=plan.bucket_rows,
                reset=plan.reset,
                first_bucket=plan.first_bucket,
                buckets=_buckets(plan, axes, points, values, stored),
            )
    return found


def _rows_had(
    session: Session,
    series: Sequence[Series],
    chunks: Mapping[int, list[Chunk]],
    since: Mapping[str, int],
) -> dict[int, int]:
    """By series id, how many of its rows arrived up to the reader's revision; not where it was cut after."""
    rows, edges = {}, {}
    for one in series:
        revision = since[one.run_id]
        if one.cut_revision > revision:
            continue
        rows[one.id] = chunks[one.id][-1].end_row if chunks[one.id] else 0
        for chunk in chunks[one.id]:
            if chunk.revision > revision:
                edges[one.id] = (chunk, revision)
                break
    data = repository.points_of(session, [chunk for chunk, _ in edges.values()], ("revision",))
    for series_id, (chunk, revision) in edges.items():
        before = np.searchsorted(data[chunk.id]["revision"], revision, side="right")
        rows[series_id] = chunk.first_row + int(before)
    return rows


def _plan(series: Series, chunks: list[Chunk], axes: Axes, rows_had: int | None) -> _Plan:
    n_rows = chunks[-1].end_row if chunks else 0
    size = bucket_rows(n_rows, axes.max_points)
    reset = rows_had is None or bucket_rows(rows_had, axes.max_points) != size
    if reset or rows_had is None:
        first_bucket = 0
    elif rows_had == n_rows:
        first_bucket = -(-n_rows // size)
    else:
        first_bucket = rows_had // size
    start = first_bucket * size
    from_points = size < BASE_ROWS
    lead = window_rows(axes.smooth) - 1 if axes.smooth > 0 and start < n_rows else 0
    return _Plan(
        series_id=series.id,
        n_rows=n_rows,
        bucket_rows=size,
        reset=reset,
        first_bucket=first_bucket,
        stored=[c for c in chunks if c.closed and not from_points and c.end_row > start],
        points=[c for c in chunks if (from_points or not c.closed) and c.end_row > start],
        values=[c for c in chunks if c.end_row > start - lead] if axes.smooth > 0 else [],
    )


def _batches(plans: Sequence[_Plan]) -> Iterator[list[_Plan]]:
    """Plans that together need no more than a bounded number of points in memory."""
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


def _buckets(
    plan: _Plan,
    axes: Axes,
    points: Mapping[int, Columns],
    values: Mapping[int, Columns],
    stored: Mapping[int, Columns],
) -> Columns:
    if plan.start_row >= plan.n_rows:
        nothing = bucketed(empty((axes.x, "value")), 1, (axes.x,))
        return nothing | ({"smoothed": nothing["mean"]} if axes.smooth > 0 else {})
    parts: list[Columns] = []
    if plan.stored:
        base = joined([stored[chunk.id] for chunk in plan.stored])
        skipped = max(0, plan.start_row - plan.stored[0].first_row) // BASE_ROWS
        parts.append(taken(base, slice(skipped, None)))
    if plan.points:
        rows = joined([points[chunk.id] for chunk in plan.points])
        shown = slice(max(0, plan.start_row - plan.points[0].first_row), None)
        parts.append(bucketed(taken(rows, shown), min(plan.bucket_rows, BASE_ROWS), (axes.x,)))
    buckets = folded(joined(parts), max(1, plan.bucket_rows // BASE_ROWS))
    if axes.smooth > 0:
        column = np.concatenate([values[chunk.id]["value"] for chunk in plan.values])
        before = plan.start_row - plan.values[0].first_row
        buckets |= {"smoothed": smoothed_at_ends(column, axes.smooth, before, plan.bucket_rows)}
    return buckets
