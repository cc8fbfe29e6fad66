"""DQN's loss and its gradient on a minibatch of transitions (Mnih et al. 2015, equation 2 and methods).

    y = r + gamma max_a' Q(s', a'; theta_minus),   y = r where s' is terminal
    delta = y - Q(s, a; theta)
    dtheta = -sum over the minibatch of clip(delta, -1, 1) grad Q(s, a; theta)

Separate from `dqn`, because Gorila's learners compute the same gradient.

Differences from the paper: none.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from backend.specs.algorithms.replayed import ReplayedQConfig
from workers.engine.methods.dqn.gpu_minibatch import GpuMinibatch
from workers.engine.nn.devices import Acceleration, acceleration_on
from workers.engine.nn.losses import dqn_loss
from workers.engine.nn.networks import ActionValues, action_values, features_of
from workers.engine.nn.optimizers import AdaGrad, CentredRMSProp, FlatParameters
from workers.engine.nn.replay import Batch

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


def create_optimizer(theta: Tensor, config: ReplayedQConfig) -> CentredRMSProp | AdaGrad:
    """The configured optimizer of `theta`, (P,), or of a part of it."""
    if config.optimizer == "adagrad":
        return AdaGrad(theta, eps=config.rmsprop_eps)
    return CentredRMSProp(theta, decay=config.rmsprop_decay, eps=config.rmsprop_eps)


class Gradient(NamedTuple):
    """The gradient of a part of a minibatch by each parameter tensor, and sums over the part."""

    by_parameter: tuple[Tensor, ...]
    td_error: float
    """Sum of |delta|."""
    max_q: float
    """Sum of max_a Q(s, a; theta)."""


class DqnNetworks:
    """theta, theta_minus and the gradient of DQN's loss.

    A subclass changes the algorithm by overriding `targets`.
    """

    def __init__(
        self,
        config: ReplayedQConfig,
        observation_shape: tuple[int, ...],
        n_actions: int,
        device: torch.device,
        *,
        threads: int = 1,
        acceleration: Acceleration | None = None,
    ) -> None:
        """Initialise theta from PyTorch's random generator, and theta_minus <- theta.

        Args:
            config: the run's config.
            observation_shape: without the batch.
            n_actions: A.
            device: where both networks are.
            threads: which share the work of `compute_gradient`. PyTorch's own threads would synchronise in
                every layer, which is slow on a busy machine; these synchronise once.
            acceleration: how a GPU is used; on a CPU, None for gradients by these threads.
        """
        self.config = config
        self.torch_device = device
        networks = (
            action_values(config.network, observation_shape, n_actions, centre=config.centre)
            for _ in range(2)
        )
        self.network, self.target_network = (network.to(device) for network in networks)
        self._learned = tuple(p for p in self.network.parameters() if p.requires_grad)
        flat = FlatParameters(self.network)
        self.theta: Tensor = flat.theta
        """(P,); the network's parameters are views of it."""
        self.dtheta: Tensor = flat.dtheta
        """(P,), the newest gradient."""
        self.theta_minus: Tensor = FlatParameters(self.target_network).theta
        self.theta_minus.copy_(self.theta)
        self.synced_at = 0
        """Updates of theta when it was last copied to theta_minus."""
        self._threads = threads
        self.acceleration = acceleration_on(device, acceleration)
        self._gpu: GpuMinibatch | None = None
        self._pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))

    def sync_target(self, updates: int) -> bool:
        """Copy theta to theta_minus every N updates.

        Args:
            updates: updates of theta so far.

        Returns:
            Whether theta was copied, because `updates` has passed a multiple of N since the last copy.
        """
        N = self.config.target_update_updates
        due = updates // N > self.synced_at // N
        if due:
            self.theta_minus.copy_(self.theta)
            self.synced_at = updates
        return due

    def targets(self, reward_B: Tensor, terminated_B: Tensor, next_state_B: Tensor) -> Tensor:
        """The targets y = r + gamma max_a' Q(s', a'; theta_minus), y = r where s' is terminal.

        Called without autograd, by several threads at the same time.

        Args:
            reward_B: r, (B,) float32.
            terminated_B: whether s' is terminal, (B,) bool.
            next_state_B: s', (B, …) as the environment gives it.

        Returns:
            (B,) float32.
        """
        next_q_B = self.q(self.target_network, next_state_B).max(-1).values
        return reward_B + self.config.gamma * next_q_B * ~terminated_B

    def q(self, network: ActionValues, state_B: Tensor) -> Tensor:
        """Q(s, .) of states (B, …) by one of the two networks, (B, A), in the configured precision."""
        bf16 = self.config.precision == "bf16"
        with torch.autocast(state_B.device.type, torch.bfloat16, enabled=bf16, cache_enabled=False):
            features = features_of(network.body, state_B)
        q_BA: Tensor = network.q(features.float())
        return q_BA

    def compute_gradient(self, batch: Batch) -> dict[str, float]:
        """Write the gradient of the loss on a minibatch to `dtheta`.

        Returns:
            Metric -> mean over the minibatch.
        """
        B = len(batch.action_B)
        if self.acceleration is not None:
            if self._gpu is None:
                self._gpu = GpuMinibatch(
                    self.write_gradient, batch, self.torch_device, graphs=self.acceleration.graphs
                )
            td_error, max_q, norm = self._gpu.compute(batch)
            return {"loss/td": td_error / B, "value/max_q": max_q / B, "optim/grad_norm": norm}
        parts = zip(*(np.array_split(array, self._threads) for array in batch), strict=True)
        gradients = self._in_threads(self._gradient, [Batch(*part) for part in parts])
        by_parameter = zip(*(gradient.by_parameter for gradient in gradients), strict=True)
        for parameter, (first, *others) in zip(self._learned, by_parameter, strict=True):
            assert parameter.grad is not None  # a view of dtheta
            parameter.grad.copy_(first)
            for other in others:
                parameter.grad.add_(other)
        return {
            "loss/td": sum(gradient.td_error for gradient in gradients) / B,
            "value/max_q": sum(gradient.max_q for gradient in gradients) / B,
            "optim/grad_norm": float(torch.linalg.vector_norm(self.dtheta)),
        }

    def _gradient(self, batch: Batch) -> Gradient:
        by_parameter, td_error, max_q = self._differentiate(*map(torch.from_numpy, batch))
        return Gradient(by_parameter, td_error.item(), max_q.item())

    def _differentiate(
        self, state_B: Tensor, action_B: Tensor, reward_B: Tensor, terminated_B: Tensor, next_state_B: Tensor
    ) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """The gradient by each parameter tensor, and the sums of |delta| and of max_a Q(s, a; theta)."""
        with torch.no_grad():
            y_B = self.targets(reward_B, terminated_B, next_state_B)
        q_BA = self.q(self.network, state_B)
        loss = dqn_loss(q_BA, action_B, y_B)
        by_parameter = torch.autograd.grad(loss.total, self._learned)
        return by_parameter, loss.absolute, q_BA.detach().max(-1).values.sum()

    def write_gradient(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Write the gradient to dtheta; returns both sums and its norm, (3,)."""
        by_parameter, td_error, max_q = self._differentiate(*batch)
        for parameter, gradient in zip(self._learned, by_parameter, strict=True):
            assert parameter.grad is not None  # a view of dtheta
            parameter.grad.copy_(gradient)
        return torch.stack([td_error, max_q, torch.linalg.vector_norm(self.dtheta)])

    def _in_threads(self, function: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
        """The function's results for each part; the first is computed in the calling thread."""
        first, *others = parts
        futures = [self._pool.submit(function, part) for part in others]
        return [function(first), *(future.result() for future in futures)]
