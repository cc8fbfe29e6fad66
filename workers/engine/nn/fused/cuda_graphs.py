"""CUDA graphs: the kernels that a function launches, recorded once and then launched together.

A small network's layers take a GPU less time than the CPU needs to launch them one by one.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

_WARM_UP_CALLS = 3
"""Calls before the recorded one: in the first calls libraries choose algorithms and allocate memory."""


class _Recording(NamedTuple):
    graph: torch.cuda.CUDAGraph
    x: Tensor
    y: Tensor


class CudaGraphs:
    """A function of a time step t and a tensor x, recorded for each t.

    The function must be callable several times for one result and use the same memory each time; x has the
    same shape each time.
    """

    def __init__(self, function: Callable[[int, Tensor], Tensor]) -> None:
        self._function = function
        self._recordings: dict[int, _Recording] = {}

    def __call__(self, t: int, x: Tensor) -> Tensor:
        """The function's result, overwritten by the next call with this t."""
        recording = self._recordings.get(t)
        if recording is None:
            recording = self._recordings[t] = self._record(t, x.clone())
        recording.x.copy_(x)
        recording.graph.replay()
        return recording.y

    def clear(self) -> None:
        """Drop all recordings, because other memory is used from now on."""
        self._recordings.clear()

    def _record(self, t: int, x: Tensor) -> _Recording:
        stream = torch.cuda.Stream(x.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(x.device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP_CALLS):
                self._function(t, x)
        torch.cuda.current_stream(x.device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = self._function(t, x)
        return _Recording(graph, x, y)
