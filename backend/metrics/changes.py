"""What changed in a run from one stretch of agent steps to the next."""

import math

import numpy as np
from sqlalchemy.orm import Session

from backend.checkpoints import service as checkpoints
from backend.db import Series
from backend.metrics import repository, service
from backend.metrics.catalogue import describe
from backend.metrics.charts import Axes, SeriesBuckets, curves
from backend.metrics.schemas import Changes, CheckpointBefore, MetricChange
from backend.specs.run_fields import EXTERNAL
from backend.statistics.changes import change

MAX_SHOWN = 12
"""Metrics of an answer: those that changed most."""

_BUCKETS = 400
"""Of both stretches of a series together: what is compared are means of a few consecutive points."""


def of(session: Session, run_id: str, low: int, high: int) -> Changes:
    """The metrics that changed most in a range of agent steps against the range of the same length before it.

    Args:
        session: a reading session.
        run_id: the run.
        low: agent step at which the range starts.
        high: agent step at which it ends.

    Raises:
        NotFound: there is no such run.
    """
    run = service.find_runs(session, [run_id])[run_id]
    start = max(0, low - (high - low))
    whole = [
        series
        for series in repository.list_series(session, [run_id])
        if series.n_points and not series.source
    ]
    axes = Axes("agent_steps", _BUCKETS, span=(float(start), float(high)))
    with service.bounded(len(whole), axes):
        drawn = curves(session, whole, axes)
    compared = [found for series in whole if (found := _change(series, drawn[series.id], start, low, high))]
    compared.sort(key=_rank)
    before = (
        []
        if run.origin == EXTERNAL  # its files cannot be loaded
        else [row for row in checkpoints.resumable(session, run_id) if row.agent_steps <= low]
    )
    return Changes(
        before_from=start,
        range_from=low,
        range_to=high,
        n_metrics=len(compared),
        items=compared[:MAX_SHOWN],
        checkpoint=CheckpointBefore.model_validate(before[0], from_attributes=True) if before else None,
    )


def _change(series: Series, curve: SeriesBuckets, start: int, low: int, high: int) -> MetricChange | None:
    x, mean = curve.buckets["agent_steps"], curve.buckets["mean"]
    before, inside = mean[(x >= start) & (x < low)], mean[(x >= low) & (x <= high)]
    found = change(before, inside)
    lost = bool(np.isfinite(before).all() and not np.isfinite(inside).all())
    if found is None and not (lost and len(before)):
        return None
    return MetricChange(
        metric=series.metric,
        title=describe(series.metric).title,
        before=found.before if found else float(np.median(before)),
        inside=found.inside if found else None,
        score=found.z if found else None,
        was_constant=found is not None and found.z is None,
        becomes_not_finite=lost,
    )


def _rank(one: MetricChange) -> tuple[bool, bool, float]:
    """First those that are not finite any more, then those that were constant, then by their score."""
    return not one.becomes_not_finite, not one.was_constant, -math.fabs(one.score or 0.0)
