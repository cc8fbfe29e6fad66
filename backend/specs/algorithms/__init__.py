"""The catalogue of algorithms: every `Algorithm` that a module of this package declares, and those of other
distributions (`backend.specs.algorithms.packages`)."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from backend.specs.algorithms.base import (
    Algorithm,
    AlgorithmConfig,
    Preset,
    Reproducibility,
)

_FIRST = ("paac", "paac_q", "ga3c", "a3c", "n_step_q", "one_step_q", "one_step_sarsa", "dqn", "gorila_dqn")
"""The order in the form and in the reference; algorithms that are not named here follow, by their ids."""

ALGORITHMS: dict[str, Algorithm]
"""Every algorithm that a run can use, by id; Callboard's first."""
PACKAGE_PROBLEMS: dict[str, str]
"""Distribution with its version -> why its algorithms are not among them."""


def _find_algorithms() -> dict[str, Algorithm]:
    declared: dict[str, Algorithm] = {}
    for module in iter_modules(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Algorithm) and declared.setdefault(value.id, value) is not value:
                raise ValueError(f"{module.name} declares a second algorithm {value.id}")
    return {name: declared[name] for name in (*_FIRST, *sorted(declared.keys() - set(_FIRST)))}


def __getattr__(name: str) -> Any:
    """Find all algorithms when they are first needed: a spec of another distribution, which imports this
    package, may be imported before."""
    if name not in ("ALGORITHMS", "PACKAGE_PROBLEMS"):
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from backend.specs.algorithms.packages import find_packages

    own = _find_algorithms()
    others = find_packages(own)
    globals().update(ALGORITHMS=own | others.values, PACKAGE_PROBLEMS=others.problems)
    return globals()[name]


__all__ = [
    "ALGORITHMS",
    "PACKAGE_PROBLEMS",
    "Algorithm",
    "AlgorithmConfig",
    "Preset",
    "Reproducibility",
]
