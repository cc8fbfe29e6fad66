"""Configurations chosen by scores: Optuna's tree-structured Parzen estimator (Bergstra et al. 2011).

Nothing of Optuna's is stored: its study is made of the sweep's configurations and scores each time.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from backend.experiments.cells.sampling import N_RANDOM, ConfigValues, rounded
from backend.experiments.specs.sweep import Dimension


class Told(NamedTuple):
    """A configuration, and what its runs have scored."""

    settings: ConfigValues
    score: float | None
    """None while they run, and if none of them has a score."""
    has_ended: bool


def is_installed() -> bool:
    """Whether this Python has Optuna."""
    return find_spec("optuna") is not None


def ask(space: Mapping[str, Dimension], told: Sequence[Told], seed: int) -> ConfigValues:
    """The configuration to try next: the same for the same arguments.

    Args:
        space: what varies.
        told: every configuration so far. Those that still run are taken to score badly, so that others are
            tried meanwhile.
        seed: of the sampler.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions = {path: _distribution(dimension) for path, dimension in space.items()}
    drawn = int(np.random.SeedSequence([seed, len(told)]).generate_state(1)[0])
    sampler = optuna.samplers.TPESampler(n_startup_trials=N_RANDOM, constant_liar=True, seed=drawn)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    states = optuna.trial.TrialState
    for configuration in told:
        state = states.RUNNING
        if configuration.has_ended:
            state = states.FAIL if configuration.score is None else states.COMPLETE
        trial = optuna.trial.create_trial(
            state=state,
            value=configuration.score if state == states.COMPLETE else None,
            params={path: _told(space[path], value) for path, value in configuration.settings.items()},
            distributions=distributions,
        )
        study.add_trial(trial)
    asked = study.ask(distributions).params
    return {path: _asked(dimension, asked[path]) for path, dimension in space.items()}


def _distribution(dimension: Dimension) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if dimension.values is not None:  # by their numbers: True, 1 and 1.0 are one choice of Optuna's
        return CategoricalDistribution(range(len(dimension.values)))
    assert dimension.low is not None
    assert dimension.high is not None
    is_log = dimension.distribution.startswith("log")
    if dimension.distribution.endswith("integer"):
        return IntDistribution(int(dimension.low), int(dimension.high), log=is_log)
    return FloatDistribution(dimension.low, dimension.high, log=is_log)


def _told(dimension: Dimension, value: Any) -> Any:
    if dimension.values is None:
        return value
    return next(
        number
        for number, known in enumerate(dimension.values)
        if known == value and isinstance(known, bool) == isinstance(value, bool)
    )


def _asked(dimension: Dimension, value: Any) -> Any:
    if dimension.values is not None:
        return dimension.values[value]
    return value if dimension.distribution.endswith("integer") else rounded(dimension, value)
