"""Asynchronous n-step Q-learning (Mnih et al. 2016, Algorithm S1).

Differences from the paper: those of `q`.
"""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.engine.methods.asynchronous.q import AsyncQ, value_method
from workers.engine.nn.returns import n_step_returns


class NStepQ(AsyncQ):
    """Bootstraps up to t_max rewards with max_a Q(s, a; theta_minus)."""

    def _targets(self, reward_T: Tensor, next_observation: NDArray[Any] | None) -> Tensor:
        R = torch.zeros(1)
        if next_observation is not None:
            R = self._target_network(torch.from_numpy(next_observation)).max(-1).values
        none_T1 = torch.zeros(len(reward_T), 1, dtype=torch.bool)
        return n_step_returns(reward_T[:, None], none_T1, R, self._config.gamma)[:, 0]


METHOD = value_method(NStepQ)
