"""A process's copy of the Q-network and of its target network."""

from typing import Any

import torch
from torch import Tensor

from workers.engine.gorila.parameters import NONE, ParameterServer, Version
from workers.engine.networks import ActionValues, action_values
from workers.engine.optimizers import FlatParameters


class Replica:
    """theta, by which actors act and learners compute gradients, and theta_minus.

    Actors and learners of one process share it: they would pull the same parameters at the same time.
    """

    def __init__(
        self,
        network: str,
        observation_shape: tuple[int, ...],
        n_actions: int,
        server: ParameterServer,
        device: torch.device,
    ) -> None:
        """Take theta from the server, and theta_minus <- theta, once every part could be reached."""
        self.device = device
        self.network: ActionValues = action_values(network, observation_shape, n_actions).to(device)
        self.target_network: ActionValues = action_values(network, observation_shape, n_actions).to(device)
        self._flat = FlatParameters(self.network)
        self.theta_minus = FlatParameters(self.target_network).theta
        self._server = server
        self.versions: list[Version] = [NONE] * len(server.bounds)
        """Of theta's parts."""
        self.synced_at = 0
        self.ready = False
        """Whether it has every part of theta."""
        self.pull()

    @property
    def theta(self) -> Tensor:
        """(P,)."""
        return self._flat.theta

    @property
    def dtheta(self) -> Tensor:
        """What `push` sends, (P,); the network's parameters have it in parts as their `grad`."""
        return self._flat.dtheta

    @property
    def updates(self) -> int:
        """Global updates that theta has behind it."""
        return max(version.updates for version in self.versions)

    def pull(self) -> None:
        """Bring theta to theta+ where that has changed; the parts of shards that cannot be reached stay."""
        for k, (version, theta) in self._server.pull(self.versions).items():
            self.versions[k] = version
            if theta is not None:
                first, last = self._server.bounds[k]
                self.theta[first:last].copy_(theta)
        if not self.ready and NONE not in self.versions:
            self.ready = True
            self.theta_minus.copy_(self.theta)
            self.synced_at = self.updates

    def sync_target(self, every: int) -> bool:
        """Copy theta to theta_minus where global updates have passed a multiple of `every` (N) since last."""
        due = self.updates // every > self.synced_at // every
        if due:
            self.theta_minus.copy_(self.theta)
            self.synced_at = self.updates
        return due

    def push(self) -> None:
        """Send the gradient to the server."""
        self._server.push(self.dtheta, self.versions)

    def target_state(self) -> dict[str, Any]:
        """theta_minus, and when it was copied."""
        return {"theta_minus": self.theta_minus.cpu().clone(), "synced_at": self.synced_at}

    def restore_target(self, state: dict[str, Any]) -> None:
        """Go on with `target_state`, and with the server's theta."""
        self.pull()
        self.theta_minus.copy_(state["theta_minus"])
        self.synced_at = state["synced_at"]
