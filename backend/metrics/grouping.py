"""Several seeds as one curve with an interval, on a grid that nothing else on the chart can move.

Grid point k stands at x = (k + 1) * step, where step is a power of two: the least with which the group's
own furthest x lies on the grid. A run's value there is the mean of its values in (k * step, (k + 1) * step],
or the one before where the run has none there; before its first value and beyond where it is, it has none.
"""

import json
import math
from functools import cache
from hashlib import sha256
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from backend.metrics.chunks import Array, Columns
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.own import OwnWorld
from backend.specs.run import default_config

Interval = Literal["ci95", "sd"]

INTERVAL_NAMES: dict[Interval, str] = {"ci95": "95 % CI of the mean (Student's t)", "sd": "± 1 s.d."}

# fmt: off
_T_975 = (
    12.7062047362, 4.3026527299, 3.1824463053, 2.7764451052, 2.5705818356, 2.4469118511, 2.3646242516,
    2.3060041352, 2.2621571628, 2.2281388520, 2.2009851601, 2.1788128297, 2.1603686565, 2.1447866879,
    2.1314495456, 2.1199052992, 2.1098155778, 2.1009220402, 2.0930240544, 2.0859634473, 2.0796138447,
    2.0738730679, 2.0686576104, 2.0638985616, 2.0595385528, 2.0555294386, 2.0518305165, 2.0484071418,
    2.0452296421, 2.0422724563,
)
# fmt: on


def t_975(degrees: int) -> float:
    """The 97.5 % quantile of Student's t: tabulated to 30 degrees of freedom, beyond by its expansion.

    t = z + (z^3 + z) / 4v + (5 z^5 + 16 z^3 + 3 z) / 96 v^2
          + (3 z^7 + 19 z^5 + 17 z^3 - 15 z) / 384 v^3 + ...    (Abramowitz and Stegun 26.7.5)
    """
    if degrees <= len(_T_975):
        return _T_975[degrees - 1]
    z = NormalDist().inv_cdf(0.975)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / math.pow(degrees, power) for power, term in enumerate(terms))


def settings_of(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of method and world; one that is younger than the run stands at its default."""
    own = json.dumps(spec.get("own"), sort_keys=True)
    config, environment_config = _defaults(spec["algorithm"], spec["environment"], own)
    return {
        "config": config | spec["config"],
        "environment_config": environment_config | spec["environment_config"],
    }


@cache
def _defaults(algorithm: str, environment: str, own: str) -> tuple[dict[str, Any], dict[str, Any]]:
    described = json.loads(own)
    world = OwnWorld.model_validate(described).environment() if described else ENVIRONMENTS.get(environment)
    known = ALGORITHMS.get(algorithm)
    return (
        default_config(known, world) if known and world else {},
        world.config().model_dump(mode="json") if world else {},
    )


def group_key(spec: dict[str, Any]) -> str:
    """The same for runs that differ in their seed alone (and in name, notes, tags, place and bounds)."""
    parts = {name: spec.get(name) for name in ("algorithm", "environment", "group")}
    text = json.dumps(parts | settings_of(spec), sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def grid_step(furthest: float, max_points: int) -> float:
    """The least power of two of which `max_points` reach `furthest`; 1 where there is nothing to reach."""
    if not furthest > 0:
        return 1.0
    step = 2.0 ** math.ceil(math.log2(furthest / max_points))
    while math.ceil(furthest / step) > max_points:  # where log2 was rounded down
        step *= 2
    return step


def on_grid(x: Array, y: Array, step: float, n_points: int, at: float = 0.0) -> Array:
    """One run's values at the `n_points` grid points; NaN outside its range. NaN among `y` is left out.

    A value holds until the next, and the last one to where the run is (`at`): it does not leave a mean, and
    widen its interval, between its last episode and its end.
    """
    known = ~np.isnan(y)
    x, y = x[known], y[known]
    values = np.full(n_points, np.nan)
    if not len(x):
        return values
    cell = np.maximum(np.ceil(x / step).astype("<i8") - 1, 0)
    count = np.bincount(cell, minlength=n_points)[:n_points]
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.bincount(cell, y, minlength=n_points)[:n_points] / count
    here = np.where(count > 0, np.arange(n_points), -1)
    held = values[np.maximum.accumulate(here)]
    occupied = np.flatnonzero(count)
    held[: occupied[0]] = np.nan
    held[max(occupied[-1] + 1, math.ceil(at / step)) :] = np.nan
    return held


def summary(values: Array, interval: Interval) -> Columns:
    """Mean over runs with its interval.

    Args:
        values: one row a run, one column a grid point; NaN where a run has no value.
        interval: `ci95` for mean ± t * s / sqrt(n), `sd` for mean ± s.

    Returns:
        `mean`, `low`, `high` (NaN for a single run) and `n`, how many runs are in each mean.
    """
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=0) / n
        squares = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0)
        half = np.sqrt(np.where(n > 1, squares / (n - 1), np.nan))
        if interval == "ci95":
            quantiles = np.array([np.nan, np.nan, *(t_975(v) for v in range(1, len(values)))])
            half *= quantiles[n] / np.sqrt(n)
        return {"mean": mean, "low": mean - half, "high": mean + half, "n": n}
