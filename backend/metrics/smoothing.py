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
