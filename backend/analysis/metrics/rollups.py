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

from backend.analysis.metrics.chunks import X_COLUMNS, decode, encode, n_rows
from backend.statistics.columns import NOT_FINITE, Array, Columns, last_rows

BASE_ROWS = 16
"""Rows of a stored bucket. Charts with finer buckets read the points."""

AGGREGATES = ("count", "mean", "min", "max", "last")
"""`count` is the number of values that are not NaN."""

_DTYPES = dict.fromkeys(X_COLUMNS, "<i8") | {"wall_time_s": "<f8", "count": "<i8"}
_DTYPES |= dict.fromkeys(("mean", "min", "max", "last"), "<f8")


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
