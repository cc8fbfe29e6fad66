from itertools import groupby
from math import fsum

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backend.analysis.metrics.chunks import CHUNK_ROWS, X_COLUMNS, n_rows, select_rows
from backend.analysis.metrics.rollups import AGGREGATES, BASE_ROWS, aggregate, merge_buckets, pack, unpack
from backend.statistics.columns import Columns, bucket_rows, merge_at_equal_x
from tests.backend.analysis.metrics.oracle import slow_buckets
from tests.backend.analysis.metrics.strategies import columns, points, values

powers = st.integers(0, 8).map(lambda k: 1 << k)


@given(columns(max_rows=300), powers, st.sampled_from(X_COLUMNS))
def test_bucketed_matches_definition(rows: Columns, size: int, x: str) -> None:
    assume(np.all(~np.isfinite(rows["value"]) | (np.abs(rows["value"]) < 1e300)))
    fast = aggregate(rows, size, (x,))
    slow = slow_buckets(rows, size, x)
    assert n_rows(fast) == len(slow)
    for name in (x, "count", "min", "max", "last"):
        assert np.array_equal(fast[name].astype("f8"), [b[name] for b in slow], equal_nan=True), name
    scale = np.nanmax(np.abs(rows["value"][np.isfinite(rows["value"])]), initial=1.0)
    np.testing.assert_allclose(fast["mean"], [b["mean"] for b in slow], rtol=1e-12, atol=1e-12 * scale)


@given(columns(max_rows=300), powers, st.integers(0, 299))
def test_full_bucket_never_changes(rows: Columns, size: int, n_before: int) -> None:
    before = aggregate(select_rows(rows, slice(0, n_before)), size, X_COLUMNS)
    after = aggregate(rows, size, X_COLUMNS)
    full = min(n_before, len(rows["value"])) // size
    for name in before:
        assert before[name][:full].tobytes() == after[name][:full].tobytes(), name


@given(st.lists(values, min_size=1, max_size=CHUNK_ROWS), st.integers(4, 12).map(lambda k: 1 << k))
def test_folded_stored_buckets_equal_direct_buckets(value: list[float], size: int) -> None:
    rows = points(CHUNK_ROWS) | {"value": np.resize(np.array(value), CHUNK_ROWS)}
    direct = aggregate(rows, size, ("frames",))
    stored = merge_buckets(unpack(pack(rows), "frames"), size // BASE_ROWS)
    assert set(direct) == set(stored) == {"frames", *AGGREGATES}
    for name in direct:
        assert direct[name].tobytes() == stored[name].tobytes(), name


@given(st.integers(0, 10**9), st.integers(1, 5000))
def test_bucket_rows_is_least_power_of_two_that_fits(n: int, most: int) -> None:
    size = bucket_rows(n, most)
    assert size & (size - 1) == 0
    assert -(-n // size) <= most
    assert size == 1 or -(-n // (size // 2)) > most


def test_single_spike_survives_bucketing() -> None:
    rows = points(CHUNK_ROWS)
    rows["value"][1234] = 1e6
    assert aggregate(rows, 1024, ())["max"].max() == 1e6


@pytest.mark.parametrize("size", [1, 4, 64])
def test_bucketed_of_no_rows_is_empty(size: int) -> None:
    assert n_rows(aggregate(points(0), size, X_COLUMNS)) == 0


def test_episodes_that_end_at_the_same_agent_step_are_averaged() -> None:
    nan = np.nan
    merged = merge_at_equal_x(
        {
            "x": np.array([10, 10, 20, 20, 20]),
            "count": np.array([1, 3, 1, 0, 1]),
            "mean": np.array([0, 4, 6, nan, 8]),
            "min": np.array([0, 1, 6, nan, 8]),
            "max": np.array([0, 7, 6, nan, 8]),
            "smoothed": np.array([0, 2, 3, 3.5, 4]),
        },
        "x",
    )
    assert {name: column.tolist() for name, column in merged.items()} == {
        "x": [10, 20],
        "count": [4, 2],
        "mean": [3, 7],
        "min": [0, 6],
        "max": [7, 8],
        "smoothed": [2, 4],
    }


@given(columns(max_rows=100), st.lists(st.integers(0, 3), min_size=25, max_size=25))
def test_merged_at_equal_x_matches_definition(rows: Columns, steps: list[int]) -> None:
    rows["value"] = np.where(np.abs(rows["value"]) < 1e300, rows["value"], np.nan)
    buckets = aggregate(rows, 4, ())
    buckets["x"] = np.array(steps[: len(buckets["mean"])])
    merged = merge_at_equal_x(buckets, "x")
    by_x = groupby(range(len(buckets["x"])), lambda at: steps[at])
    stretches = [list(stretch) for _, stretch in by_x]
    assert len(merged["x"]) == len(stretches)
    for at, stretch in enumerate(stretches):
        assert merged["x"][at] == steps[stretch[0]]
        assert np.array_equal(merged["last"][at], buckets["last"][stretch[-1]], equal_nan=True)
        values = [v for v in rows["value"][4 * stretch[0] : 4 * stretch[-1] + 4].tolist() if not np.isnan(v)]
        assert merged["count"][at] == len(values)
        wanted = (fsum(values) / len(values), min(values), max(values)) if values else (np.nan,) * 3
        statistics = tuple(merged[name][at] for name in ("mean", "min", "max"))
        np.testing.assert_allclose(
            statistics, wanted, rtol=1e-9, atol=1e-9 * max(map(abs, values), default=0)
        )


def test_values_that_are_not_finite_are_not_merged_and_stay_where_they_are_alone() -> None:
    value = np.array([np.inf, 1.0, np.inf])
    buckets = dict.fromkeys(("mean", "min", "max", "last"), value) | {"count": np.ones(3, "<i8")}
    merged = merge_at_equal_x(buckets | {"x": np.array([1, 1, 2])}, "x")
    assert [merged[name].tolist() for name in ("mean", "min", "max")] == [[1.0, np.inf]] * 3
