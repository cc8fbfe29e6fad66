"""The highest training scores of runs over time, kept between requests until their data change."""

from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository as metrics
from backend.db.engine import caches_of
from backend.drawing.catalogue import EPISODE_RETURN
from backend.platform.caching import CacheKind
from backend.statistics.members import History, Points, training_history

_RUNS_AT_ONCE = 50
"""Runs whose whole curves are in memory at the same time."""
_COLUMNS = ("agent_steps", "wall_time_s", "value")
_Key = tuple[str, int]
"""A run's id and its revision."""


_HIGHS = CacheKind[_Key, History](2**20, lambda history: max(1, len(history.scores)))
"""Some 25 MB."""


def training_highs(session: Session, versions: Mapping[str, int]) -> dict[str, History]:
    """By run, the training scores that exceed all before.

    Args:
        session: a session.
        versions: the runs, with their revisions.
    """
    kept = caches_of(session)[_HIGHS]
    by_run = {run_id: history for (run_id, _), history in kept.known(versions.items()).items()}
    missing = [run_id for run_id in versions if run_id not in by_run]
    for first in range(0, len(missing), _RUNS_AT_ONCE):
        run_ids = missing[first : first + _RUNS_AT_ONCE]
        points = _points(session, run_ids)
        read = {run_id: training_history(points.get(run_id, Points())).highs() for run_id in run_ids}
        kept.put({(run_id, versions[run_id]): history for run_id, history in read.items()})
        by_run |= read
    return by_run


def _points(session: Session, run_ids: Sequence[str]) -> dict[str, Points]:
    """The points of the score of each run."""
    series = [row for row in metrics.list_series(session, run_ids, [EPISODE_RETURN]) if not row.source]
    chunks = metrics.live_chunks(session, [row.id for row in series])
    read = metrics.points_of(session, (chunk for row in series for chunk in chunks[row.id]), _COLUMNS)
    points = {}
    for row in series:
        columns = [read[chunk.id] for chunk in chunks[row.id]]
        if columns:
            joined = (np.concatenate([column[name] for column in columns]).astype(float) for name in _COLUMNS)
            points[row.run_id] = Points(*joined)
    return points
