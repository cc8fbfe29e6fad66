"""Oracle of a run's series as plain lists, for comparison with the stored series."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.analysis.metrics.chunks import POINT_DTYPES
from backend.db.engine import reading, writing
from backend.runs.runs import service as runs
from backend.specs.events import PointsEvent
from backend.statistics.columns import Columns
from tests.support.rows import make_run

Row = tuple[float, ...]
Key = tuple[str, str]

METRICS: list[Key] = [("rollout/episode_return", ""), ("loss/value", ""), ("actor/eps", "3")]


@dataclass
class RecordedRun:
    """A run in the database with a copy of the points that it should hold."""

    engine: Engine
    seed: int
    changes: dict[str, Any] = field(default_factory=dict)
    run_id: str = ""
    revision: int = 0
    attempt: int = 1
    live: dict[Key, list[Row]] = field(default_factory=dict)
    superseded: dict[Key, list[Row]] = field(default_factory=dict)
    cut_at: dict[Key, tuple[int, int]] = field(default_factory=dict)
    agent_steps: int = 0
    infinite: bool = False
    """Whether some values are infinite."""

    def __post_init__(self) -> None:
        self.run_id = make_run(self.engine, seed=self.seed, **self.changes).id
        self.rng = np.random.default_rng(self.seed)

    def append(self, sizes: dict[Key, int]) -> None:
        """One recorder batch: `sizes` new points for each series, some of them out of order."""
        points = []
        with writing(self.engine) as session:
            self.revision = self.touch(session)
            for (metric, source), n in sizes.items():
                new = self._draw(n)
                half = n // 2  # a batch may hold a series twice
                for part in (new[:half], new[half:]):
                    columns = [list(column) for column in zip(*part, strict=True)] or [[] for _ in range(6)]
                    named = dict(zip(POINT_DTYPES, columns, strict=True))
                    del named["revision"]
                    points.append(PointsEvent(metric=metric, source=source, **named))
                if n:
                    self.live.setdefault((metric, source), []).extend(new)
            repository.append(session, self.run_id, self.attempt, self.revision, points)

    def cut(self, share: float) -> None:
        """Resume from a checkpoint at this share of the agent steps."""
        after = int(self.agent_steps * share)
        self.attempt += 1
        with writing(self.engine) as session:
            self.revision = self.touch(session)
            repository.cut(session, self.run_id, after, self.revision)
        for key, rows in self.live.items():
            goes = [row for row in rows if row[0] > after]
            if goes:
                self.superseded.setdefault(key, []).extend(goes)
                self.live[key] = [row for row in rows if row[0] <= after]
                self.cut_at[key] = self.revision, after
        self.agent_steps = after

    def stored(self, key: Key) -> list[Row]:
        """The live rows in the database."""
        with reading(self.engine) as session:
            for series in repository.list_series(session, [self.run_id]):
                if (series.metric, series.source) == key:
                    return [
                        row for part in repository.all_points(session, series.id) for row in rows_of(part)
                    ]
        return []

    def _draw(self, n: int) -> list[Row]:
        steps = self.agent_steps + np.cumsum(self.rng.integers(0, 400, n))
        if n:
            self.agent_steps = int(steps[-1])
        late = self.rng.random(n) < 0.05
        steps = np.where(late, np.maximum(0, steps - self.rng.integers(0, 5000, n)), steps)
        value = np.where(self.rng.random(n) < 0.02, np.nan, self.rng.normal(size=n))
        if self.infinite:
            value = np.where(self.rng.random(n) < 0.01, self.rng.choice([np.inf, -np.inf], n), value)
        rows = zip(
            steps.tolist(),
            (4 * steps).tolist(),
            np.round(steps / 2000, 6).tolist(),
            (steps // 300).tolist(),
            value.tolist(),
            [self.revision] * n,
            strict=True,
        )
        return list(rows)

    def touch(self, session: Session) -> int:
        """The run's next revision."""
        run = runs.find(session, self.run_id, for_update=True)
        assert run is not None
        return runs.touch(session, run)


def rows_of(columns: Columns) -> list[Row]:
    """Columns as one tuple a row."""
    return list(zip(*(columns[name].tolist() for name in POINT_DTYPES), strict=True))


def columns_of(rows: list[Row]) -> Columns:
    """One tuple a row as columns."""
    return {
        name: np.array([row[at] for row in rows], dtype)
        for at, (name, dtype) in enumerate(POINT_DTYPES.items())
    }


def slow_buckets(rows: Columns, size: int, x: str) -> list[dict[str, float]]:
    """The definition, computed row by row."""
    buckets = []
    for first in range(0, len(rows["value"]), size):
        inside = [float(v) for v in rows["value"][first : first + size]]
        known = [v for v in inside if not math.isnan(v)]
        finite = all(math.isfinite(v) for v in known)
        mean = math.fsum(known) / len(known) if known and finite else sum(known) if known else math.nan
        buckets.append(
            {
                x: float(rows[x][first : first + size][-1]),
                "count": len(known),
                "mean": mean,
                "min": min(known, default=math.nan),
                "max": max(known, default=math.nan),
                "last": known[-1] if known else math.nan,
            }
        )
    return buckets
