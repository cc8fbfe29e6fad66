"""Aggregates of series: buckets of rows, so that a chart need not read every point, and summaries.

A bucket of B rows, a power of two, is rows kB to kB + B - 1 of a series, in order of arrival, so that only
the last bucket changes while the series grows. Its mean, min, max and last value ignore NaN; they are NaN
only if all of its values are. Its x is that of its last row.

A closed chunk is stored with its buckets of `BASE_ROWS` rows. Coarser buckets are computed from these, for
open chunks too, so that a bucket is identical to the bit however it was read. The `Summary` of a series is
of all its finite values.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from backend.analysis.metrics.chunks import X_COLUMNS, Array, Columns, decode, encode, n_rows

BASE_ROWS = 16
"""Rows of a stored bucket. Charts with finer buckets read the points."""

AGGREGATES = ("count", "mean", "min", "max", "last")
"""`count` is the number of values that are not NaN."""

NOT_FINITE = ("nan", "inf", "neg_inf")
"""Numbers of the values of each kind that is not finite."""

_DTYPES = dict.fromkeys(X_COLUMNS, "<i8") | {"wall_time_s": "<f8", "count": "<i8"}
_DTYPES |= dict.fromkeys(("mean", "min", "max", "last"), "<f8")


def bucket_rows(n_points: int, max_buckets: int) -> int:
    """The smallest power of two for which `n_points` rows form at most `max_buckets` buckets."""
    return 1 << (-(-n_points // max_buckets) - 1).bit_length() if n_points > max_buckets else 1


def pack(columns: Columns) -> bytes:
    """The stored roll-up of a closed chunk."""
    return encode(aggregate(columns, BASE_ROWS, X_COLUMNS), _DTYPES)


def unpack(data: bytes, x: str) -> Columns:
    """Buckets of `BASE_ROWS` rows from the result of `pack`, with the x column `x`."""
    return decode(data, (x, *AGGREGATES), _DTYPES)


def unpack_x(data: bytes, x: str) -> Array:
    """The column `x` alone."""
    return decode(data, (x,), _DTYPES)[x]


def aggregate(columns: Columns, rows: int, x: tuple[str, ...]) -> Columns:
    """Aggregate points to buckets of `rows` (a power of two); the last bucket may be shorter.

    Args:
        columns: `value` and the columns named in `x`, starting at the first row of a bucket.
        rows: rows of a bucket.
        x: names of the x columns.
    """
    direct = min(rows, BASE_ROWS)
    n = n_rows(columns)
    ends = last_rows(n, direct)
    buckets = {name: columns[name][ends] for name in x}
    value = columns["value"]
    if direct == 1:
        buckets |= dict.fromkeys(("mean", "min", "max", "last"), value)
        return buckets | {"count": (~np.isnan(value)).astype("<i8")}
    values = _pad(value, direct)
    known = ~np.isnan(values)
    count = known.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        buckets["mean"] = np.where(known, values, 0.0).sum(axis=1) / count
    buckets |= _order(values, values, values)
    buckets["count"] = count
    return merge_buckets(buckets, rows // direct)


def merge_buckets(buckets: Columns, factor: int) -> Columns:
    """Merge each `factor` (a power of two) consecutive buckets."""
    if factor == 1:
        return buckets
    ends = last_rows(n_rows(buckets), factor)
    coarse = {name: buckets[name][ends] for name in X_COLUMNS if name in buckets}
    counts = _pad(buckets["count"], factor, 0)
    count = counts.sum(axis=1)
    means = np.where(counts > 0, _pad(buckets["mean"], factor), 0.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        coarse["mean"] = (means * counts).sum(axis=1) / count
    coarse |= _order(*(_pad(buckets[name], factor) for name in ("min", "max", "last")))
    return coarse | {"count": count}


def not_finite(values: Array, rows: int) -> Columns:
    """The columns of `NOT_FINITE` of buckets of `rows` values."""
    kinds = (np.isnan(values), np.isposinf(values), np.isneginf(values))
    return {name: sum_each(kind, rows) for name, kind in zip(NOT_FINITE, kinds, strict=True)}


def sum_each(numbers: Array, factor: int) -> Array:
    """The sum of each `factor` consecutive numbers."""
    return np.asarray(_pad(numbers.astype("<i8"), factor, 0).sum(axis=1))


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


def last_rows(n: int, size: int) -> Array:
    """The last row of each bucket of `size` among `n` rows."""
    return np.minimum(np.arange(size - 1, n + size - 1, size), n - 1)


def _pad(values: Array, width: int, fill: float = np.nan) -> Array:
    n = len(values)
    if n % width:
        values = np.concatenate([values, np.full(-n % width, fill, values.dtype)])
    return values.reshape(-1, width)


def _order(low: Array, high: Array, late: Array) -> Columns:
    # fmin and fmax ignore NaN.
    last_known = late.shape[1] - 1 - np.argmax(~np.isnan(late)[:, ::-1], axis=1)
    return {
        "min": np.fmin.reduce(low, axis=1),
        "max": np.fmax.reduce(high, axis=1),
        "last": late[np.arange(len(late)), last_known],
    }


@dataclass(frozen=True)
class Summary:
    """Statistics of the finite values of a series, updated as points arrive; None if there are none."""

    n_finite: int = 0
    mean_value: float | None = None
    min_value: float | None = None
    max_value: float | None = None

    def joined(self, later: "Summary") -> "Summary":
        """The summary of these values and later ones."""
        if self.mean_value is None or self.min_value is None or self.max_value is None:
            return later
        if later.mean_value is None or later.min_value is None or later.max_value is None:
            return self
        n = self.n_finite + later.n_finite
        return Summary(
            n,
            # Neither a sum of many nor a difference of large values, which could overflow.
            self.mean_value * (self.n_finite / n) + later.mean_value * (later.n_finite / n),
            min(self.min_value, later.min_value),
            max(self.max_value, later.max_value),
        )

    def columns(self) -> dict[str, Any]:
        """As columns of a series' row."""
        return asdict(self)


def summarise(values: Array) -> Summary:
    """The summary of values of a series."""
    finite = values[np.isfinite(values)]
    n = len(finite)
    if n == 0:
        return Summary()
    mean = float((finite / n).sum()) if n > 1 else float(finite[0])
    return Summary(n, mean, float(finite.min()), float(finite.max()))
