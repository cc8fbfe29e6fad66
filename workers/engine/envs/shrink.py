"""Shrinking pictures by area averaging, several times as fast as a general resize.

n pixels become m: with g their greatest common divisor, g blocks of n/g pixels become g blocks of m/g, all by
the same few weights. 210×160 to 84×84 so takes a matrix of 2×5 down the columns and one of 40×21 along rows.
"""

from math import gcd

import numpy as np
from numpy.typing import NDArray


class Shrink:
    """Brings pictures of one size to another; the answer is that of exact averages, rounded."""

    def __init__(self, height: int, width: int, size: tuple[int, int]) -> None:
        """Prepare for (height, width) pictures that are to be `size`, neither side larger than before."""
        down, along = _block(height, size[0]), _block(width, size[1]).T.copy()
        columns = np.empty((height, width), np.float32)
        rows = np.empty((height // down.shape[1], len(down), width), np.float32)
        small = np.empty((size[0] * width // len(along), along.shape[1]), np.float32)
        self._down, self._along = down, along
        self._picture, self._blocks = columns, columns.reshape(-1, down.shape[1], width)
        self._rows, self._row_blocks = rows, rows.reshape(-1, len(along))
        self._small, self._out = small, small.reshape(size)

    def __call__(self, picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Whole numbers; written again by the next call."""
        np.copyto(self._picture, picture)
        np.matmul(self._down, self._blocks, out=self._rows)
        np.matmul(self._row_blocks, self._along, out=self._small)
        np.rint(self._out, out=self._out)
        return self._out


def _block(n: int, m: int) -> NDArray[np.float32]:
    """(m/g, n/g): how much of each old pixel is in each new one of a block."""
    g = gcd(n, m)
    n, m = n // g, m // g
    # In units of 1/m of an old pixel: old ones are m wide, new ones n.
    old, new = np.arange(n) * m, np.arange(m)[:, None] * n
    overlap = np.minimum(old + m, new + n) - np.maximum(old, new)
    share: NDArray[np.float32] = (np.maximum(overlap, 0) / n).astype(np.float32)
    return share
