"""Simulated coverage of intervals, and false verdicts, for scores of known distributions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from backend.statistics.estimates import Scores, medians
from backend.statistics.means import interquartile_means, means, t_975
from backend.statistics.permutation import SIGNIFICANCE, difference, holm, permutation_p_value

METHODS = {
    "t": "Student's t, mean",
    "percentile": "percentile bootstrap, mean",
    "bca": "BCa bootstrap, mean",
    "studentised": "studentised bootstrap, mean",
    "percentile_iqm": "percentile bootstrap, IQM",
    "signed_rank": "signed-rank test inverted, pseudomedian",
    "order": "order statistics, median",
}
BEST = "order"
"""The method that `backend.statistics` uses."""

_EDGE = 0.025
_CHUNK = 100
Interval = tuple[Scores, Scores]


@dataclass(frozen=True)
class Population:
    """A distribution of scores, given by its quantile function."""

    quantiles: Callable[[Scores], Scores]

    def draw(self, rng: np.random.Generator, *shape: int) -> Scores:
        """Independent scores."""
        return self.quantiles(rng.random(shape))

    @cached_property
    def truths(self) -> dict[str, float]:
        """What the interval of each method should cover."""
        inner = self.quantiles((np.arange(100_000) + 0.5) / 100_000)
        mean = float(inner.mean())
        pairs = self.draw(np.random.default_rng(0), 200_000, 2)
        return dict.fromkeys(METHODS, mean) | {
            "percentile_iqm": float(inner[25_000:75_000].mean()),
            "signed_rank": float(np.median(pairs.mean(axis=1))),
            "order": float(self.quantiles(np.array([0.5]))[0]),
        }


def _bimodal(share: float) -> Population:
    """Scores around 1, and around 0 for the rest of the runs."""
    x = np.linspace(-1.0, 2.0, 30_001)
    below = (1 - share) * stats.norm.cdf(x / 0.1) + share * stats.norm.cdf((x - 1) / 0.1)
    return Population(lambda u: np.interp(u, below, x))


POPULATIONS = {
    "normal": Population(stats.norm.ppf),
    "skewed": Population(stats.expon.ppf),
    "bimodal": _bimodal(0.5),
    "one in five fails": _bimodal(0.8),
}


def coverages(
    population: Population, n: int, samples: int, resamples: int, rng: np.random.Generator
) -> dict[str, float]:
    """The share of samples of n scores whose interval covers the true value, by method; NaN for a method
    without an interval of finite length."""
    covered: dict[str, list[npt.NDArray[np.bool_]]] = {name: [] for name in METHODS}
    for chunk in _chunks(population.draw(rng, samples, n)):
        intervals = {
            "t": student_t(chunk),
            "signed_rank": signed_rank(chunk),
            "order": medians(chunk.T)[1:],
        }
        if resamples:
            intervals |= bootstraps(chunk, resamples, rng)
        for name, (low, high) in intervals.items():
            missing = ~np.isfinite(low) | ~np.isfinite(high)
            inside = (low <= population.truths[name]) & (population.truths[name] <= high)
            covered[name].append(np.where(missing.mean() > 0.5, np.nan, inside | missing))
    return {name: float(np.concatenate(shares).mean()) for name, shares in covered.items() if shares}


def student_t(samples: Scores) -> Interval:
    """Mean ± t s / sqrt(n)."""
    n = samples.shape[1]
    half = stats.t.ppf(1 - _EDGE, n - 1) * samples.std(axis=1, ddof=1) / np.sqrt(n)
    return samples.mean(axis=1) - half, samples.mean(axis=1) + half


def t_coverages(
    population: Population, n: int, samples: int, rng: np.random.Generator
) -> dict[Literal["mean", "iqm"], float]:
    """The share of samples of n scores whose interval by Student's t, as charts show it of enough scores,
    covers the true mean and interquartile mean."""
    scores = population.draw(rng, n, samples)
    mean, _, of_mean = means(scores)
    iqm, of_iqm = interquartile_means(scores)
    off = np.abs(mean - population.truths["t"])
    off_iqm = np.abs(iqm - population.truths["percentile_iqm"])
    return {
        "mean": float(np.mean(off <= t_975(n - 1) * of_mean.standard)),
        "iqm": float(np.mean(off_iqm <= t_975(n - 2 * (n // 4) - 1) * of_iqm.standard)),
    }


def signed_rank(samples: Scores) -> Interval:
    """The centres that Wilcoxon's signed-rank test does not reject: order statistics of Walsh averages."""
    n = samples.shape[1]
    i, j = np.triu_indices(n)
    walsh = np.sort((samples[:, i] + samples[:, j]) / 2, axis=1)
    ways = np.zeros(len(i) + 1)
    ways[0] = 1.0
    for rank in range(1, n + 1):
        ways[rank:] += ways[:-rank].copy()
    k = int((np.cumsum(ways) <= _EDGE * 2**n).sum())
    if k == 0:
        return np.full(len(samples), np.nan), np.full(len(samples), np.nan)
    return walsh[:, k - 1], walsh[:, -k]


def bootstraps(samples: Scores, resamples: int, rng: np.random.Generator) -> dict[str, Interval]:
    """The intervals of all bootstrap methods, from the same resamples."""
    S, n = samples.shape
    drawn = np.take_along_axis(samples[:, None], rng.integers(0, n, (S, resamples, n)), axis=2)
    mean, s = samples.mean(axis=1), samples.std(axis=1, ddof=1)
    means, deviations = drawn.mean(axis=2), drawn.std(axis=2, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.sort((means - mean[:, None]) / deviations, axis=1)  # infinite for a resample of one score
    means = np.sort(means, axis=1)
    cut = n // 4
    iqms = np.sort(np.sort(drawn, axis=2)[:, :, cut : n - cut].mean(axis=2), axis=1)
    return {
        "percentile": (_at(means, _EDGE), _at(means, 1 - _EDGE)),
        "bca": _bca(samples, means),
        "studentised": (mean - _at(t, 1 - _EDGE) * s, mean - _at(t, _EDGE) * s),
        "percentile_iqm": (_at(iqms, _EDGE), _at(iqms, 1 - _EDGE)),
    }


def _bca(samples: Scores, means: Scores) -> Interval:
    """Efron 1987: percentiles corrected for bias and for the acceleration, by the jackknife."""
    mean = samples.mean(axis=1)
    below = (means < mean[:, None]).mean(axis=1) + (means == mean[:, None]).mean(axis=1) / 2
    z0 = stats.norm.ppf(np.clip(below, 0.5 / means.shape[1], 1 - 0.5 / means.shape[1]))
    spread = samples - mean[:, None]
    acceleration = (spread**3).sum(axis=1) / (6 * (spread**2).sum(axis=1) ** 1.5)
    z = z0 + np.multiply.outer([-1.0, 1.0], np.full(len(mean), stats.norm.ppf(1 - _EDGE)))
    low, high = stats.norm.cdf(z0 + z / (1 - acceleration * z))
    return _at(means, low), _at(means, high)


def _at(ordered: Scores, level: float | Scores) -> Scores:
    """The quantile of each row."""
    last = ordered.shape[1] - 1
    place = np.clip(np.round(np.broadcast_to(level, len(ordered)) * last), 0, last).astype("i8")
    return np.take_along_axis(ordered, place[:, None], axis=1)[:, 0]


def _chunks(samples: Scores) -> Iterator[Scores]:
    yield from np.array_split(samples, max(1, len(samples) // _CHUNK))


def false_verdicts(
    population: Population, n: int, n_groups: int, samples: int, rng: np.random.Generator
) -> float:
    """How often at least one of all pairs of groups with equal settings is found to differ."""
    n_false = 0
    for groups in population.draw(rng, samples, n_groups, n):
        p_values = [permutation_p_value(a, b) for a, b in combinations(groups, 2)]
        n_false += min(holm(p_values)) < SIGNIFICANCE
    return n_false / samples


def former_false_verdicts(
    population: Population, n: int, samples: int, resamples: int, rng: np.random.Generator
) -> float:
    """How often the percentile bootstrap interval of P(A > B), the former criterion, excludes 1/2."""
    n_false = 0
    for a, b in population.draw(rng, samples, 2, n):
        wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
        ours, theirs = rng.multinomial(n, np.full(n, 1 / n), (2, resamples)).astype("f8")
        low, high = np.quantile((ours @ wins * theirs).sum(axis=1), [_EDGE, 1 - _EDGE]) / n**2
        n_false += not low <= 0.5 <= high
    return n_false / samples


def difference_coverage(
    population: Population, n: int, spread: float, samples: int, rng: np.random.Generator
) -> float:
    """The share of pairs of groups whose interval covers the median difference between runs; NaN without an
    interval.

    Args:
        population: of the scores of B.
        n: runs of each group.
        spread: the scores of A are one higher, and scatter as many times as widely.
        samples: number of pairs.
        rng: draws the scores.
    """
    wide = population.draw(np.random.default_rng(0), 2, 200_000)
    truth = 1 + float(np.median(spread * wide[0] - wide[1]))
    if spread == 1:
        truth = 1.0  # by symmetry
    covered = []
    for a, b in population.draw(rng, samples, 2, n):
        estimate = difference(1 + spread * a, b)
        if estimate.low is None or estimate.high is None:
            return float("nan")
        covered.append(estimate.low <= truth <= estimate.high)
    return float(np.mean(covered))
