"""Causal smoothing: past values never change."""

import math
from functools import lru_cache
from typing import Literal

import numpy as np

from backend.metrics.chunks import Array
from backend.metrics.rollups import last_rows

Smoothing = Literal["points", "ema", "window"]
"""An exponential moving average over points, one over x, or the mean of a window of x."""

MAX_WEIGHT = 0.9999
_NEGLIGIBLE = 1e-9
EMA_REACH = -math.log(_NEGLIGIBLE)
"""Time constants after which a value has a negligible weight."""


@lru_cache(64)
def window_rows(weight: float) -> int:
    """How many rows, itself included, a smoothed value depends on: a power of two.

    Older rows would have a weight below 1e-9 of the total. Because the window is finite, the latest part of a
    long series can be smoothed without the rest.
    """
    return 1 << math.ceil(math.log2(math.log(_NEGLIGIBLE) / math.log(weight)))


def smoothed(values: Array, weight: float) -> Array:
    """Debiased exponential moving average over rows.

    y_t = sum_j weight^j x_{t-j} / sum_j weight^j,  j = 0 .. window_rows(weight) - 1,

    over the existing rows with finite x; NaN before the first of them. Each y_t is a function of the rows up
    to t alone, to the bit.

    Args:
        values: one value per row, f8.
        weight: in (0, 1); TensorBoard calls it smoothing.
    """
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0)
    mass = finite.astype("<f8")
    shift, factor, end = 1, weight, window_rows(weight)
    # After k rounds each element is the weighted sum of the 2^k rows up to it.
    while shift < min(end, len(values)):
        total[shift:] += factor * total[:-shift]
        mass[shift:] += factor * mass[:-shift]
        shift, factor = 2 * shift, factor * factor
    with np.errstate(invalid="ignore"):
        total /= mass
    return total


def smoothed_at_ends(values: Array, weight: float, first: int, size: int) -> Array:
    """`smoothed` at the last row of each bucket only, identical to the bit.

    Args:
        values: one value per row, f8.
        weight: in (0, 1).
        first: the first row of the first bucket; earlier rows still enter the average.
        size: rows of a bucket, a power of two; the last bucket may be shorter.

    Returns:
        f8[buckets].
    """
    whole = (len(values) - first) // size * size
    ends = [_at_ends(values[: first + whole], weight, size)[-whole // size :]] if whole else []
    if first + whole < len(values):
        ends.append(_at_ends(values[-window_rows(weight) :], weight, window_rows(weight)))
    return np.concatenate(ends) if ends else np.empty(0)


def _at_ends(values: Array, weight: float, size: int) -> Array:
    """Smoothed values at every `size`-th row, counted from the end."""
    values = np.concatenate([np.full(-len(values) % size, np.nan), values])
    finite = np.isfinite(values)
    sums = np.array([np.where(finite, values, 0.0), finite])  # of values and of weights
    step, factor, end = 1, weight, window_rows(weight)
    # As in `smoothed`, but while a round adds rows of the same bucket, half of the elements suffice.
    while step < end and step < size:
        sums = sums[:, 1::2] + factor * sums[:, ::2]
        step, factor = 2 * step, factor * factor
    skipped = size // step
    sums = sums[:, skipped - 1 :: skipped]
    while step < end and step // size < sums.shape[1]:
        shift = step // size
        sums[:, shift:] += factor * sums[:, :-shift]
        step, factor = 2 * step, factor * factor
    total, mass = sums
    with np.errstate(invalid="ignore"):
        return np.asarray(total / mass)


def smoothed_over_x(
    values: Array, x: Array, kind: Smoothing, scale: float, first: int = 0, size: int = 1
) -> Array:
    """Moving average over x at the last row of each bucket, whatever the density of the rows.

    `ema`: y_t = sum_j w_j x_j / sum_j w_j with w_j = exp(-(x_t - x_j) / scale), over the rows up to t.
    `window`: the mean of the rows up to t with x_j > x_t - scale.

    Args:
        values: one value per row, f8; values that are not finite are left out.
        x: x of each row; where it decreases, the largest so far is used.
        kind: `ema` or `window`.
        scale: in units of x, above 0.
        first: the first row of the first bucket; earlier rows still enter the average.
        size: rows of a bucket; the last one may be shorter.

    Returns:
        f8[buckets]; NaN without finite values.
    """
    at = np.maximum.accumulate(x.astype("<f8"))
    ends = first + last_rows(len(values) - first, size)
    if not len(ends):
        return np.empty(0)
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        if kind == "window":
            since = np.searchsorted(at, at[ends] - scale, side="right")
            total, n = (np.concatenate([[0.0], np.cumsum(column)]) for column in (known, finite))
            return np.asarray((total[ends + 1] - total[since]) / (n[ends + 1] - n[since]))
        # The rows before the first bucket form one more.
        last = np.concatenate([[first - 1], ends]) if first else ends
        starts = np.concatenate([[0], last[:-1] + 1])
        weight = np.exp((at - np.repeat(at[last], np.diff([*starts, len(at)]))) / scale)
        total, mass = (np.add.reduceat(weight * column, starts) for column in (known, finite))
        shift = 1
        while shift < len(last):
            decay = np.exp((at[last[:-shift]] - at[last[shift:]]) / scale)
            total[shift:] += decay * total[:-shift]
            mass[shift:] += decay * mass[:-shift]
            shift *= 2
        return np.asarray((total / mass)[len(last) - len(ends) :])
