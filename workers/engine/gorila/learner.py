"""A Gorila learner: DQN's gradient of a replayed minibatch, and the guard against outliers."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from backend.specs.algorithms.replayed import ReplayedQConfig
from workers.engine.gorila.replica import Replica
from workers.engine.losses import dqn_loss
from workers.engine.networks import ActionValues, as_input
from workers.engine.replay import Batch

LOSS_DECAY = 0.99
"""How slowly the running mean and deviation of the absolute loss forget."""
LOSSES_KNOWN = 100
"""So many losses are needed before one can be called an outlier."""


class LossGuard:
    """A running mean and standard deviation of absolute losses (section 4.2).

    An outlier counts for them too: else a loss that rises for good would be refused for ever.
    """

    def __init__(self) -> None:
        self.mean = 0.0
        self._variance = 0.0
        self._n = 0

    def is_outlier(self, loss: float, deviations: float) -> bool:
        """Whether a loss is above the mean plus so many deviations of those before it; 0: it never is."""
        limit = self.mean + deviations * math.sqrt(self._variance)
        outlier = bool(deviations) and self._n >= LOSSES_KNOWN and loss > limit
        self._n += 1
        # As many decimals as losses at first, then exponentially weighted.
        weight = max(1.0 / self._n, 1.0 - LOSS_DECAY)
        difference = loss - self.mean
        self.mean += weight * difference
        self._variance = (1 - weight) * (self._variance + weight * difference**2)
        return outlier


class Gradient(NamedTuple):
    """Of a part of a minibatch, by each of the network's parameters, and sums over the part."""

    by_parameter: tuple[Tensor, ...]
    absolute: float
    """|y - Q(s, a; theta)|."""
    max_q: float
    """max_a Q(s, a; theta)."""


class Learner:
    """One learner on its process's replica."""

    def __init__(
        self,
        replica: Replica,
        config: ReplayedQConfig,
        *,
        outlier_deviations: float = 0.0,
        threads: int = 1,
    ) -> None:
        self._replica = replica
        self.config = config
        self.outlier_deviations = outlier_deviations
        self._guard = LossGuard()
        self._threads = threads
        self._others = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
        self.outliers = 0
        """Gradients it discarded."""

    def learn(self, batch: Batch) -> dict[str, float]:
        """Compute y and the gradient of equation 2 by theta and theta_minus; send it, if it is no outlier.

            y = r + gamma max_a' Q(s', a'; theta_minus),   r alone where terminal

        Each thread takes its part of the minibatch. They wait for each other once, not in every layer as
        PyTorch's own threads do, whom a busy machine so brings to a halt.

        Returns:
            Metric -> value.
        """
        replica = self._replica
        mine, *theirs = (
            Batch(*arrays)
            for arrays in zip(*(np.array_split(array, self._threads) for array in batch), strict=True)
        )
        others = [self._others.submit(self._gradient, part) for part in theirs]
        gradients = [self._gradient(mine), *(other.result() for other in others)]
        B = len(batch.action_B)
        absolute = sum(gradient.absolute for gradient in gradients) / B
        if self._guard.is_outlier(absolute, self.outlier_deviations):
            self.outliers += 1
            return {"loss/td": absolute}
        self._add_up(gradients)
        replica.push()
        return {
            "loss/td": absolute,
            "value/max_q": sum(gradient.max_q for gradient in gradients) / B,
            "optim/grad_norm": float(torch.linalg.vector_norm(replica.dtheta)),
        }

    def _gradient(self, batch: Batch) -> Gradient:
        replica, device = self._replica, self._replica.device
        state, action, reward, terminal, next_state = (torch.from_numpy(x).to(device) for x in batch)
        with torch.no_grad():
            next_q = self._q(replica.target_network, next_state).max(-1).values
        q = self._q(replica.network, state)
        y = reward + self.config.gamma * next_q * ~terminal
        loss = dqn_loss(q, action, y)
        by_parameter = torch.autograd.grad(loss.total, tuple(replica.network.parameters()))
        return Gradient(by_parameter, loss.absolute.item(), q.detach().max(-1).values.sum().item())

    def _q(self, network: ActionValues, state: Tensor) -> Tensor:
        """Q(s, .), (B, A)."""
        low = self.config.precision == "bf16"
        with torch.autocast(state.device.type, torch.bfloat16, enabled=low, cache_enabled=False):
            features: Tensor = network.body(as_input(state))
        q_BA: Tensor = network.q(features.float())
        return q_BA

    def _add_up(self, gradients: list[Gradient]) -> None:
        """Write their sum where `push` finds it."""
        parts = zip(*(gradient.by_parameter for gradient in gradients), strict=True)
        for parameter, (first, *others) in zip(self._replica.network.parameters(), parts, strict=True):
            assert parameter.grad is not None
            parameter.grad.copy_(first)
            for other in others:
                parameter.grad.add_(other)

    def state(self) -> dict[str, Any]:
        """The guard's, plain values."""
        return vars(self._guard).copy()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with it."""
        vars(self._guard).update(state)
