"""Means over seeds with their standard errors and intervals, for all points of a curve in one call.

The mean has Student's interval, mean ± t(n - 1) s / sqrt(n). The interquartile mean has that of Tukey and
McLaughlin (1963): with g = floor(n / 4) scores left out at each end and s_w the standard deviation of the
scores with those replaced by the nearest remaining one,

    SE = s_w sqrt(n - 1) / sqrt(h (h - 1)),  h = n - 2 g,  with t(h - 1),

which is Yuen's form of it. Without scores left out it is the interval of the mean. Of few scores both cover
too little (`docs/statistics.md`), so there are none then.

Hand-written, because SciPy and rliable compute neither for columns with different numbers of scores together.
"""

import math
from dataclasses import dataclass

import numpy as np

from backend.statistics.estimates import Scores

MIN_SEEDS_MEAN = 11
MIN_SEEDS_IQM = 13
"""Scores from which on the intervals cover at least 90 % of every kind of scores in `docs/statistics.md`."""

_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""97.5 % points of Student's t distribution with 1 to 30 degrees of freedom."""
_Z_975 = 1.959964
_COLUMNS_AT_ONCE = 256


def trailing_means(values: Scores, n: int) -> Scores:
    """The mean of the last `n` values after each value, of fewer at the start.

    Each is computed from its own values alone, in linear time: from the part of a block of `n` up to the
    value, and the rest of the block before. A difference of cumulative sums would have no digits left after
    one huge value.
    """
    rows = np.arange(len(values))
    blocks = np.concatenate([values, np.zeros(-len(values) % n)]).reshape(-1, n)
    up_to = np.cumsum(blocks, axis=1).ravel()[: len(values)]
    onwards = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1].ravel()
    starts = np.maximum(rows - n + 1, 0)
    rest = np.where(starts % n > 0, onwards[starts], 0.0)
    return np.asarray((up_to + rest) / np.minimum(rows + 1, n))


@dataclass(frozen=True)
class Error:
    """The uncertainty of a mean at each point."""

    standard: Scores
    """Standard error; NaN for fewer than two runs."""
    half_ci: Scores
    """Half of the 95 % interval; NaN for fewer runs than it needs."""


def t_975(degrees: int) -> float:
    """The 97.5 % point of Student's t distribution, to three decimals; NaN without degrees of freedom.

    From a table: to invert `distributions.student_upper_tail` takes 3 ms a value, and a chart needs hundreds.
    """
    if degrees < 1:
        return math.nan
    if degrees <= len(_T_975):
        return _T_975[degrees - 1]
    z, v = _Z_975, degrees
    return z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)


def means(values: Scores) -> tuple[Scores, Scores, Error]:
    """Mean, standard deviation and error of each column.

    Args:
        values: one row per run, one column per point; NaN if a run has no value.
    """
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=0) / n
        squares = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0)
        deviation = np.sqrt(np.where(n > 1, squares / (n - 1), np.nan))
        standard = deviation / np.sqrt(n)
    return mean, deviation, _error(standard, n, n, MIN_SEEDS_MEAN)


def interquartile_means(values: Scores) -> tuple[Scores, Error]:
    """Interquartile mean of each column, as `estimates.interquartile_mean`, and its error.

    Args:
        values: values of each group, as for `means`.
    """
    ordered = np.sort(values, axis=0)  # NaN comes last
    n = (~np.isnan(values)).sum(axis=0)
    cut = n // 4
    kept = n - 2 * cut
    rank = np.arange(len(values))[:, None]
    inside = (rank >= cut) & (rank < n - cut)
    ends = [np.maximum(cut, 0), np.maximum(n - cut - 1, 0)]
    lowest, highest = (np.take_along_axis(ordered, end[None], axis=0)[0] for end in ends)
    winsorized = np.where(rank < n, np.clip(ordered, lowest, highest), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        iqm = np.where(inside, ordered, 0.0).sum(axis=0) / np.where(kept > 0, kept, np.nan)
        _, deviation, _ = means(winsorized)
        standard = deviation * np.sqrt(n - 1) / np.sqrt(kept * (kept - 1))
    return iqm, _error(standard, n, kept, MIN_SEEDS_IQM)


N_RESAMPLES = 300
"""Number of bootstrap resamples for the bands of charts."""


def bootstrap(values: Scores, centre: str, least: int) -> tuple[Scores, Scores]:
    """The 2.5 % and 97.5 % points of the percentile bootstrap over runs, as in Agarwal et al. 2021.

    Every column is resampled in the same ways, whatever the others are, so that a band is smooth, and a curve
    that grows keeps its band.

    Args:
        values: values of each group, as for `means`.
        centre: `iqm`, else the mean.
        least: number of runs below which there is no band.
    """
    low, high = np.full((2, values.shape[1]), np.nan)
    known = ~np.isnan(values)
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        n = int(pattern.sum())
        if n < least:
            continue
        columns = np.flatnonzero(which.ravel() == number)
        drawn = np.random.default_rng(n).integers(0, n, (N_RESAMPLES, n))
        cut = n // 4 if centre == "iqm" else 0
        for batch in np.array_split(columns, -(-len(columns) // _COLUMNS_AT_ONCE)):
            samples = np.sort(values[pattern][:, batch][drawn], axis=1)
            centres = samples[:, cut : n - cut].mean(axis=1)
            low[batch], high[batch] = np.percentile(centres, [2.5, 97.5], axis=0)
    return low, high


def _error(standard: Scores, n: Scores, kept: Scores, min_n: int) -> Error:
    t = np.array([t_975(size - 1) for size in range(int(n.max(initial=0)) + 1)])
    return Error(standard, np.where(n >= min_n, t[kept] * standard, np.nan))
