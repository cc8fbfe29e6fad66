"""Simulated races."""

from collections.abc import Callable

import numpy as np

from backend.statistics.estimates import Scores
from backend.statistics.racing import MIN_SEEDS_RACING, worse

N_RACES = 1_000
MAX_SEEDS = 10

Draw = Callable[[np.random.Generator, tuple[int, int]], Scores]
DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed (log-normal)": lambda rng, shape: rng.lognormal(0.0, 1.0, shape) / 2.161,
    "bimodal (half fail)": lambda rng, shape: np.where(rng.random(shape) < 0.5, 2.0, 0.0),
}
"""Of standard deviation 1."""


def race(scores: Scores) -> tuple[dict[int, int], int]:
    """Seeds of each configuration that is eliminated, and of all configurations together.

    Args:
        scores: f8[configurations, seeds].
    """
    active = list(range(len(scores)))
    eliminated: dict[int, int] = {}
    n = 0
    for look, n in enumerate(range(MIN_SEEDS_RACING, scores.shape[1] + 1), 1):
        losers = [active[at] for at in worse([scores[number, :n] for number in active], look)]
        eliminated |= dict.fromkeys(losers, n)
        active = [number for number in active if number not in eliminated]
        if len(active) == 1:
            break
    return eliminated, sum(eliminated.values()) + n * len(active)
