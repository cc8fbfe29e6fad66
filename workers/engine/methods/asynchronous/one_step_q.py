"""Asynchronous one-step Q-learning (Mnih et al. 2016, Algorithm 1).

Differences from the paper: those of `q`.
"""

from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from workers.engine.methods.asynchronous.q import OneStep, value_method


class OneStepQ(OneStep):
    """Values a next state by its best action."""

    def _next_values(self, q_NA: Tensor, next_observation: NDArray[Any] | None) -> Tensor:
        return q_NA.max(-1).values


METHOD = value_method(OneStepQ)
