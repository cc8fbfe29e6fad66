"""Asynchronous one-step Sarsa (Mnih et al. 2016, section 4): Algorithm 1 with another target.

Differences from the paper: those of `q`.
"""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.engine.methods.asynchronous.q import OneStep, value_method


class OneStepSarsa(OneStep):
    """Values a next state by the action that is taken there."""

    def _next_values(self, q_NA: Tensor, next_observation: NDArray[Any] | None) -> Tensor:
        next_actions = self._actions[1:]
        if next_observation is not None:
            if self._next_action is None:  # else chosen already, where the environment crashed
                q_A = self._network.q(self._unroll.peek(torch.from_numpy(next_observation)))[0].numpy()
                self._next_action = self._draw(q_A)
            next_actions = [*next_actions, self._next_action]
        return q_NA.gather(-1, torch.tensor(next_actions)[:, None])[:, 0]


METHOD = value_method(OneStepSarsa)
