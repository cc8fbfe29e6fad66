"""Which setting matters: how much of the variance of scores each setting explains alone, and the seed.

Main effects of a functional ANOVA (Hutter, Hoos and Leyton-Brown 2014, "An Efficient Approach for Assessing
Hyperparameter Importance", section 3): with the score written as

    y = m + sum_j f_j(value of setting j) + interactions + seed,

the importance of setting j is the variance of f_j as a share of the variance of all scores. They estimate the
f_j by a random forest over a space of settings. Here they are the least-squares effects of the values that
were tried, over the runs at hand, because a comparison has few settings with few values each; in a full grid
with equal numbers of seeds these are the differences of the means at each value from the mean.

Estimated effects vary with the seeds even where a setting has none. The variance that the seeds alone would
give them is therefore subtracted (epsilon squared; Kelley 1935, "An Unbiased Correlation Ratio Measure"):

    share_j = (SS_j - df_j MS) / SS_T,  share of the seed = (n - 1) MS / SS_T,

with SS_j the sum of squares of f_j over the n runs, df_j its number of values minus one, SS_T that of all
scores around their mean, and MS the variance within configurations. What remains is due to combinations of
settings. Shares are not below 0; where settings were not tried in all combinations, the effects may overlap,
and those of the settings are reduced to what the seeds leave.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backend.statistics.columns import Array

MIN_SEED_DF = 3
"""Least degrees of freedom of the variance within configurations: as of three configurations of two seeds."""
MAX_VALUES = 6
"""A setting of numbers with more values than this is taken as one with `N_RANGES`."""
N_RANGES = 4
"""Ranges of equal numbers of values."""


class TooFewRuns(ValueError):
    """Why the runs say nothing about the importance of settings."""


@dataclass(frozen=True)
class Importance:
    """Shares of the variance of scores; they add up to 1."""

    settings: dict[tuple[str, ...], float]
    """By setting, the largest first; settings that were only changed together stand together."""
    combinations: float
    """What settings explain only together."""
    seed: float
    """What the seed explains: the variance among runs with equal settings."""


def importance(
    scores: Array, configs: Sequence[Hashable], settings: Mapping[str, Sequence[Hashable]]
) -> Importance:
    """How much of the variance of the scores each setting explains.

    Args:
        scores: f8[n], one per run, finite.
        configs: of each run, what it has in common with the runs that differ in their seed alone.
        settings: by setting, of each run its value.

    Raises:
        TooFewRuns: the shares cannot be estimated.
    """
    groups = _levels(configs)
    varied = {name: levels for name, values in settings.items() if (levels := _ranges(values)).max(initial=0)}
    if not varied:
        raise TooFewRuns("no setting differs between the runs")
    alike: dict[bytes, list[str]] = {}
    for name, levels in varied.items():
        alike.setdefault(levels.tobytes(), []).append(name)
    factors = [(tuple(names), varied[names[0]]) for names in alike.values()]
    n, n_configs = len(scores), int(groups.max()) + 1
    if n - n_configs < MIN_SEED_DF:
        raise TooFewRuns(
            f"{n} scores of {n_configs} configs: the seed’s share needs at least {n_configs + MIN_SEED_DF}, "
            "several of them with equal settings"
        )
    columns = [np.equal.outer(levels, np.arange(levels.max() + 1)).astype("f8") for _, levels in factors]
    design = np.hstack([np.ones((n, 1)), *columns])
    dfs = [int(levels.max()) for _, levels in factors]
    if np.linalg.matrix_rank(design) < 1 + sum(dfs):
        raise TooFewRuns(
            f"{n_configs} configs in which {len(factors)} settings differ: they were not changed "
            "independently of each other, so their effects cannot be told apart"
        )
    total = float(((scores - scores.mean()) ** 2).sum())
    if not total > 0:
        raise TooFewRuns("all scores are equal")
    means = np.bincount(groups, scores) / np.bincount(groups)
    of_seed = float(((scores - means[groups]) ** 2).sum()) / (n - n_configs)
    effects = np.linalg.lstsq(design, scores - scores.mean(), rcond=None)[0]
    shares = {}
    at = 1
    for (names, levels), df in zip(factors, dfs, strict=True):
        effect = effects[at : at + df + 1][levels]
        at += df + 1
        squares = float(((effect - effect.mean()) ** 2).sum())
        shares[names] = max(0.0, squares - df * of_seed) / total
    seed = min(1.0, (n - 1) * of_seed / total)
    explained = sum(shares.values())
    if explained > 1 - seed:
        shares = {names: share * (1 - seed) / explained for names, share in shares.items()}
    ordered = dict(sorted(shares.items(), key=lambda item: -item[1]))
    return Importance(ordered, max(0.0, 1 - seed - sum(shares.values())), seed)


def _levels(values: Sequence[Hashable]) -> Array:
    """A number of each value, in the order of their first occurrence."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault((type(value), value), len(numbers)) for value in values], "<i8")


def _ranges(values: Sequence[Hashable]) -> Array:
    """The level of each value of a setting."""
    levels = _levels(values)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if levels.max(initial=0) < MAX_VALUES or len(numbers) < len(values):
        return levels
    parts = np.array_split(np.unique(np.array(numbers, "f8")), N_RANGES)
    return _levels(np.searchsorted([part[-1] for part in parts], np.array(numbers, "f8")).tolist())
