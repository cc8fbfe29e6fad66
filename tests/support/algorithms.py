"""Algorithms by what they do."""

from backend.specs.algorithms import ALGORITHMS

LEARNING = [algorithm.id for algorithm in ALGORITHMS.values() if algorithm.learns]
"""Ids of all but the random agent."""
