"""Racing: which configurations are worse than another, decided while seeds are still being added.

Maron and Moore (1994, "Hoeffding races") compare all configurations after every further sample and give up
those that are worse with confidence. To remain valid under repeated looks, the k-th look has a share of the
probability of error alpha, and the shares of all looks add up to it (as in Mnih, Szepesvári and Audibert
2008, "Empirical Bernstein stopping", who divide it among looks like this):

    alpha_k = alpha / (k (k + 1)),   alpha_1 + alpha_2 + ... = alpha.

So a race may be extended at any time. A look has two steps, and the second is taken only if the first finds a
difference (Fisher's protected comparisons):

1. Kruskal and Wallis (1952): do the configurations differ at all, at the level alpha_k? The ranks of all N
   scores are compared as in an analysis of variance (Iman and Davenport 1976), with r_i the mean rank of the
   n_i scores of configuration i of m,

       F = sum_i n_i (r_i - r)^2 / (m - 1)  /  (sum_ij (r_ij - r_i)^2 / (N - m)).

   Of two configurations, the exact permutation test takes its place. It needs no assumption about the scores'
   distribution.
2. Welch (1947), for every ordered pair of the m configurations: is the mean of one below that of the other,
   at the level alpha_k / (m (m - 1)) (Bonferroni)?

       T = (mean_j - mean_i) / sqrt(s_i^2 / n_i + s_j^2 / n_j),

   where s^2 is the variance of the configuration's own scores, or that within all configurations if it is
   larger: three equal scores of a setting with which some seeds fail are weak evidence of its variance.

If all configurations are equal, the first step alone keeps the probability of error, whatever the
distribution. If some differ, the second does, for scores that are nearly normal.

`docs/statistics.md` has the rates of error and the savings of simulated races.
"""

from collections.abc import Sequence

import numpy as np

from backend.statistics.distributions import f_upper_tail, student_upper_tail
from backend.statistics.estimates import Scores
from backend.statistics.permutation import permutation_p_value

CONFIDENCE = 0.95
MIN_SEEDS_RACING = 3
"""Fewer seeds of a configuration are not compared."""


def level(look: int, confidence: float = CONFIDENCE) -> float:
    """The share alpha_k of the probability of error.

    Args:
        look: k, from 1.
        confidence: 1 - alpha.
    """
    return (1 - confidence) / (look * (look + 1))


def worse(scores: Sequence[Scores], look: int, confidence: float = CONFIDENCE) -> list[int]:
    """Indices of the configurations that are worse than another.

    Args:
        scores: scores of each configuration, f8[n]. One with fewer than `MIN_SEEDS_RACING` is left out.
        look: k, from 1.
        confidence: 1 - alpha.
    """
    compared = [at for at, own in enumerate(scores) if len(own) >= MIN_SEEDS_RACING]
    own = [np.asarray(scores[at], "f8") for at in compared]
    m = len(own)
    alpha = level(look, confidence)
    if m < 2 or (permutation_p_value(*own) if m == 2 else _kruskal_wallis(own)) >= alpha:
        return []
    n = np.array([len(sample) for sample in own], "f8")
    mean = np.array([sample.mean() for sample in own])
    variance = np.array([sample.var(ddof=1) for sample in own])
    within = (variance * (n - 1)).sum() / (n.sum() - m)
    error = np.maximum(variance, within) / n
    above = np.maximum(mean[None, :] - mean[:, None], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num(above / np.sqrt(error[None, :] + error[:, None]), posinf=np.inf)
    both, parts = error[None, :] + error[:, None], error**2 / (n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.nan_to_num(both**2 / (parts[None, :] + parts[:, None]), nan=1.0)
    p_values = student_upper_tail(t, degrees).min(axis=1)
    return [compared[at] for at in np.flatnonzero(p_values < alpha / (m * (m - 1)))]


def _kruskal_wallis(scores: Sequence[Scores]) -> float:
    """The p-value of F."""
    _, place, ties = np.unique(np.concatenate(scores), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[place]
    n = np.array([len(own) for own in scores])
    parts = np.split(ranks, np.cumsum(n)[:-1])
    means = np.array([own.mean() for own in parts])
    between = (n * (means - ranks.mean()) ** 2).sum() / (len(n) - 1)
    within = sum(((own - mean) ** 2).sum() for own, mean in zip(parts, means, strict=True))
    if between == 0:
        return 1.0
    degrees = len(ranks) - len(n)
    return f_upper_tail(between * degrees / within if within else np.inf, len(n) - 1, degrees)
