"""The highest training scores of runs over time, kept between requests until their data change."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from sqlalchemy import Pool
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics.catalogue import EPISODE_RETURN
from backend.statistics.members import History, Points, training_history

_RUNS_AT_ONCE = 50
"""Runs whose whole curves are in memory at the same time."""
_KEPT_ROWS = 2**20
"""Maximum number of kept scores: some 25 MB."""
_COLUMNS = ("agent_steps", "wall_time_s", "value")
_Key = tuple[str, int]
"""A run's id and its revision."""


class _KnownHighs:
    """The histories of highest scores that were read last, of a database's runs."""

    def __init__(self) -> None:
        self._highs: OrderedDict[_Key, History] = OrderedDict()
        self._n_rows = 0
        self._lock = Lock()

    def get(self, keys: Sequence[_Key]) -> dict[str, History]:
        """The known histories among these, by run."""
        with self._lock:
            known = [key for key in keys if key in self._highs]
            for key in known:
                self._highs.move_to_end(key)
            return {key[0]: self._highs[key] for key in known}

    def put(self, highs: Mapping[_Key, History]) -> None:
        """Keep further histories; the least recently used are dropped."""
        with self._lock:
            for key, history in highs.items():
                if key not in self._highs:
                    self._highs[key] = history
                    self._n_rows += len(history.scores)
            while self._n_rows > _KEPT_ROWS:
                _, history = self._highs.popitem(last=False)
                self._n_rows -= len(history.scores)


_known: WeakKeyDictionary[Pool, _KnownHighs] = WeakKeyDictionary()
"""By the pool of the database's connections: engines with other options share it."""


def training_highs(session: Session, versions: Mapping[str, int]) -> dict[str, History]:
    """By run, the training scores that exceed all before.

    Args:
        session: a session.
        versions: the runs, with their revisions.
    """
    known = _known.setdefault(session.get_bind().engine.pool, _KnownHighs())
    by_run = known.get([*versions.items()])
    missing = [run_id for run_id in versions if run_id not in by_run]
    for first in range(0, len(missing), _RUNS_AT_ONCE):
        run_ids = missing[first : first + _RUNS_AT_ONCE]
        points = _points(session, run_ids)
        read = {run_id: training_history(points.get(run_id, Points())).highs() for run_id in run_ids}
        known.put({(run_id, versions[run_id]): history for run_id, history in read.items()})
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
