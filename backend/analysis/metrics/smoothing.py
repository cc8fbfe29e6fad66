"""Causal smoothing: a smoothed value is computed from recorded points alone, and later ones never change it.

A chart draws the mean of a window of x by default, as papers do: DQN's and Dopamine's learning curves are
means over stretches of 250,000 frames or steps (Mnih et al. 2015, Extended Data Figure 2; Castro et al. 2018,
"Dopamine: a research framework for deep reinforcement learning", section 4), and Machado et al. 2018,
"Revisiting the Arcade Learning Environment", section 5, average training episodes up to fixed numbers of
frames. Weights by x and not by point give a failing agent, whose episodes are short and many, no more weight.

The mean of a window is drawn in the middle of the points that it is the mean of. Drawn at the window's end, a
collapse would appear half a window late; an exponential moving average, drawn at its latest point, has a
delay of its time constant.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from backend.statistics.columns import Array, last_rows

Smoothing = Literal["points", "ema", "window"]
"""`points`: an exponential moving average whose weights fall with each point; `ema`: one whose weights
fall with the distance in x; `window`: the mean of a window of x."""

MAX_WEIGHT = 0.9999
_NEGLIGIBLE = 1e-9
EMA_REACH = -math.log(_NEGLIGIBLE)
"""Time constants after which a value has a negligible weight."""


@lru_cache(64)
def ema_rows(weight: float) -> int:
    """How many rows a smoothed value depends on, its own included: a power of two.

    Older rows would have a weight below 1e-9 of the total. Because the window is finite, the latest part of a
    long series can be smoothed without the rest.
    """
    return 1 << max(0, math.ceil(math.log2(math.log(_NEGLIGIBLE) / math.log(weight))))


def smooth_rows(values: Array, weight: float) -> Array:
    """Debiased exponential moving average over rows.

    y_t = sum_j weight^j v_{t-j} / sum_j weight^j,  j = 0 .. ema_rows(weight) - 1,

    over the existing rows with finite v; NaN where v_t is not finite. Each y_t is a function of the rows up
    to t alone, to the bit.

    Args:
        values: one value per row, f8.
        weight: weight of the past, in (0, 1); TensorBoard calls it smoothing.
    """
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0)
    mass = finite.astype("<f8")
    shift, factor, end = 1, weight, ema_rows(weight)
    # After k rounds each element is the weighted sum of the 2^k rows up to it.
    while shift < min(end, len(values)):
        total[shift:] += factor * total[:-shift]
        mass[shift:] += factor * mass[:-shift]
        shift, factor = 2 * shift, factor * factor
    with np.errstate(invalid="ignore"):
        total /= mass
    total[~finite] = np.nan
    return total


def smooth_bucket_ends(values: Array, weight: float, first: int, size: int) -> Array:
    """`smooth_rows` at the last row of each bucket only, identical to the bit; where that row is not finite,
    the average of those before it.

    Args:
        values: one value per row, f8.
        weight: weight of the past, in (0, 1).
        first: the first row of the first bucket; earlier rows still enter the average.
        size: rows of a bucket, a power of two; the last bucket may be shorter.

    Returns:
        f8[buckets].
    """
    whole = (len(values) - first) // size * size
    ends = [_smooth_every(values[: first + whole], weight, size)[-whole // size :]] if whole else []
    if first + whole < len(values):
        ends.append(_smooth_every(values[-ema_rows(weight) :], weight, ema_rows(weight)))
    return np.concatenate(ends) if ends else np.empty(0)


def _smooth_every(values: Array, weight: float, size: int) -> Array:
    """Smoothed values at every `size`-th row, counted from the end."""
    values = np.concatenate([np.full(-len(values) % size, np.nan), values])
    finite = np.isfinite(values)
    sums = np.array([np.where(finite, values, 0.0), finite])  # of values and of weights
    step, factor, end = 1, weight, ema_rows(weight)
    # As in `smooth_rows`, but while a round adds rows of the same bucket, half of the elements suffice.
    while step < end and step < size:
        sums = sums[:, 1::2] + factor * sums[:, ::2]
        step, factor = 2 * step, factor * factor
    stride = size // step  # 1 unless the weight reaches less far than a bucket
    sums = sums[:, stride - 1 :: stride]
    while step < end and step // size < sums.shape[1]:
        shift = step // size
        sums[:, shift:] += factor * sums[:, :-shift]
        step, factor = 2 * step, factor * factor
    total, mass = sums
    with np.errstate(invalid="ignore"):
        return np.asarray(total / mass)


def average_over_x(values: Array, x: Array, scale: float, first: int = 0, size: int = 1) -> Array:
    """Exponential moving average over x at the last row of each bucket, whatever the density of the rows.

    y_t = sum_j w_j v_j / sum_j w_j with w_j = exp(-(x_t - x_j) / scale), over the rows j <= t with a finite
    value v_j.

    Args:
        values: one value per row, f8; values that are not finite are left out.
        x: x of each row; where it decreases, the largest so far is used.
        scale: width in units of x, above 0.
        first: the first row of the first bucket; earlier rows still enter the average.
        size: rows of a bucket; the last one may be shorter.

    Returns:
        f8[buckets]; NaN without finite values.
    """
    ascending = _ascending(x)
    ends = first + last_rows(len(values) - first, size)
    if not len(ends):
        return np.empty(0)
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0)
    # The rows before the first bucket form one more.
    last = np.concatenate([[first - 1], ends]) if first else ends
    starts = np.concatenate([[0], last[:-1] + 1])
    weight = np.exp((ascending - np.repeat(ascending[last], np.diff([*starts, len(ascending)]))) / scale)
    total, mass = (np.add.reduceat(weight * column, starts) for column in (known, finite))
    shift = 1
    while shift < len(last):
        decay = np.exp((ascending[last[:-shift]] - ascending[last[shift:]]) / scale)
        total[shift:] += decay * total[:-shift]
        mass[shift:] += decay * mass[:-shift]
        shift *= 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((total / mass)[len(last) - len(ends) :])


@dataclass(frozen=True)
class Windows:
    """Of each bucket, the mean of the finite rows in the window of x that ends at its last row."""

    mean: Array
    """NaN without finite rows."""
    deviation: Array
    """Standard deviation of the same rows; NaN of fewer than two."""
    low: Array
    """The least of them; infinite without any."""
    high: Array
    """The largest of them; minus infinity without any."""
    n: Array
    """Their number."""
    x: Array
    """Where the mean is drawn: in the middle of the first and the last of these rows. It does not decrease.
    Without such rows, the bucket's x."""
    drawn: Array
    """The mean; NaN where the line breaks: the bucket in which `x` lies has no finite value or an infinite
    one, or the line from the point before would cross such a bucket."""

    @property
    def band(self) -> tuple[Array, Array]:
        """A standard deviation below and above the mean, but no value that none of the rows has reached."""
        below = np.maximum(self.drawn - self.deviation, self.low)
        return below, np.minimum(self.drawn + self.deviation, self.high)


def average_windows(
    values: Array, x: Array, scale: float, first: int = 0, size: int = 1, *, value_origin: float = 0.0
) -> Windows:
    """Mean of the rows up to t with x_j > x_t - scale, at the last row t of each bucket.

    To the bit, the results depend only on the rows from the window of bucket `first // size - 1` on: whole
    buckets before it can be left out, so that the latest part of a long series is smoothed alone.

    Args:
        values: one value per row, f8; values that are not finite are left out.
        x: x of each row; where it decreases, the largest so far is used.
        scale: width in units of x, above 0.
        first: the first row of the first bucket; earlier rows still enter the windows.
        size: rows of a bucket; the last one may be shorter.
        value_origin: a value near the others, subtracted before they are squared: else the squares of large
            values would leave no digits for a small deviation.
    """
    if first >= len(values):
        return Windows(*(np.empty(0) for _ in range(7)))
    ascending = _ascending(x)
    n_padding = -first % size  # earlier rows form buckets of the same size
    if n_padding:
        first += n_padding
        values = np.concatenate([np.full(n_padding, np.nan), values])
        ascending = np.concatenate([np.full(n_padding, ascending[0]), ascending])
    # Start one bucket earlier: whether the line breaks before the first point depends on the point before it.
    first_bucket = max(0, first // size - 1)
    end = min((first_bucket + 1) * size, len(values)) - 1
    window_start = int(ascending.searchsorted(ascending[end] - scale, side="right"))
    n_unused_buckets = min(window_start // size, first_bucket)
    n_unused = n_unused_buckets * size
    values, ascending = values[n_unused:], ascending[n_unused:]
    first, first_bucket = first - n_unused, first_bucket - n_unused_buckets
    finite = np.isfinite(values)
    is_whole = bool(finite.all())  # as is usual: then nothing is to be counted
    ends = last_rows(len(values), size)
    bucket_numbers = np.arange(first_bucket, len(ends))
    last = ends[first_bucket:]
    last_x = ascending[last]
    window_starts = np.minimum(ascending.searchsorted(last_x - scale, side="right"), last)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # the squares of values beyond 1e154
        known = values if is_whole else np.where(finite, values, 0.0)
        squared = (
            (known - value_origin) ** 2 if is_whole else np.where(finite, known - value_origin, 0.0) ** 2
        )
        columns = np.array([known, squared] if is_whole else [known, squared, finite])
        places = window_starts, bucket_numbers, size
        total, squares, *counted = _reduce_windows(np.add, 0.0, columns, *places)
        n = (last - window_starts + 1).astype("<f8") if is_whole else counted[0]
        mean = total / n
        variance = np.maximum(squares - n * (mean - value_origin) ** 2, 0.0) / np.where(n > 1, n - 1, np.nan)
        deviation = np.sqrt(variance)
    [low], [high] = (
        _reduce_windows(extreme, nothing, np.where(finite, values, nothing)[np.newaxis], *places)
        for extreme, nothing in ((np.minimum, np.inf), (np.maximum, -np.inf))
    )
    shown = slice(first // size - first_bucket, None)
    if is_whole:
        middle = (ascending[window_starts] + last_x) / 2
        return Windows(*(part[shown] for part in (mean, deviation, low, high, n, middle, mean)))
    rows = np.arange(len(values))
    next_finite = np.minimum.accumulate(np.where(finite, rows, len(rows) - 1)[::-1])[::-1]
    last_finite = np.maximum.accumulate(np.where(finite, rows, 0))
    middle = (ascending[next_finite[window_starts]] + ascending[last_finite[last]]) / 2
    middle = np.where(n > 0, middle, last_x)
    starts = np.arange(0, len(values), size)
    passes = np.logical_or.reduceat(finite, starts) & ~np.logical_or.reduceat(np.isinf(values), starts)
    place = np.searchsorted(ascending[ends], middle)
    drawn = np.where((n > 0) & _is_reached(place, passes), mean, np.nan)
    return Windows(*(part[shown] for part in (mean, deviation, low, high, n, middle, drawn)))


def _reduce_windows(
    ufunc: np.ufunc, nothing: float, columns: Array, window_starts: Array, bucket_numbers: Array, size: int
) -> Array:
    """The sums, or extremes, of the rows from `window_starts` to the end of each bucket, by those of whole
    buckets; `nothing` is that of no rows.

    A difference of cumulative sums would depend on all earlier rows, and lose small values after large ones.

    `reduceat` sums from each index to the next one. Of pairs of start and end, every second sum is thus that
    of a pair, and the others, from an end to the next start, are dropped; the column `padding` lets an end be
    the number of rows.
    """
    n_rows = columns.shape[1]
    padding = np.full((len(columns), 1), nothing)
    ends = np.minimum((bucket_numbers + 1) * size, n_rows)
    head_ends = np.minimum((window_starts // size + 1) * size, ends)
    rows = np.concatenate([columns, padding], axis=1)
    heads = ufunc.reduceat(rows, np.column_stack([window_starts, head_ends]).ravel(), axis=1)[:, ::2]
    rest = window_starts // size + 1
    has_rest = rest <= bucket_numbers
    if not has_rest.any():
        return np.asarray(heads)
    if size > 1:
        buckets = ufunc.reduceat(columns, np.arange(0, n_rows, size), axis=1)
        rows = np.concatenate([buckets, padding], axis=1)
    bodies = ufunc.reduceat(rows, np.column_stack([rest, bucket_numbers + 1]).ravel(), axis=1)[:, ::2]
    return np.asarray(ufunc(heads, np.where(has_rest, bodies, nothing)))


def average_row_windows(values: Array, x: Array, scale: float) -> tuple[Array, Array]:
    """Where the mean of each row's window is drawn, and the mean, as `average_windows` with buckets of one
    row, by cumulative sums; to about 19 digits of the sum of all values so far.

    Later rows change nothing, to the bit; all earlier ones must be there.
    """
    ascending = _ascending(x)
    if not len(ascending):
        return ascending, np.empty(0)
    finite = np.isfinite(values)
    rows = np.arange(len(ascending))
    window_starts = np.minimum(np.searchsorted(ascending, ascending - scale, side="right"), rows)
    # Relative to the first value, so that a large one shared by all costs no digits.
    origin = values[np.argmax(finite)] if finite.any() else 0.0
    known = np.where(finite, values, origin) - origin
    total, n = (np.concatenate([[0.0], np.cumsum(column, dtype=np.longdouble)]) for column in (known, finite))
    count = (n[1:] - n[window_starts]).astype("<f8")
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (total[1:] - total[window_starts]).astype("<f8") / count + origin
    next_finite = np.minimum.accumulate(np.where(finite, rows, len(rows) - 1)[::-1])[::-1]
    last_finite = np.maximum.accumulate(np.where(finite, rows, 0))
    middle = np.where(
        count > 0, (ascending[next_finite[window_starts]] + ascending[last_finite]) / 2, ascending
    )
    place = np.searchsorted(ascending, middle)
    return middle, np.where((count > 0) & _is_reached(place, finite), mean, np.nan)


def _ascending(x: Array) -> Array:
    """The largest x up to each row, as f8."""
    known = x.astype("<f8")
    is_ascending = bool((known[1:] >= known[:-1]).all())  # as is usual; to look is a tenth of the work
    return known if is_ascending else np.maximum.accumulate(known)


def _is_reached(place: Array, passes: Array) -> Array:
    """Whether a line may go to each point from the one before it: it may pass the point's bucket, `place`,
    and all buckets between the two."""
    n_gaps = np.cumsum(~passes)
    n_gaps_before = n_gaps - ~passes
    crosses = n_gaps_before[place[1:]] > n_gaps[place[:-1]]
    return np.asarray(passes[place] & ~np.concatenate([[False], crosses]))
