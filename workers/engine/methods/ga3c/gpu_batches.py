"""GA3C's updates on a GPU: batches of a few fixed sizes, each computed by one CUDA graph.

Read `workers.engine.methods.ga3c.model.Trainer` first; this computes the same, faster. A batch of N
experiences is filled up to the next size by experiences that count 0 times in the sums of equation 5, so that
the gradient is that of the N.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.ga3c import Ga3cConfig
from workers.engine.nn.devices import create_stream, host_buffer, on_stream
from workers.engine.nn.graphs import Graphs
from workers.engine.nn.losses import ga3c_loss
from workers.engine.nn.networks import ActorCritic

SIZES = (8, 32, 128, 256)
"""Of batches of predictions and of updates; larger updates are computed as on a CPU."""


class Losses(NamedTuple):
    """Sums over the experiences of an update, and the norm of its gradient before clipping."""

    policy: float
    value: float
    entropy: float
    grad_norm: float


class GpuBatches:
    """A trainer's gradients and updates."""

    def __init__(
        self,
        network: ActorCritic,
        dtheta: Tensor,
        update: Callable[[Tensor, float, Tensor], Tensor],
        observation_shape: tuple[int, ...],
        observation_dtype: np.dtype[Any],
        *,
        graphs: bool = True,
    ) -> None:
        """Allocate the memory.

        Args:
            network: the trainer's network.
            dtheta: the trainer's gradient, (P,).
            update: clips a gradient to a norm, updates theta by it at a learning rate, a scalar, and returns
                the norm before clipping, a scalar.
            observation_shape: without the batch.
            observation_dtype: dtype of the observations.
            graphs: whether a GPU launches gradients and updates as CUDA graphs.
        """
        self._network = network
        self._dtheta = dtheta
        self._update = update
        self._device = device = dtheta.device
        self._graphs = Graphs(device, enabled=graphs)
        self._stream = create_stream(device)
        dtype = torch.from_numpy(np.empty(0, observation_dtype)).dtype
        N = SIZES[-1]
        self._observation_N = host_buffer(N, *observation_shape, dtype=dtype, device=device)
        self._action_N = host_buffer(N, dtype=torch.int64, device=device)
        self._R_N = host_buffer(N, dtype=torch.float32, device=device)
        self._counts_N = host_buffer(N, dtype=torch.float32, device=device)
        self._learning_rate = host_buffer(dtype=torch.float32, device=device)
        self._losses = host_buffer(3, dtype=torch.float32, device=device)
        self._norm = host_buffer(dtype=torch.float32, device=device)

    def compute_gradient(
        self,
        observation_N: NDArray[Any],
        action_N: NDArray[np.int32],
        R_N: NDArray[np.float32],
        config: Ga3cConfig,
    ) -> None:
        """Write the gradient on N experiences, at most the largest of `SIZES`, to dtheta."""
        n = len(R_N)
        size = next(size for size in SIZES if size >= n)
        self._observation_N.numpy()[:n] = observation_N
        self._action_N.numpy()[:n] = action_N
        self._R_N.numpy()[:n] = R_N
        self._counts_N.numpy()[:n], self._counts_N.numpy()[n:] = 1, 0
        settings = (config.beta, config.value_coefficient, config.log_eps)
        self._launch(("gradient", size, *settings), partial(self._gradient, size, *settings))

    def update(self, config: Ga3cConfig, learning_rate: float) -> Losses:
        """Update theta by dtheta, and return the losses; only one trainer at a time may do so."""
        self._learning_rate.fill_(learning_rate)
        max_norm = config.max_grad_norm or float("inf")
        self._launch(("update", max_norm), partial(self._step, max_norm))
        policy, value, entropy = self._losses.tolist()
        return Losses(policy, value, entropy, self._norm.item())

    def _launch(self, name: tuple[Any, ...], function: Callable[[], None]) -> None:
        """Run a function, and wait until it is done."""
        with on_stream(self._stream):
            self._graphs.run(name, function)
        if self._stream is not None:
            self._stream.synchronize()

    def _gradient(self, size: int, beta: float, value_coefficient: float, log_eps: float) -> None:
        observation_N, action_N, R_N, counts_N = (
            part[:size].to(self._device, non_blocking=True)
            for part in (self._observation_N, self._action_N, self._R_N, self._counts_N)
        )
        logits_NA, value_N = self._network(observation_N)
        loss = ga3c_loss(
            logits_NA,
            value_N,
            action_N,
            R_N,
            beta=beta,
            value_coefficient=value_coefficient,
            log_eps=log_eps,
            counts_N=counts_N,
        )
        self._dtheta.zero_()
        loss.total.backward()  # type: ignore[no-untyped-call]
        terms = torch.stack([loss.policy, loss.value, loss.entropy]).detach()
        self._losses.copy_(terms, non_blocking=True)

    def _step(self, max_norm: float) -> None:
        rate = self._learning_rate.to(self._device, non_blocking=True)
        self._norm.copy_(self._update(self._dtheta, max_norm, rate), non_blocking=True)
