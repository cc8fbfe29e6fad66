"""A Gorila learner: DQN's gradient of a replayed minibatch, and the guard against outliers."""

import math
from typing import Any

import torch

from backend.specs.algorithms.replayed import ReplayedQConfig
from workers.engine.gorila.replica import Replica
from workers.engine.losses import dqn_loss
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


class Learner:
    """One learner on its process's replica."""

    def __init__(self, replica: Replica, config: ReplayedQConfig, *, outlier_deviations: float = 0.0) -> None:
        self._replica = replica
        self.config = config
        self.outlier_deviations = outlier_deviations
        self._guard = LossGuard()
        self.outliers = 0
        """Gradients it discarded."""

    def learn(self, batch: Batch) -> dict[str, float]:
        """Compute y and the gradient of equation 2 by theta and theta_minus; send it, if it is no outlier.

            y = r + gamma max_a' Q(s', a'; theta_minus),   r alone where terminal

        Returns:
            Metric -> value.
        """
        replica, device = self._replica, self._replica.device
        state, action, reward, terminal, next_state = (torch.from_numpy(x).to(device) for x in batch)
        with torch.no_grad():
            next_q = replica.target_network(next_state).max(-1).values
            y = reward + self.config.gamma * next_q * ~terminal
        q = replica.network(state)
        loss = dqn_loss(q, action, y)
        absolute = loss.absolute.item()
        if self._guard.is_outlier(absolute, self.outlier_deviations):
            self.outliers += 1
            return {"loss/td": absolute}
        replica.dtheta.zero_()
        loss.total.backward()  # type: ignore[no-untyped-call]
        replica.push()
        return {
            "loss/td": absolute,
            "value/max_q": q.detach().max(-1).values.mean().item(),
            "optim/grad_norm": float(torch.linalg.vector_norm(replica.dtheta)),
        }

    def state(self) -> dict[str, Any]:
        """The guard's, plain values."""
        return vars(self._guard).copy()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with it."""
        vars(self._guard).update(state)
