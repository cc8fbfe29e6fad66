"""Whether two groups of runs differ: the exact permutation test of P(A > B), and Holm's correction.

If the settings of two groups make no difference, every assignment of the N = n + m scores to the groups is
equally likely. The two-sided p-value is the share of all C(N, n) assignments whose P(A > B) is at least as
far from 1/2 as the observed one. P(A > B) depends on the scores only through their ranks (Mann and Whitney
1947),

    n m P(A > B) = sum of the ranks of A - n (n + 1) / 2,

so the assignments are counted by their sum of ranks instead of one by one: the p-value is exact for groups of
any size, with ties (which share their mean rank), and without random numbers.

How many scores decide follows from Noether 1987, "Sample Size Determination for Some Common Nonparametric
Tests", section 3: with N / 2 scores in each group, the test of size alpha finds a difference with probability
1 - beta if

    N = (z_(1 - alpha / 2) + z_(1 - beta))^2 / (3 (P(A > B) - 1/2)^2).
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from math import ceil, comb
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from backend.statistics.estimates import Estimate, Scores, probability_of_improvement

SIGNIFICANCE = 0.05
POWER = 0.8
"""Probability with which `seeds_to_decide` finds a difference as large as the observed one."""
MAX_SEEDS_TO_DECIDE = 50
_MIN_OVERLAPPING = 4
"""Scores in each group from which P(A > B) of groups that overlap is no guess: with fewer, their difference
has no interval."""


def permutation_p_value(a: Scores, b: Scores) -> float:
    """The exact two-sided p-value.

    Args:
        a: f8[n], n >= 1, finite.
        b: f8[m], m >= 1, finite.
    """
    ranks = _doubled_ranks(np.concatenate([a, b]))
    n, observed = len(a), ranks[: len(a)].sum()
    if len(b) < n:  # the sums of both groups add up to a constant
        n, observed = len(b), ranks[len(a) :].sum()
    counts = _assignments(tuple(np.sort(ranks).tolist()), n)
    expected = n * (len(ranks) + 1)
    as_far = np.abs(np.arange(len(counts)) - expected) >= abs(observed - expected)
    return float(counts[as_far].sum() / counts.sum())


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number (Holm 1979): below 0.05 with a probability of at most 5 % for any of
    the comparisons without a difference.

    p_(i) becomes max over j <= i of min(1, (m - j + 1) p_(j)), in ascending order.
    """
    p = np.array(p_values, "f8")
    order = np.argsort(p, kind="stable")
    scaled = np.minimum(1.0, np.arange(len(p), 0, -1) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(scaled) if len(p) else scaled
    return [float(value) for value in adjusted]


def seeds_to_differ(n: int, m: int, comparisons: int) -> int | None:
    """How many seeds in each group could show a significant difference, if n and m cannot.

    The lowest p-value, 2 / C(n + m, n), is that of groups that do not overlap; Holm's correction multiplies
    it by at most the number of comparisons.

    Returns:
        None if n and m seeds could show one already.
    """
    if _can_differ(n, m, comparisons):
        return None
    seeds = 1
    while not _can_differ(seeds, seeds, comparisons):
        seeds += 1
    return seeds


def seeds_to_decide(a: Scores, b: Scores, comparisons: int) -> int | None:
    """How many seeds in each group find the difference that these scores show, with a probability of 80 %
    (Noether 1987).

    Holm's correction is taken at its strictest: alpha is 0.05 over the number of comparisons.

    Args:
        a: f8[n], finite.
        b: f8[m], finite.
        comparisons: how many comparisons are corrected for.

    Returns:
        More than the smaller group has. None if it cannot be known: groups of fewer than four scores overlap,
        the scores favour neither group, or more than `MAX_SEEDS_TO_DECIDE` were needed.
    """
    favour = abs(probability_of_improvement(a, b) - 0.5)
    fewest = min(len(a), len(b))
    if favour == 0.5:  # as long as they do not overlap, the fewest that can differ do
        seeds = seeds_to_differ(fewest, fewest, comparisons) or fewest + 1
        return seeds if seeds <= MAX_SEEDS_TO_DECIDE else None
    if favour == 0.0 or fewest < _MIN_OVERLAPPING:
        return None
    quantile = NormalDist().inv_cdf
    z = quantile(1 - SIGNIFICANCE / comparisons / 2) + quantile(POWER)
    seeds = max(ceil(z**2 / (6 * favour**2)), fewest + 1)
    return seeds if seeds <= MAX_SEEDS_TO_DECIDE else None


def difference(a: Scores, b: Scores) -> Estimate:
    """How much higher A scores: the median of all differences a_i - b_j, with its interval (Hodges and
    Lehmann 1963).

    The 95 % interval holds the shifts of B by which the test would find no difference. It exists from four
    runs a side, or for example from three and five.
    """
    differences = np.sort(np.subtract.outer(a, b), axis=None)
    value = float(np.median(differences))
    rank = _difference_rank(*sorted((len(a), len(b))))
    if rank == 0:
        return Estimate(value, None, None)
    return Estimate(value, float(differences[rank - 1]), float(differences[-rank]))


def _can_differ(n: int, m: int, comparisons: int) -> bool:
    return 2 * comparisons < SIGNIFICANCE * comb(n + m, n)


def _doubled_ranks(scores: Scores) -> npt.NDArray[np.int64]:
    """Twice the ranks, which are whole numbers also for ties."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    doubled: npt.NDArray[np.int64] = (2 * np.cumsum(counts) - counts + 1)[place]
    return doubled


@lru_cache(maxsize=256)
def _assignments(ranks: tuple[int, ...], n: int) -> Scores:
    """By their sum, the number of ways to choose n of the ranks, in ascending order."""
    ways = np.zeros((n + 1, sum(ranks[len(ranks) - n :]) + 1))
    ways[0, 0] = 1.0
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    counts: Scores = ways[n]
    return counts


@cache
def _difference_rank(n: int, m: int) -> int:
    """The rank k of the ends of a difference's interval, n <= m; 0 if there is none.

    The test finds a difference if fewer than k of the n m differences are on one side of 0.
    """
    counts = _assignments(tuple(range(1, n + m + 1)), n)[n * (n + 1) // 2 :]
    return int((2 * np.cumsum(counts) < SIGNIFICANCE * comb(n + m, n)).sum())
