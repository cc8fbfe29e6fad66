"""What the training doctor says of stored runs."""

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import service as metrics
from backend.analysis.metrics.axes import Axes
from backend.analysis.metrics.charts import SeriesBuckets, curves
from backend.analysis.symptoms.rules import METRICS, RULES, Curve, Finding, Rule, Training
from backend.db import Run, Series
from backend.drawing.catalogue import EPISODE_RETURN
from backend.statistics.columns import NOT_FINITE

_POINTS = 400
"""Buckets of a curve that are looked at."""


def symptoms(session: Session, run: Run) -> list[tuple[Rule, Finding]]:
    """What is wrong with a run, by its own series; mostly nothing."""
    training = _training(session, run)
    results = ((rule, rule.find(training)) for rule in RULES)
    return [(rule, finding) for rule, finding in results if finding is not None]


def _training(session: Session, run: Run) -> Training:
    chosen = metrics.choose(session, {run.id: run}, [EPISODE_RETURN, *sorted(METRICS)], (), scored=True)
    rows = [row for row in metrics.on_one_axis(chosen, "agent_steps") if row.source == "" and row.n_points]
    axes = Axes("agent_steps", _POINTS)
    read = curves(session, rows, axes, is_merged=True, has_gaps=True)
    by_metric = {row.metric: _curve(row, read[row.id]) for row in rows}
    returns = by_metric.pop(EPISODE_RETURN, None)
    return Training(by_metric, returns, run.spec["config"], run.wall_time_s)


def _curve(series: Series, read: SeriesBuckets) -> Curve:
    buckets = read.buckets
    y = buckets["mean"].astype(float)
    lost = sum((buckets[name] for name in NOT_FINITE if name in buckets), np.zeros(len(y)))
    return Curve(
        buckets["agent_steps"],
        np.where(lost > 0, np.nan, y),
        np.nan if series.min_value is None else series.min_value,
        np.nan if series.max_value is None else series.max_value,
    )
