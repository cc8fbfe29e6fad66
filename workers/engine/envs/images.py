"""Images: shrinking observations by area averaging, and encoding rendered frames as JPEG.

`Shrink` is several times as fast as a general resize. n pixels become m: with g their greatest common
divisor, g blocks of n/g pixels become g blocks of m/g, all with the same weights. 210×160 to 84×84 takes a
2×5 matrix down the columns and a 40×21 matrix along the rows. Weights are whole numbers, so that all sums
are exact in float32 in whatever order a processor adds: one seed gives the same observations everywhere.
"""

import time
from math import gcd

import cv2
import numpy as np
from numpy.typing import NDArray

SIZE = 84
"""Side of square observations (Mnih et al. 2015)."""
FRAME_INTERVAL_S = 1 / 15
"""Minimum time between two encoded frames."""
EXACT = 2**24
"""Whole numbers up to this one are exact in float32."""


class Shrink:
    """Shrinks images from one fixed size to another: the exact average, rounded, halves to even."""

    def __init__(self, height: int, width: int, size: tuple[int, int]) -> None:
        """Prepare to shrink (height, width) images to `size`, neither side larger than before.

        Raises:
            ValueError: the image is too large for exact sums.
        """
        down, along = _block(height, size[0]), _block(width, size[1]).T.copy()
        columns = np.empty((height, width), np.float32)
        rows = np.empty((height // down.shape[1], len(down), width), np.float32)
        small = np.empty((size[0] * width // len(along), along.shape[1]), np.float32)
        self._down, self._along = down, along
        self._area = np.float32(down.shape[1] * len(along))  # of a new pixel, in the units of the weights
        if 255 * self._area > EXACT:
            raise ValueError(f"an image of {height}x{width} pixels cannot be shrunk to {size[0]}x{size[1]}")
        self._image, self._blocks = columns, columns.reshape(-1, down.shape[1], width)
        self._rows, self._row_blocks = rows, rows.reshape(-1, len(along))
        self._small, self._out = small, small.reshape(size)

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The shrunk image, in whole numbers; the next call overwrites it."""
        np.copyto(self._image, image)
        np.matmul(self._down, self._blocks, out=self._rows)
        np.matmul(self._row_blocks, self._along, out=self._small)
        np.divide(self._out, self._area, out=self._out)
        np.rint(self._out, out=self._out)
        return self._out


def _block(n: int, m: int) -> NDArray[np.float32]:
    """(m/g, n/g): weight of each old pixel in each new pixel of a block; whole numbers, n/g in each row."""
    g = gcd(n, m)
    n, m = n // g, m // g
    # In units of 1/m of an old pixel: old ones are m wide, new ones n.
    old, new = np.arange(n) * m, np.arange(m)[:, None] * n
    overlap = np.minimum(old + m, new + n) - np.maximum(old, new)
    weights: NDArray[np.float32] = np.maximum(overlap, 0).astype(np.float32)
    return weights


class FrameEncoder:
    """Encodes rendered frames as JPEG, at most one every `FRAME_INTERVAL_S`."""

    def __init__(self) -> None:
        self._last_frame_s = 0.0

    def encode(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
        """The JPEG bytes of a frame (height, width, 3); None if the last one is too recent."""
        now = time.monotonic()
        if now - self._last_frame_s < FRAME_INTERVAL_S:
            return None
        self._last_frame_s = now
        _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))
        return np.asarray(jpeg, np.uint8).reshape(-1)
