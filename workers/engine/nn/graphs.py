"""CUDA graphs: the kernels and copies that a function launches, recorded once and then launched together.

A small network's layers take a GPU less time than the CPU needs to launch them one by one.
"""

import threading
from collections.abc import Callable, Hashable

import torch

_RECORDING = threading.Lock()
"""One thread of the process records at a time."""


class Graphs:
    """Functions that are called over and over on one GPU; each call after the first is one launch.

    A function takes nothing and returns nothing: it reads and writes the same memory each time. It must not
    wait for the GPU, and what it does on the CPU is done in the first two calls only. The first call runs as
    it stands, for libraries choose algorithms in it and memory is allocated; the second is recorded.
    """

    def __init__(
        self, device: torch.device, generator: torch.Generator | None = None, *, enabled: bool = True
    ) -> None:
        """Prepare to record.

        Args:
            device: on a CPU every call runs as it stands.
            generator: the generator of the random numbers that the functions draw.
            enabled: whether to record; False: every call runs as it stands.
        """
        self._device = device
        self._generator = generator
        self._enabled = enabled and device.type == "cuda"
        self._has_run: set[Hashable] = set()
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle() if self._enabled else None

    def run(self, name: Hashable, function: Callable[[], None]) -> None:
        """Launch the function that goes by this name, on the current stream."""
        if not self._enabled or name not in self._has_run:
            self._has_run.add(name)
            function()
            return
        if name not in self._graphs:
            self._graphs[name] = self._record(function)
        self._graphs[name].replay()

    def forget(self, name: Hashable) -> None:
        """Record this function anew, because it has changed."""
        self._graphs.pop(name, None)

    def _record(self, function: Callable[[], None]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        if self._generator is not None:
            graph.register_generator_state(self._generator)
        stream = torch.cuda.current_stream(self._device)
        # Other threads of the process may use the GPU meanwhile.
        recording = torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local")
        with _RECORDING, recording:
            function()
        return graph
