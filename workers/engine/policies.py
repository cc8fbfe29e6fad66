"""How trained agents act."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.engine.networks import ActorCritic


def sample(logits_BA: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw actions from softmax(logits).

    Returns:
        Actions (B,) int64 and the policy (B, A) they were drawn from.
    """
    pi_BA = logits_BA.softmax(-1)
    return torch.multinomial(pi_BA, 1, generator=generator)[:, 0], pi_BA


class SampledPolicy:
    """Acts by sampling from pi, as the papers' actor-critic agents do when they are scored.

    A greedy Breakout agent that never presses FIRE would never end its episode.
    """

    def __init__(self, network: ActorCritic, device: torch.device, seed: int) -> None:
        self._network = network
        self._device = device
        self._generator = torch.Generator(device).manual_seed(seed)

    @torch.no_grad()
    def act(self, observation_B: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Sampled actions (B,), V (B,) and pi (B, A)."""
        logits_BA, value_B = self._network(torch.from_numpy(observation_B).to(self._device))
        action_B, pi_BA = sample(logits_BA, self._generator)
        return np.asarray(action_B.cpu()), np.asarray(value_B.cpu()), np.asarray(pi_BA.cpu())
