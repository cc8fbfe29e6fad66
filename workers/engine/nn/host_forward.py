"""A forward pass from this computer's memory to its memory: on a GPU, one launch."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.engine.nn.devices import create_stream, host_buffer, on_stream
from workers.engine.nn.graphs import Graphs


class HostForward:
    """A function of a batch of observations whose size varies, computed at a few fixed sizes.

    The observations are in pinned memory, `observation_B`, to which the caller writes them. Copies, forward
    pass and the copies back are one CUDA graph for each size; what is computed for the rest of a size, from
    the observations of earlier calls, is not returned.
    """

    def __init__(
        self,
        function: Callable[[Tensor], tuple[Tensor, ...]],
        sizes: Sequence[int],
        observation_shape: tuple[int, ...],
        observation_dtype: np.dtype[Any],
        device: torch.device,
        *,
        graphs: bool = True,
    ) -> None:
        """Allocate the memory.

        Args:
            function: observations (B, …) on the device -> results (B, …) there; it draws no random numbers.
            sizes: the sizes of the batches, ascending.
            observation_shape: without the batch.
            observation_dtype: dtype of the observations.
            device: where the function computes.
            graphs: whether a GPU launches it as a CUDA graph.
        """
        self._function = function
        self._sizes = sizes
        self._graphs = Graphs(device, enabled=graphs)
        self._stream = create_stream(device)
        dtype = torch.from_numpy(np.empty(0, observation_dtype)).dtype
        self._host_B = host_buffer(sizes[-1], *observation_shape, dtype=dtype, device=device)
        self._device_B = torch.zeros_like(self._host_B, device=device)
        self._results: list[Tensor] = []
        self.observation_B: NDArray[Any] = self._host_B.numpy()
        """(B, …) memory for the observations; B is the largest size."""

    def __call__(self, n: int) -> list[NDArray[Any]]:
        """The results for the first n of `observation_B`, until the next call."""
        size = next(size for size in self._sizes if size >= n)
        with on_stream(self._stream):
            self._graphs.run(size, partial(self._compute, size))
        if self._stream is not None:
            self._stream.synchronize()
        return [result[:n].numpy() for result in self._results]

    @torch.no_grad()
    def _compute(self, size: int) -> None:
        observation_B = self._device_B[:size].copy_(self._host_B[:size], non_blocking=True)
        results = self._function(observation_B)
        if not self._results:
            shapes = [(self._sizes[-1], *result.shape[1:]) for result in results]
            self._results = [
                host_buffer(*shape, dtype=result.dtype, device=observation_B.device)
                for shape, result in zip(shapes, results, strict=True)
            ]
        for kept, result in zip(self._results, results, strict=True):
            kept[:size].copy_(result, non_blocking=True)
