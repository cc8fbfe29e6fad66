"""Which of two settings is better, and how sure one may be of it with a few seeds.

Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice": the interquartile
mean instead of the mean, and percentile intervals of a stratified bootstrap instead of a point. Their package
`rliable` does one resample after another and brings pandas, SciPy and statsmodels; here all resamples are one
array. The tests hold both against each other.

`strata` are scores by world: a resample draws, with replacement, as many runs of each world as there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.metrics.chunks import Array

RESAMPLES = 5_000
CONFIDENCE = 0.95
_TRIMMED = 0.25
_SEED = 0
"""The same scores give the same interval each time they are looked at."""


@dataclass(frozen=True)
class Estimate:
    """A number and where it may lie; without an interval where one run is all there is."""

    value: float
    low: float | None
    high: float | None


def interquartile_mean(scores: Array) -> Array:
    """Mean of the middle half: the lowest and the highest quarter (rounded down) are left out.

    Args:
        scores: f8[..., n], n >= 1.

    Returns:
        f8[...].
    """
    n = scores.shape[-1]
    cut = int(_TRIMMED * n)
    middle: Array = np.sort(scores, axis=-1)[..., cut : n - cut].mean(axis=-1)
    return middle


def iqm(strata: Sequence[Array]) -> Estimate:
    """The interquartile mean over all runs of all worlds, with its interval."""
    rng = np.random.default_rng(_SEED)
    resamples = np.concatenate([_resampled(scores, rng) for scores in strata], axis=1)
    value = float(interquartile_mean(np.concatenate(strata)))
    return _estimate(value, interquartile_mean(resamples), resamples.shape[1] > 1)


def median(scores: Array) -> Estimate:
    """The median with its interval. Infinity stands for what never came to be, and may be the answer."""
    rng = np.random.default_rng(_SEED)
    medians = np.median(_resampled(scores, rng), axis=1)
    return _estimate(float(np.median(scores)), medians, len(scores) > 1)


def probability_of_improvement(a: Sequence[Array], b: Sequence[Array]) -> Estimate:
    """How likely a run of `a` beats one of `b` in the same world: the mean of it over worlds.

    P(A > B) = 1/(n m) sum_ij [1(a_i > b_j) + 1(a_i = b_j) / 2]

    Args:
        a: scores by world.
        b: scores by world, in the same order.
    """
    rng = np.random.default_rng(_SEED)
    values, resamples = [], []
    for ours, theirs in zip(a, b, strict=True):
        wins = (ours[:, None] > theirs) + 0.5 * (ours[:, None] == theirs)
        values.append(wins.mean())
        drawn = (_counts(len(ours), rng) @ wins * _counts(len(theirs), rng)).sum(axis=1)
        resamples.append(drawn / wins.size)
    several = all(len(scores) > 1 for scores in (*a, *b))
    return _estimate(float(np.mean(values)), np.mean(resamples, axis=0), several)


def _resampled(scores: Array, rng: np.random.Generator) -> Array:
    drawn: Array = scores[rng.integers(0, len(scores), (RESAMPLES, len(scores)))]
    return drawn


def _counts(n: int, rng: np.random.Generator) -> Array:
    """How often each of n runs is in each resample: f8[RESAMPLES, n]."""
    return rng.multinomial(n, np.full(n, 1 / n), RESAMPLES).astype("f8")


def _estimate(value: float, resamples: Array, several: bool) -> Estimate:
    if not several:
        return Estimate(value, None, None)
    edge = (1 - CONFIDENCE) / 2
    # Between two resamples nothing is interpolated: one of them may be infinite.
    low, high = np.quantile(resamples, [edge, 1 - edge], method="inverted_cdf")
    return Estimate(value, float(low), float(high))
