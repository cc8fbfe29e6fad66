"""Performance profiles and optimality gaps over environments, from normalised scores of runs.

Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice", section 4.2: the
score distribution of an algorithm with N runs on each of M tasks is

    F(tau) = 1/M sum_m 1/N sum_n 1[x_mn > tau]

and its optimality gap at gamma, the shortfall below the target score,

    gamma - 1/M sum_m 1/N sum_n min(x_mn, gamma).

Every environment has the same weight, whatever its number of runs; with as many runs in each, the values are
those of rliable, with which the tests compare them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backend.statistics.estimates import Scores

TARGET = 100.0
"""Normalised score, in percent, of the target: a human's, or DQN's."""
N_THRESHOLDS = 201
_LOWEST, _HIGHEST = 0.0, 800.0
"""The thresholds span at least 0 to the target, and end 5 % above the highest score, at most here."""


@dataclass(frozen=True)
class Profile:
    """The performance profile of an arm over environments."""

    arm: str
    tau: Scores
    """f8[n]: thresholds of the normalised score."""
    share: Scores
    """f8[n]: share of the runs above each threshold, from 0 to 1, the mean over environments."""
    optimality_gap: float
    """Mean shortfall below the target, in percent of it."""
    n_runs: int


@dataclass(frozen=True)
class Profiles:
    """Profiles of several arms over the same environments."""

    arms: tuple[Profile, ...]
    """Those of the arms that have a score at all."""
    environments: tuple[str, ...]
    """The environments in which each of these arms has a score; only they count."""


def performance_profile(scores: Sequence[Scores], tau: Scores) -> Scores:
    """The share of runs above each threshold, the mean over environments.

    Args:
        scores: the scores of each environment's runs, f8[n], n >= 1.
        tau: f8[k], thresholds.

    Returns:
        f8[k].
    """
    of_each = [(values[:, None] > tau).mean(axis=0) for values in scores]
    return np.asarray(np.mean(of_each, axis=0), np.float64)


def optimality_gap(scores: Sequence[Scores], target: float = TARGET) -> float:
    """How far the scores stay below the target on average, those above it counting as the target.

    Args:
        scores: the scores of each environment's runs, f8[n], n >= 1.
        target: gamma, in the unit of the scores.
    """
    return float(target - np.mean([np.minimum(values, target).mean() for values in scores]))


def profiles(scores: Mapping[tuple[str, str], Sequence[float]], arms: Sequence[str]) -> Profiles:
    """The profiles of arms over the environments in which every arm that has a score has one.

    Args:
        scores: normalised scores in percent, by arm and environment.
        arms: labels of the arms, in the order of the result; those without any score are left out.
    """
    known = {place: np.asarray(values, float) for place, values in scores.items() if len(values)}
    shown = [arm for arm in arms if any(arm == known_arm for known_arm, _ in known)]
    names = dict.fromkeys(environment for _, environment in known)
    common = tuple(name for name in names if all((arm, name) in known for arm in shown))
    if not common:
        return Profiles((), ())
    highest = max(float(known[arm, name].max()) for arm in shown for name in common)
    tau = np.linspace(_LOWEST, min(max(TARGET, highest * 1.05), _HIGHEST), N_THRESHOLDS)
    arm_profiles = []
    for arm in shown:
        own = [known[arm, name] for name in common]
        n_runs = sum(len(values) for values in own)
        arm_profiles.append(Profile(arm, tau, performance_profile(own, tau), optimality_gap(own), n_runs))
    return Profiles(tuple(arm_profiles), common)
