"""Histograms: their bytes, and what they say of the values that they count."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.statistics.columns import Array

MAX_BINS = 64


@dataclass(frozen=True)
class Histogram:
    """How many values lie between each two edges; counts may be fractions."""

    edges: Array
    """(n + 1,) increasing."""
    counts: Array
    """(n,) not negative, with a sum above 0."""

    @property
    def is_discrete(self) -> bool:
        """Whether each bin is of one whole number, as of actions."""
        return bool(np.all(np.diff(self.edges) == 1) and np.all(self.edges % 1 == 0.5))

    def to_bytes(self) -> bytes:
        """Edges, then counts, as little-endian floats of 64 bits."""
        return np.concatenate([self.edges, self.counts]).astype("<f8").tobytes()

    @classmethod
    def of_bytes(cls, content: bytes) -> "Histogram":
        """The inverse of `to_bytes`."""
        numbers = np.frombuffer(content, "<f8").astype(np.float64)
        n_edges = len(numbers) // 2 + 1
        return cls(numbers[:n_edges], numbers[n_edges:])


def quantiles(histogram: Histogram, shares: Sequence[float]) -> Array:
    """The values below which these shares of the values lie, which are even within a bin.

    Of shares 0 and 1: the edges of what the outermost bins with values cover.
    """
    filled = np.flatnonzero(histogram.counts)
    first, last = filled[0], filled[-1] + 1
    counts = histogram.counts[first:last]
    below = np.concatenate([[0.0], np.cumsum(counts)])
    # A share that lies in an empty stretch is at its beginning, as `interp` of increasing numbers needs.
    is_new = np.concatenate([[True], np.diff(below) > 0])
    edges = histogram.edges[first : last + 1]
    values: Array = np.interp(np.asarray(shares) * below[-1], below[is_new], edges[is_new])
    return values
