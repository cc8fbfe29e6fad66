"""The mean curves of seeds, kept between requests until their data change."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics.axes import Axes
from backend.analysis.metrics.seed_groups import group_curve
from backend.db import Series
from backend.db.engine import caches_of
from backend.platform.caching import CacheKind
from backend.statistics.columns import Array, Columns
from backend.statistics.grouping import Spread

SPREAD = Spread.chosen("mean", "se")
_GRIDS = CacheKind[Hashable, Columns](1_000)
"""Some 10 kB each."""


@dataclass(frozen=True)
class ArmCurve:
    """An arm's score over training on one environment: the mean of some of its runs."""

    arm: str
    panel: str
    """Title of the environment."""
    x: Array
    mean: Array
    low: Array
    high: Array
    n: Array
    """Number of runs with a value at each x."""
    n_runs: int

    @property
    def is_whole(self) -> Array:
        """At which x all runs have a value."""
        return np.asarray(self.n >= self.n_runs)

    @classmethod
    def of_grid(
        cls, arm: str, panel: str, grid: Columns, n_runs: int, *, x_unit: float, y_unit: float
    ) -> Self:
        """The curve of a grid's rows that have a mean, in the units of the axes."""
        shown = np.isfinite(grid["mean"])
        mean, low, high = (grid[name][shown] / y_unit for name in ("mean", "low", "high"))
        return cls(arm, panel, grid["x"][shown] / x_unit, mean, low, high, grid["n"][shown], n_runs)


def mean_curve(
    session: Session, members: Sequence[Series], axes: Axes, reached: tuple[float, ...]
) -> Columns:
    """The mean curve of some series, whose runs have come to these places: that of finished runs never
    changes."""
    grids = caches_of(session)[_GRIDS]
    key = axes, tuple((row.run_id, row.id, row.revision, row.n_points) for row in members), reached
    grid = grids.known([key]).get(key)
    if grid is None:
        grid = group_curve(session, members, axes, SPREAD).grid
        grids.put({key: grid})
    return grid
