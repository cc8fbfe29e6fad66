"""DQN's gradient on a GPU: the copies of a minibatch, loss, gradient and sums are one CUDA graph.

Read `workers.engine.methods.dqn.learner.DqnNetworks` first; this computes the same, faster.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from workers.engine.nn.devices import create_stream, host_buffer, on_stream
from workers.engine.nn.graphs import Graphs
from workers.engine.nn.replay import Batch


class GpuMinibatch:
    """Computes gradients on minibatches of one size."""

    def __init__(
        self,
        compute: Callable[[tuple[Tensor, ...]], Tensor],
        batch: Batch,
        device: torch.device,
        *,
        graphs: bool = True,
    ) -> None:
        """Allocate the memory.

        Args:
            compute: writes the gradient on a minibatch, whose tensors are on the GPU; returns sums over it.
            batch: a minibatch of the size of all.
            device: the GPU.
            graphs: whether it launches the gradient as a CUDA graph.
        """
        self._compute = compute
        self._device = device
        self._graphs = Graphs(device, enabled=graphs)
        self._stream = create_stream(device)
        self._host = [
            host_buffer(*array.shape, dtype=torch.from_numpy(array).dtype, device=device) for array in batch
        ]
        self._sums: Tensor | None = None

    def compute(self, batch: Batch) -> list[float]:
        """Write the gradient on a minibatch, and return what `compute` returns."""
        for memory, array in zip(self._host, batch, strict=True):
            memory.numpy()[:] = array
        with on_stream(self._stream):
            self._graphs.run("gradient", self._launch)
        if self._stream is not None:
            self._stream.synchronize()
        assert self._sums is not None
        sums: list[float] = self._sums.tolist()
        return sums

    def _launch(self) -> None:
        sums = self._compute(tuple(part.to(self._device, non_blocking=True) for part in self._host))
        if self._sums is None:
            self._sums = host_buffer(*sums.shape, dtype=sums.dtype, device=self._device)
        self._sums.copy_(sums, non_blocking=True)
