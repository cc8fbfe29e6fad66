"""Vectors that processes share. The memory has no name: nothing is left behind however they end."""

import mmap
import os

import torch
from torch import Tensor


class SharedVectors:
    """`rows` float32 vectors of `length` elements in one anonymous file; `fd` is passed to children."""

    def __init__(self, rows: int, length: int, *, fd: int | None = None) -> None:
        self.shape = (rows, length)
        self.fd = os.memfd_create("callboard-vectors") if fd is None else fd
        if fd is None:
            os.ftruncate(self.fd, rows * length * 4)
        self._map = mmap.mmap(self.fd, rows * length * 4)

    def vectors(self) -> list[Tensor]:
        """Views of the rows; every process sees the same bytes."""
        return list(torch.frombuffer(self._map, dtype=torch.float32).view(self.shape))
