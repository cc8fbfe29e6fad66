import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backend.metrics.chunks import CHUNK_ROWS, X_COLUMNS, Columns, n_rows, taken
from backend.metrics.rollups import AGGREGATES, BASE_ROWS, bucket_rows, bucketed, folded, pack, unpack
from tests.backend.metrics.strategies import columns, points, values

powers = st.integers(0, 8).map(lambda k: 1 << k)


def slow_buckets(rows: Columns, size: int, x: str) -> list[dict[str, float]]:
    """The definition, a row at a time."""
    buckets = []
    for first in range(0, len(rows["value"]), size):
        inside = [float(v) for v in rows["value"][first : first + size]]
        known = [v for v in inside if not math.isnan(v)]
        finite = all(math.isfinite(v) for v in known)
        mean = math.fsum(known) / len(known) if known and finite else sum(known) if known else math.nan
        buckets.append(
            {
                x: float(rows[x][first : first + size][-1]),
                "count": len(known),
                "mean": mean,
                "min": min(known, default=math.nan),
                "max": max(known, default=math.nan),
                "last": known[-1] if known else math.nan,
            }
        )
    return buckets


@given(columns(max_rows=300), powers, st.sampled_from(X_COLUMNS))
def test_buckets_are_what_the_definition_says(rows: Columns, size: int, x: str) -> None:
    assume(np.all(~np.isfinite(rows["value"]) | (np.abs(rows["value"]) < 1e300)))
    fast = bucketed(rows, size, (x,))
    slow = slow_buckets(rows, size, x)
    assert n_rows(fast) == len(slow)
    for name in (x, "count", "min", "max", "last"):
        assert np.array_equal(fast[name].astype("f8"), [b[name] for b in slow], equal_nan=True), name
    scale = np.nanmax(np.abs(rows["value"][np.isfinite(rows["value"])]), initial=1.0)
    np.testing.assert_allclose(fast["mean"], [b["mean"] for b in slow], rtol=1e-12, atol=1e-12 * scale)


@given(columns(max_rows=300), powers, st.integers(0, 299))
def test_a_bucket_that_is_full_never_changes(rows: Columns, size: int, n_before: int) -> None:
    before = bucketed(taken(rows, slice(0, n_before)), size, X_COLUMNS)
    after = bucketed(rows, size, X_COLUMNS)
    full = min(n_before, len(rows["value"])) // size
    for name in before:
        assert before[name][:full].tobytes() == after[name][:full].tobytes(), name


@given(st.lists(values, min_size=1, max_size=CHUNK_ROWS), st.integers(4, 12).map(lambda k: 1 << k))
def test_stored_buckets_fold_to_the_same_bits(value: list[float], size: int) -> None:
    rows = points(CHUNK_ROWS) | {"value": np.resize(np.array(value), CHUNK_ROWS)}
    direct = bucketed(rows, size, ("frames",))
    stored = folded(unpack(pack(rows), "frames"), size // BASE_ROWS)
    assert set(direct) == set(stored) == {"frames", *AGGREGATES}
    for name in direct:
        assert direct[name].tobytes() == stored[name].tobytes(), name


@given(st.integers(0, 10**9), st.integers(1, 5000))
def test_bucket_size_is_the_least_that_fits(n: int, most: int) -> None:
    size = bucket_rows(n, most)
    assert size & (size - 1) == 0
    assert -(-n // size) <= most
    assert size == 1 or -(-n // (size // 2)) > most


def test_a_lone_spike_survives() -> None:
    rows = points(CHUNK_ROWS)
    rows["value"][1234] = 1e6
    assert bucketed(rows, 1024, ())["max"].max() == 1e6


@pytest.mark.parametrize("size", [1, 4, 64])
def test_no_rows_make_no_buckets(size: int) -> None:
    assert n_rows(bucketed(points(0), size, X_COLUMNS)) == 0
