"""Vectors that processes share. The memory has no name: nothing is left behind however they end."""

import mmap
import os
from collections.abc import Callable
from multiprocessing.reduction import DupFd
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class SharedVectors:
    """`rows` float32 vectors of `length` elements in one anonymous file; `fd` is passed to children.

    A child of `multiprocessing` gets one as an argument. Rows that no one has written take no memory.
    """

    def __init__(self, rows: int, length: int, *, fd: int | None = None) -> None:
        self.shape = (rows, length)
        self.fd = os.memfd_create("callboard-vectors") if fd is None else fd
        if fd is None:
            os.ftruncate(self.fd, rows * length * 4)
        self._map = mmap.mmap(self.fd, rows * length * 4)

    def __reduce__(self) -> tuple[Any, ...]:
        """As `multiprocessing` passes it to a child it starts."""
        return _attached, (SharedVectors, self.shape, DupFd(self.fd))

    def vectors(self) -> list[Tensor]:
        """Views of the rows; every process sees the same bytes."""
        return list(torch.frombuffer(self._map, dtype=torch.float32).view(self.shape))

    def view(self, dtype: type[Any]) -> NDArray[Any]:
        """The same bytes as one array of another type."""
        return np.frombuffer(self._map, dtype)

    def close(self) -> None:
        """Close the file; the views stay."""
        os.close(self.fd)


class SharedCounts:
    """Rows of 64-bit integers, shared likewise."""

    def __init__(self, rows: int, length: int, *, fd: int | None = None) -> None:
        self._memory = SharedVectors(rows, 2 * length, fd=fd)
        self.shape = (rows, length)

    def __reduce__(self) -> tuple[Any, ...]:
        """As `multiprocessing` passes it to a child it starts."""
        return _attached, (SharedCounts, self.shape, DupFd(self._memory.fd))

    def counts(self) -> NDArray[np.int64]:
        """A view, (rows, length)."""
        return self._memory.view(np.int64).reshape(self.shape)

    def close(self) -> None:
        """Close the file; the view stays."""
        self._memory.close()


def _attached(kind: Callable[..., Any], shape: tuple[int, int], fd: Any) -> Any:
    return kind(*shape, fd=fd.detach())
