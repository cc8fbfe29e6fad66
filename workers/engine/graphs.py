"""CUDA graphs: what a function starts on a GPU, recorded once and from then on started as one.

A small network's layers take a GPU less time than the CPU takes to ask for them one by one.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

_WARM_UP = 3
"""Calls before the one that is recorded: libraries choose and allocate in the first ones."""


class _Recorded(NamedTuple):
    graph: torch.cuda.CUDAGraph
    x: Tensor
    y: Tensor


class Graphs:
    """A function of a number t and a tensor, recorded for each t.

    The function may be called more than once for one answer, and must read and write the same memory each
    time; x has the same shape each time.
    """

    def __init__(self, function: Callable[[int, Tensor], Tensor]) -> None:
        self._function = function
        self._recorded: dict[int, _Recorded] = {}

    def __call__(self, t: int, x: Tensor) -> Tensor:
        """The function's answer, written again by the next call with this t."""
        recorded = self._recorded.get(t)
        if recorded is None:
            recorded = self._recorded[t] = self._record(t, x.clone())
        recorded.x.copy_(x)
        recorded.graph.replay()
        return recorded.y

    def clear(self) -> None:
        """Forget all, for other memory is used from now on."""
        self._recorded.clear()

    def _record(self, t: int, x: Tensor) -> _Recorded:
        aside = torch.cuda.Stream(x.device)  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream(x.device))
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UP):
                self._function(t, x)
        torch.cuda.current_stream(x.device).wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = self._function(t, x)
        return _Recorded(graph, x, y)
