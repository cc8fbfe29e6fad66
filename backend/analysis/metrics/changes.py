"""What changed in a run from one stretch of training to the next."""

import math
import re

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository, service
from backend.analysis.metrics.axes import Axes
from backend.analysis.metrics.charts import SeriesBuckets, curves
from backend.analysis.metrics.run_axes import conversions, convert, locator
from backend.analysis.metrics.schemas import Changes, CheckpointBefore, MetricChange, X
from backend.db import Series
from backend.drawing.catalogue import MIB, describe
from backend.runs.checkpoints import service as checkpoints
from backend.specs.run_fields import EXTERNAL
from backend.statistics.changes import change as robust_change
from backend.statistics.columns import NOT_FINITE

MAX_SHOWN = 12
"""Metrics of an answer: those that changed most."""
MACHINE = re.compile(r"(system|speed)/|\w+/(time_|waiting)")
"""How the names of metrics begin that measure the machine: other programs change them too."""

_BUCKETS = 400
"""Of both stretches of a series together: what is compared are means of a few consecutive points."""


def of(session: Session, run_id: str, low: float, high: float, x: X = "agent_steps") -> Changes:
    """The metrics that changed most in a range of x against the range of the same length before it, or what
    there is of that from 0 on.

    Args:
        session: a reading session.
        run_id: the run.
        low: where the range starts.
        high: where it ends.
        x: what the range counts.

    Raises:
        NotFound: there is no such run.
    """
    run = service.find_runs(session, [run_id])[run_id]
    start = max(0.0, low - (high - low))
    whole = [
        series
        for series in repository.list_series(session, [run_id])
        if series.n_points and not series.source
    ]
    n_buckets = min(_BUCKETS, service.MAX_BUCKETS // max(1, len(whole)))
    axes = Axes(x, n_buckets, span=(start, high))
    with service.bounded(len(whole), axes):
        drawn = curves(session, whole, axes, has_gaps=True)
    compared = [
        change for series in whole if (change := _change(series, drawn[series.id], x, (start, low, high)))
    ]
    compared.sort(key=_rank)
    x_of = locator(session, [run_id], x)
    # The files of external runs cannot be loaded.
    saved = [] if run.origin == EXTERNAL else checkpoints.resumable(session, run_id)
    before = [row for row in saved if (at := x_of(row)) is not None and at <= low]
    longest = max(whole, key=lambda series: series.n_points, default=None)
    steps = _agent_steps(session, longest, axes, low, high) if longest else (0, 0)
    return Changes(
        x=x,
        agent_steps_from=steps[0],
        agent_steps_to=steps[1],
        before_from=start,
        range_from=low,
        range_to=high,
        n_metrics=len(compared),
        items=compared[:MAX_SHOWN],
        checkpoint=CheckpointBefore.model_validate(before[0], from_attributes=True) if before else None,
    )


def _agent_steps(session: Session, series: Series, axes: Axes, low: float, high: float) -> tuple[int, int]:
    """The agent steps at both ends of a range of x, interpolated between the points of a series."""
    if axes.x == "agent_steps":
        return math.floor(low), math.ceil(high)
    chunks = repository.live_chunks(session, [series.id])[series.id]
    closed = [chunk for chunk in chunks if chunk.closed]
    opened = repository.points_of(
        session, [chunk for chunk in chunks if not chunk.closed], ("agent_steps", axes.column)
    )
    steps, stored = (
        np.concatenate(
            [
                *(rollup_x[chunk.id] for chunk in closed),
                *(opened[chunk.id][name] for chunk in chunks if not chunk.closed),
            ]
        )
        for name in ("agent_steps", axes.column)
        for rollup_x in [repository.rollup_x_of(session, closed, name)]
    )
    conversion = conversions(session, [series.run_id], axes.x).get(series.run_id)
    # The x of several actors may decrease a little.
    at = np.maximum.accumulate(convert(stored, conversion).astype("f8"))
    first, last = np.interp([low, high], at, np.maximum.accumulate(steps))
    return math.floor(first), math.ceil(last)


def _change(
    series: Series, curve: SeriesBuckets, x: X, ends: tuple[float, float, float]
) -> MetricChange | None:
    start, low, high = ends
    at, mean = curve.buckets[x], curve.buckets["mean"]
    is_before, is_inside = (at >= start) & (at < low), (at >= low) & (at <= high)
    before, inside = mean[is_before], mean[is_inside]
    measured = robust_change(before, inside)
    not_finite = np.zeros(len(at))
    for name in NOT_FINITE:
        not_finite += curve.buckets.get(name, 0)
    lost = bool(not not_finite[is_before].any() and not_finite[is_inside].any())
    if measured is None and not (lost and len(before)):
        return None
    about = describe(series.metric)
    return MetricChange(
        metric=series.metric,
        title=about.title,
        unit="MiB" if about.divisor == MIB else "",
        of_machine=bool(MACHINE.match(series.metric)),
        before=(measured.before if measured else float(np.median(before))) / about.divisor,
        inside=measured.inside / about.divisor if measured else None,
        score=measured.z if measured else None,
        was_constant=measured is not None and measured.z is None,
        becomes_not_finite=lost,
    )


def _rank(change: MetricChange) -> tuple[bool, bool, bool, float]:
    """First those of the training; among them those that are not finite any more, then those that were
    constant, then by their score."""
    size = math.fabs(change.score or 0.0)
    return change.of_machine, not change.becomes_not_finite, not change.was_constant, -size
