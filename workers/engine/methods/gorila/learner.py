"""Gorila's learners, their replica of theta+ and their guard against outliers (Nair et al. 2015, 4.2)."""

import math

import torch

from backend.specs.algorithms.replayed import ReplayedQConfig
from workers.engine.methods.dqn.learner import DqnNetworks
from workers.engine.methods.gorila.parameters import NO_VERSION, ParameterServer, Version
from workers.engine.nn.replay import Batch

LOSS_DECAY = 0.99
"""Decay of the running mean and variance of the absolute loss."""
MIN_LOSSES = 100
"""Losses that are needed before one can be an outlier."""


class Replica(DqnNetworks):
    """theta and theta_minus of one process.

    Its actors and learners share them: they would pull the same parameters at the same time.
    """

    def __init__(
        self,
        config: ReplayedQConfig,
        observation_shape: tuple[int, ...],
        n_actions: int,
        server: ParameterServer,
        device: torch.device,
    ) -> None:
        """Pull theta; theta_minus <- theta as soon as every shard has been reached."""
        super().__init__(config, observation_shape, n_actions, device)
        self._server = server
        self.versions: list[Version] = [NO_VERSION] * len(server.bounds)
        """Version of each shard's part of theta."""
        self.ready = False
        """Whether it has every part of theta."""
        self.pull()

    @property
    def updates(self) -> int:
        """Updates of theta+ that the newest part of theta contains."""
        return max(version.updates for version in self.versions)

    def pull(self) -> None:
        """Copy theta+ to theta where it has changed; the parts of unreachable shards stay as they are."""
        for k, (version, theta) in self._server.pull(self.versions).items():
            self.versions[k] = version
            if theta is not None:
                first, last = self._server.bounds[k]
                self.theta[first:last].copy_(theta)
        if not self.ready and NO_VERSION not in self.versions:
            self.ready = True
            self.theta_minus.copy_(self.theta)
            self.synced_at = self.updates

    def push(self) -> None:
        """Send the newest gradient to the parameter server."""
        self._server.push(self.dtheta, self.versions)


class LossGuard:
    """A running mean and standard deviation of absolute losses (section 4.2).

    They include the outliers, or a lasting rise of the loss would be discarded permanently.
    """

    def __init__(self) -> None:
        self.mean = 0.0
        self._variance = 0.0
        self._n = 0

    def add(self, loss: float, deviations: float) -> bool:
        """Add a loss; return whether it is an outlier.

        An outlier exceeds the mean of those before by `deviations` standard deviations. There is none with
        `deviations` 0, nor among the first `MIN_LOSSES`.
        """
        limit = self.mean + deviations * math.sqrt(self._variance)
        outlier = bool(deviations) and self._n >= MIN_LOSSES and loss > limit
        self._n += 1
        # The plain mean at first, then exponentially weighted.
        weight = max(1.0 / self._n, 1.0 - LOSS_DECAY)
        difference = loss - self.mean
        self.mean += weight * difference
        self._variance = (1 - weight) * (self._variance + weight * difference**2)
        return outlier


class GradientWorker:
    """One learner: sends the gradients of its minibatches, except outliers, to the parameter server."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._guard = LossGuard()
        self.outliers = 0
        """Gradients that it discarded."""

    def learn(self, batch: Batch, outlier_deviations: float) -> dict[str, float]:
        """Compute DQN's gradient on a minibatch by theta and theta_minus and push it.

        Args:
            batch: the minibatch.
            outlier_deviations: see `LossGuard.add`; the gradient of an outlier is not pushed.

        Returns:
            Metric -> mean over the minibatch; of an outlier only `loss/td`.
        """
        metrics = self._replica.compute_gradient(batch)
        if self._guard.add(metrics["loss/td"], outlier_deviations):
            self.outliers += 1
            return {"loss/td": metrics["loss/td"]}
        self._replica.push()
        return metrics
