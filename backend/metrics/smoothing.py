"""Smoothing that never rewrites the past."""

import math

import numpy as np

from backend.metrics.chunks import Array

MAX_WEIGHT = 0.9999
_NEGLIGIBLE = 1e-9


def window_rows(weight: float) -> int:
    """How many rows, itself included, a smoothed value depends on: a power of two.

    Older rows would weigh less than 1e-9 of the whole. That there is an end to them lets the newest part
    of a long series be smoothed without the rest.
    """
    return 1 << math.ceil(math.log2(math.log(_NEGLIGIBLE) / math.log(weight)))


def smoothed(values: Array, weight: float) -> Array:
    """Debiased exponential moving average over rows.

    y_t = sum_j weight^j x_{t-j} / sum_j weight^j,  j = 0 .. window_rows(weight) - 1,

    over the rows there are and whose x is a finite number; NaN before the first of those. Each y_t is a
    function of the rows up to t alone, to the bit.

    Args:
        values: one value a row, f8.
        weight: in (0, 1); what TensorBoard calls smoothing.
    """
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0)
    mass = finite.astype("<f8")
    shift, factor, end = 1, weight, window_rows(weight)
    # After k rounds each place holds the weighted sum of the 2^k rows up to it.
    while shift < min(end, len(values)):
        total[shift:] += factor * total[:-shift]
        mass[shift:] += factor * mass[:-shift]
        shift, factor = 2 * shift, factor * factor
    with np.errstate(invalid="ignore"):
        total /= mass
    return total


def smoothed_at_ends(values: Array, weight: float, first: int, size: int) -> Array:
    """`smoothed` at the last row of each bucket alone, to the bit, without the rows between.

    Args:
        values: one value a row, f8.
        weight: in (0, 1).
        first: the row with which the first bucket begins; those before it still weigh.
        size: rows of a bucket, a power of two; the last bucket may be short.

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
    total = np.where(finite, values, 0.0)
    mass = finite.astype("<f8")
    step, factor, end = 1, weight, window_rows(weight)
    # As in `smoothed`, but while a round adds what lies within a bucket, half of the places will do.
    while step < end and step < size:
        total = total[1::2] + factor * total[::2]
        mass = mass[1::2] + factor * mass[::2]
        step, factor = 2 * step, factor * factor
    skipped = size // step
    total, mass = total[skipped - 1 :: skipped], mass[skipped - 1 :: skipped]
    while step < end and step // size < len(total):
        shift = step // size
        total[shift:] += factor * total[:-shift]
        mass[shift:] += factor * mass[:-shift]
        step, factor = 2 * step, factor * factor
    with np.errstate(invalid="ignore"):
        total /= mass
    return total
