"""Columns of numbers, and buckets of their rows."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Columns = dict[str, Array]
"""Arrays of equal length by name."""

NOT_FINITE = ("nan", "inf", "neg_inf")
"""Numbers of the values of each kind that is not finite."""


def bucket_rows(n_points: int, max_buckets: int) -> int:
    """The smallest power of two for which `n_points` rows form at most `max_buckets` buckets."""
    return 1 << (-(-n_points // max_buckets) - 1).bit_length() if n_points > max_buckets else 1


def last_rows(n: int, size: int) -> Array:
    """The last row of each bucket of `size` among `n` rows."""
    return np.minimum(np.arange(size - 1, n + size - 1, size), n - 1)


def merge_at_equal_x(buckets: Columns, x: str) -> Columns:
    """Consecutive buckets at one x merged, for drawing: several episodes may end at one agent step.

    Their mean is weighted by their counts; values that are not finite are ignored. Columns other than those
    of `AGGREGATES` and `NOT_FINITE`, which are added up, have the value of the last bucket.
    """
    differs = buckets[x][1:] != buckets[x][:-1]
    if differs.all():
        return buckets
    first = np.concatenate([[True], differs])
    starts = np.flatnonzero(first)
    last = np.append(starts[1:], len(first)) - 1
    merged = {name: column[last] for name, column in buckets.items()}
    mean, low, high = (_finite(buckets[name]) for name in ("mean", "min", "max"))
    known = np.where(np.isnan(mean), 0, buckets["count"])
    total = np.add.reduceat(np.where(known > 0, mean, 0.0) * known, starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = total / np.add.reduceat(known, starts)
    # A bucket that is not merged keeps its values to the bit.
    alone = np.diff(np.append(starts, len(first))) == 1
    merged["mean"] = np.where(alone, merged["mean"], means)
    merged["min"] = np.where(alone, merged["min"], np.fmin.reduceat(low, starts))
    merged["max"] = np.where(alone, merged["max"], np.fmax.reduceat(high, starts))
    numbers = ("count", *(name for name in NOT_FINITE if name in buckets))
    return merged | {name: np.add.reduceat(buckets[name], starts) for name in numbers}


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, np.nan)
