"""Point estimates and exact intervals of scores over seeds.

Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice", define the
interquartile mean and the probability of improvement.

The interval of a median runs from the k-th lowest to the k-th highest of n scores. It holds for scores of any
distribution: the median lies outside it if fewer than k scores fall on one side, which has probability

    2 P(Binomial(n, 1/2) < k).

`docs/statistics.md` compares it with other methods. Hand-written, because rliable's intervals are percentile
bootstraps, which cover too little with few seeds; the tests compare the point estimates with it.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]

MIN_SEEDS = 5
"""With fewer scores no interval of a median covers it with a probability of 90 %."""
INTERVAL_NAME = "95 % CI of the median (94 % at 5 seeds)"

_MAX_MISSES = 0.05
_MAX_MISSES_OF_RANGE = 0.1
"""Maximum probability that the range of the scores misses the median; for five scores it is 1/16."""
_TRIMMED = 0.25


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; without an interval for too few seeds."""

    value: float
    low: float | None
    high: float | None


def interquartile_mean(scores: Scores) -> float:
    """Mean of the middle half: the lowest and the highest quarter (rounded down) are left out.

    Args:
        scores: f8[n], n >= 1.
    """
    n = len(scores)
    cut = int(_TRIMMED * n)
    return float(np.sort(scores)[cut : n - cut].mean())


def median(scores: Scores) -> Estimate:
    """The median with its interval.

    Args:
        scores: f8[n], n >= 1. Infinity means "not reached", and may be the result.
    """
    middle, low, high = (float(column[0]) for column in medians(scores[:, None]))
    if len(scores) < MIN_SEEDS:
        return Estimate(middle, None, None)
    return Estimate(middle, low, high)


def medians(values: Scores) -> tuple[Scores, Scores, Scores]:
    """The median of each column, and both ends of its interval.

    Args:
        values: one row per run, one column per point; NaN if a run has no value.

    Returns:
        The medians (NaN without values), the lower ends and the upper ends (NaN for fewer than `MIN_SEEDS`
        values).
    """
    ordered = np.sort(values, axis=0)  # NaN comes last
    n = (~np.isnan(values)).sum(axis=0)
    sizes, place = np.unique(n, return_inverse=True)
    ranks = np.array([interval_rank(int(size)) for size in sizes], np.intp)[place]

    def at(rank: npt.NDArray[np.intp]) -> Scores:
        """The values of 1-based ranks."""
        chosen: Scores = np.take_along_axis(ordered, np.maximum(rank - 1, 0)[None], axis=0)[0]
        return chosen

    below, above = at((n + 1) // 2), at(n // 2 + 1)
    # Two infinite halves must not be added to a NaN, nor two large ones to infinity.
    middle = np.where(below == above, below, below / 2 + above / 2)
    known = ranks > 0
    return (
        middle,
        np.where(known, at(ranks), np.nan),
        np.where(known, at(n + 1 - np.maximum(ranks, 1)), np.nan),
    )


@cache
def interval_rank(n: int) -> int:
    """The rank k of the ends of a median's interval; 0 for fewer than `MIN_SEEDS` scores."""
    # Whole numbers: those of thousands of scores exceed any float.
    misses, of = _MAX_MISSES.as_integer_ratio()
    rank, outside, count = 0, 0, 1
    while rank < n // 2:
        outside += 2 * count
        if outside * of > misses << n:
            break
        rank += 1
        count = count * (n - rank + 1) // rank
    misses, of = _MAX_MISSES_OF_RANGE.as_integer_ratio()
    return 1 if rank == 0 and misses << n >= 2 * of else rank


def probability_of_improvement(a: Scores, b: Scores) -> float:
    """Probability that a run of `a` scores higher than one of `b`.

    P(A > B) = 1/(n m) sum_ij [1(a_i > b_j) + 1(a_i = b_j) / 2]

    Args:
        a: f8[n], n >= 1.
        b: f8[m], m >= 1.
    """
    return float(((a[:, None] > b) + 0.5 * (a[:, None] == b)).mean())
