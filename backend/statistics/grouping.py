"""Several seeds as one curve with an interval, on a common grid.

The arithmetic alone, without the database, so that it can be compared with a slow version point by point;
`seed_groups` reads the points.

Grid point k is at x = (k + 1) * step; step is the smallest power of two for which the last x of the group is
on the grid. The value of a run there is the mean of its finite values in (k * step, (k + 1) * step]; if it
has no point there, the value on the straight line between its neighbours, or after its last one that value.
It has no value before its first point, after its current x, or where its latest point is not finite.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from backend.statistics.columns import Array, Columns
from backend.statistics.estimates import INTERVAL_NAME, MIN_SEEDS, medians
from backend.statistics.means import (
    MIN_SEEDS_IQM,
    MIN_SEEDS_MEAN,
    bootstrap,
    interquartile_means,
    means,
)

Interval = Literal["ci95", "sd", "se", "bootstrap", "min_max"]
Centre = Literal["median", "mean", "iqm"]

CENTRES: dict[Centre, str] = {"median": "median", "mean": "mean", "iqm": "interquartile mean"}
_MIN_RUNS: dict[Centre, int] = {"median": MIN_SEEDS, "mean": MIN_SEEDS_MEAN, "iqm": MIN_SEEDS_IQM}
"""Minimum number of runs for the 95 % interval of each centre."""
MIN_BOOTSTRAP = 5
"""Minimum number of runs for a bootstrap."""
_BANDS = {"sd": "± 1 s.d.", "se": "± 1 s.e.", "min_max": "min–max"}


@dataclass(frozen=True)
class Spread:
    """What is drawn of several seeds: a line, and a band around it."""

    centre: Centre
    interval: Interval
    seeds: bool = False
    """Whether each seed is drawn as a thin line, too."""

    @classmethod
    def chosen(cls, centre: Centre | None, interval: Interval, *, seeds: bool = False) -> "Spread":
        """The spread with this centre; by default the median, with a standard deviation or error the mean,
        with a bootstrap the interquartile mean.

        Raises:
            ValueError: there is no such band.
        """
        usual: dict[Interval, Centre] = {"sd": "mean", "se": "mean", "bootstrap": "iqm"}
        centre = centre or usual.get(interval, "median")
        if interval == "bootstrap" and centre == "median":
            raise ValueError(
                "a median has an exact interval in place of a bootstrap: use ci95, or mean or iqm as centre"
            )
        if interval == "se" and centre == "median":
            raise ValueError(
                "a median has no standard error: use ci95, sd or min_max, or mean or iqm as centre"
            )
        return cls(centre, interval, seeds)

    @property
    def band(self) -> str:
        """Name of the band."""
        if self.interval == "ci95":
            return (
                INTERVAL_NAME
                if self.centre == "median"
                else f"95 % CI of the {CENTRES[self.centre]} (Student’s t)"
            )
        if self.interval == "bootstrap":
            return f"95 % of bootstrapped {CENTRES[self.centre]}s"
        return _BANDS[self.interval]

    @property
    def min_runs(self) -> int:
        """Minimum number of runs for the band."""
        return {"ci95": _MIN_RUNS[self.centre], "bootstrap": MIN_BOOTSTRAP}.get(self.interval, 1)


def draws_seeds(n_runs: int, spread: Spread) -> bool:
    """Whether each run is drawn in place of a band, because there are too few for it."""
    return n_runs < spread.min_runs


def interval_name(n_runs: int, spread: Spread) -> str:
    """What `low` and `high` of a group are, or what is drawn instead."""
    if not draws_seeds(n_runs, spread):
        return spread.band
    if spread.interval == "bootstrap":
        return f"each seed (a bootstrap needs {MIN_BOOTSTRAP})"
    interval = "an interval" if spread.centre == "median" else f"an interval of the {CENTRES[spread.centre]}"
    return f"each seed ({interval} needs {_MIN_RUNS[spread.centre]})"


def grid_step(furthest: float, max_points: int) -> float:
    """The smallest power of two with which `max_points` grid points reach `furthest`; 1 if there are no
    points."""
    if not furthest > 0:
        return 1.0
    step = 2.0 ** math.ceil(math.log2(furthest / max_points))
    while math.ceil(furthest / step) > max_points:  # if log2 was rounded down
        step *= 2
    return step


def on_grid(x: Array, y: Array, step: float, n_points: int, at: float = 0.0, first: int = 0) -> Array:
    """One run's values at `n_points` grid points from point `first` on; NaN outside its range.

    Between two values they lie on a straight line, as the curve of a single run does. The last one holds
    until the run's current x (`at`), so that a run does not leave the mean between its last episode and its
    end. A line does not go beyond a value that is not finite, which is drawn as a gap.
    """
    if not len(x):
        return np.full(n_points, np.nan)
    # The grid points in which the run has rows, ascending, and the mean of each.
    finite = np.isfinite(y)
    cells, cell_of = np.unique(_cells(x, step), return_inverse=True)
    count = np.bincount(cell_of[finite], minlength=len(cells))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        means = np.bincount(cell_of[finite], y[finite], minlength=len(cells)) / count
    ends_finite = np.zeros(len(cells), bool)
    ends_finite[cell_of] = finite  # the last row of each cell is the last one to be assigned

    # Of each wanted grid point, the cell at or before it, and the one after that, if a line leads there.
    wanted = first + np.arange(n_points)
    before = np.searchsorted(cells, wanted, side="right") - 1
    after = np.minimum(before + 1, len(cells) - 1)
    has_line = (before >= 0) & (count[after] > 0)
    share = np.where(has_line, (wanted - cells[before]) / np.maximum(cells[after] - cells[before], 1), 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        between = means[before] + share * np.where(has_line, means[after] - means[before], 0.0)
    values = np.where(ends_finite[before], between, np.nan)
    values = np.where(cells[before] == wanted, means[before], values)
    end = max(int(cells[-1]) + 1, math.ceil(at / step))
    return np.where((before < 0) | (wanted >= end), np.nan, values)


def lacks_value(x: Array, step: float, n_points: int, at: float, reached: float, first: int = 0) -> Array:
    """At which grid points a run has no value though it has come there: before its first point, and after its
    last one and `at`, up to `reached`. A mean of the other runs would be one of those whose episodes happen
    to end there. A run without points lacks none."""
    if not len(x):
        return np.zeros(n_points, bool)
    cells = _cells(x, step)
    wanted = first + np.arange(n_points)
    end = max(int(cells.max()) + 1, math.ceil(at / step))
    is_outside = (wanted < cells.min()) | (wanted >= end)
    return np.asarray(is_outside & (wanted * step < max(reached, float(x.max()))))


def _cells(x: Array, step: float) -> Array:
    """The grid point of each row."""
    return np.asarray(np.maximum(np.ceil(x / step).astype("<i8") - 1, 0))


def summary(values: Array, spread: Spread) -> Columns:
    """Mean, median and interquartile mean over runs, with the band around the chosen one.

    Args:
        values: one row per run, one column per grid point; NaN if a run has no value.
        spread: what is drawn.

    Returns:
        `mean`, `median`, `iqm`, `low`, `high` (NaN for fewer runs than the interval needs) and `n`, the
        number of runs with a value.
    """
    n = (~np.isnan(values)).sum(axis=0)
    mean, deviation, of_mean = means(values)
    iqm, of_iqm = interquartile_means(values)
    median, low, high = medians(values)
    middle = {"mean": mean, "median": median, "iqm": iqm}[spread.centre]
    error = of_iqm if spread.centre == "iqm" else of_mean
    if spread.interval == "min_max":
        low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    elif spread.interval == "sd":
        low, high = middle - deviation, middle + deviation
    elif spread.interval == "se":
        low, high = middle - error.standard, middle + error.standard
    elif spread.interval == "bootstrap":
        low, high = bootstrap(values, spread.centre, MIN_BOOTSTRAP)
    elif spread.centre != "median":
        low, high = middle - error.half_ci, middle + error.half_ci
    if spread.interval == "min_max":
        low, high = np.where(n > 1, low, np.nan), np.where(n > 1, high, np.nan)
    return {"mean": mean, "median": median, "iqm": iqm, "low": low, "high": high, "n": n}
