"""The catalogue of algorithms: one line each."""

from backend.specs.algorithms.base import Actions, Algorithm, AlgorithmConfig, Observation, Preset
from backend.specs.algorithms.paac import PAAC

ALGORITHMS: dict[str, Algorithm] = {algorithm.id: algorithm for algorithm in (PAAC,)}
"""Every algorithm one may ask for, by id."""

__all__ = ["ALGORITHMS", "Actions", "Algorithm", "AlgorithmConfig", "Observation", "Preset"]
