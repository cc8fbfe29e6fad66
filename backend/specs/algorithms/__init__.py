"""The catalogue of algorithms: every `Algorithm` that a module of this package declares."""

from importlib import import_module
from pkgutil import iter_modules

from backend.specs.algorithms.base import (
    Algorithm,
    AlgorithmConfig,
    Preset,
    Reproducibility,
)

_FIRST = ("paac", "paac_q", "ga3c", "a3c", "n_step_q", "one_step_q", "one_step_sarsa", "dqn", "gorila_dqn")
"""The order in the form and in the reference; algorithms that are not named here follow, by their ids."""


def _find_algorithms() -> dict[str, Algorithm]:
    declared: dict[str, Algorithm] = {}
    for module in iter_modules(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Algorithm) and declared.setdefault(value.id, value) is not value:
                raise ValueError(f"{module.name} declares a second algorithm {value.id}")
    return {name: declared[name] for name in (*_FIRST, *sorted(declared.keys() - set(_FIRST)))}


ALGORITHMS: dict[str, Algorithm] = _find_algorithms()
"""Every algorithm that a run can use, by id."""

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "AlgorithmConfig",
    "Preset",
    "Reproducibility",
]
