import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.analysis.metrics.smoothing import (
    average_over_x,
    average_row_windows,
    average_windows,
    ema_rows,
    smooth_bucket_ends,
    smooth_rows,
)

weights = st.sampled_from([0.01, 0.5, 0.6, 0.9, 0.97, 0.99, 0.9999])
series = st.lists(
    st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf])), max_size=400
).map(lambda xs: np.array(xs, "f8"))


def slow(values: np.ndarray, weight: float) -> list[float]:
    """The recursion, computed row by row: numerator and bias correction."""
    out, total, mass = [], 0.0, 0.0
    for x in values:
        total, mass = weight * total, weight * mass
        if math.isfinite(x):
            total, mass = total + x, mass + 1.0
        out.append(total / mass if mass > 1e-6 and math.isfinite(x) else math.nan)
    return out


@given(series, weights)
def test_smoothed_is_nan_exactly_where_the_value_is_not_finite(values: np.ndarray, weight: float) -> None:
    np.testing.assert_array_equal(np.isfinite(smooth_rows(values, weight)), np.isfinite(values))


@given(series, weights)
def test_smoothed_matches_recursion(values: np.ndarray, weight: float) -> None:
    wanted = np.array(slow(values, weight))
    known = ~np.isnan(wanted)  # long after the last finite value the weights themselves are rounding
    np.testing.assert_allclose(smooth_rows(values, weight)[known], wanted[known], rtol=1e-6, atol=1e-2)


@given(series, weights, st.integers(0, 400))
def test_smoothed_prefix_is_independent_of_later_values(
    values: np.ndarray, weight: float, n_before: int
) -> None:
    assert (
        smooth_rows(values[:n_before], weight).tobytes() == smooth_rows(values, weight)[:n_before].tobytes()
    )


@given(series, weights, st.integers(0, 400))
def test_smoothed_depends_only_on_its_window(values: np.ndarray, weight: float, first: int) -> None:
    begin = max(0, first - ema_rows(weight) + 1)
    part = smooth_rows(values[begin:], weight)[first - begin :]
    assert part.tobytes() == smooth_rows(values, weight)[first:].tobytes()


def test_smoothed_constant_is_unbiased() -> None:
    assert smooth_rows(np.full(50, 7.0), 0.99) == pytest.approx(np.full(50, 7.0))


def test_weight_outside_window_is_negligible() -> None:
    for weight in (5e-324, 1e-18, 0.01, 0.6, 0.99, 0.9999):
        assert weight ** ema_rows(weight) <= 1e-9


def test_smoothed_line_ends_where_values_become_nan_and_starts_again_after_them() -> None:
    """A training that diverged for 300 updates: once, 256 rows after, a single old value was left of it."""
    values = np.concatenate([np.linspace(0.0, 0.08, 500), np.full(300, math.nan), np.full(50, 0.05)])
    out = smooth_rows(values, 0.9)
    assert np.isnan(out[500:800]).all()
    assert out[499] == pytest.approx(0.08, abs=0.01)
    assert out[800:] == pytest.approx(np.full(50, 0.05), abs=1e-6)


@given(series, weights, st.sampled_from([1, 2, 4, 64, 256]), st.integers(0, 400))
def test_smoothed_at_ends_equals_smoothed_at_bucket_ends(
    values: np.ndarray, weight: float, size: int, first: int
) -> None:
    first = min(first, len(values))
    whole = smooth_rows(values, weight)
    ends = [min(start + size, len(values)) - 1 for start in range(first, len(values), size)]
    at_ends = smooth_bucket_ends(values, weight, first, size)
    known = np.isfinite(values[ends] if ends else np.empty(0))
    np.testing.assert_array_equal(at_ends[known], whole[ends][known] if ends else np.empty(0))


rows_over_x = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.one_of(
            st.floats(-100, 100), st.floats(-100, 100), st.sampled_from([math.nan, math.inf, -math.inf])
        ),
    ),
    max_size=70,
)


def columns_over_x(rows: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([value for _, value in rows], "f8"), np.cumsum([step for step, _ in rows]).astype("i8")


@given(rows_over_x, st.floats(0.5, 500), st.integers(0, 70), st.sampled_from([1, 2, 16]))
def test_average_over_x_matches_definition(
    rows: list[tuple[int, float]], scale: float, first: int, size: int
) -> None:
    values, x = columns_over_x(rows)
    first = min(first, max(0, len(rows) - 1))
    wanted = []
    for start in range(first, len(rows), size):
        last = min(start + size, len(rows)) - 1
        weight = np.exp(-(x[last] - x[: last + 1]).astype("f8") / scale)
        known = np.isfinite(values[: last + 1]) & (weight > 0)
        total = weight[known].sum()
        wanted.append((weight * values[: last + 1])[known].sum() / total if total > 1e-200 else math.nan)
    got = average_over_x(values, x, scale, first, size)
    assert len(got) == len(wanted)
    comparable = np.isfinite(wanted)
    np.testing.assert_allclose(got[comparable], np.array(wanted)[comparable], rtol=1e-6, atol=1e-6)


def slow_window(values: np.ndarray, x: np.ndarray, scale: float, last: int) -> tuple[float, ...]:
    """Place, mean, standard deviation, extremes and number of finite rows of the window that ends there."""
    inside = [j for j in range(last + 1) if x[j] > x[last] - scale and math.isfinite(values[j])]
    if not inside:
        return float(x[last]), math.nan, math.nan, math.inf, -math.inf, 0
    deviation = values[inside].std(ddof=1) if len(inside) > 1 else math.nan
    ends = values[inside].min(), values[inside].max()
    return (x[inside[0]] + x[inside[-1]]) / 2, values[inside].mean(), deviation, *ends, len(inside)


@given(rows_over_x, st.floats(0.5, 500), st.integers(0, 70), st.sampled_from([1, 2, 16]))
@example([(1, 0.5 * row) for row in range(40)], 4.0, 5, 16)
def test_window_mean_matches_definition(
    rows: list[tuple[int, float]], scale: float, first: int, size: int
) -> None:
    values, x = columns_over_x(rows)
    first = min(first, max(0, len(rows) - 1))
    ends = [min(start + size, len(rows)) - 1 for start in range(first, len(rows), size)]
    wanted = np.array([slow_window(values, x, scale, last) for last in ends]).reshape(len(ends), 6)
    got = average_windows(values, x, scale, first, size)
    np.testing.assert_allclose(got.x, wanted[:, 0])
    np.testing.assert_allclose(got.mean, wanted[:, 1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got.deviation, wanted[:, 2], rtol=1e-6, atol=1e-5)
    np.testing.assert_array_equal(got.low, wanted[:, 3])
    np.testing.assert_array_equal(got.high, wanted[:, 4])
    np.testing.assert_array_equal(got.n, wanted[:, 5])


def test_band_of_a_window_stays_within_its_values() -> None:
    """Returns of Catch are −1 and +1."""
    returns = np.where(np.arange(40) % 8 == 0, -1.0, 1.0)
    below, above = average_windows(returns, np.arange(40), 16.0).band
    assert (np.nanmin(below), np.nanmax(above)) == (-1.0, 1.0)
    assert np.nanmax(below) > -1.0


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(("base", "spread"), [(0.0, 1.0), (1e6, 0.01), (-1e9, 1.0), (3_300_000_000.1, 0.0)])
def test_deviation_of_a_window_is_right_where_a_large_value_is_shared(
    base: float, spread: float, size: int
) -> None:
    values = base + spread * np.random.default_rng(0).standard_normal(400)
    values[7] = math.nan
    x = np.arange(400, dtype="i8")
    wanted = [slow_window(values, x, 50.0, last)[2] for last in range(size - 1, 400, size)]
    got = average_windows(values, x, 50.0, 0, size, value_origin=float(np.nanmean(values)))
    np.testing.assert_allclose(got.deviation, wanted, rtol=1e-4, atol=1e-5)


@given(rows_over_x, st.floats(0.5, 500))
def test_window_of_each_row_equals_that_of_buckets_of_one_row(
    rows: list[tuple[int, float]], scale: float
) -> None:
    values, x = columns_over_x(rows)
    buckets = average_windows(values, x, scale)
    at, drawn = average_row_windows(values, x, scale)
    np.testing.assert_array_equal(at, buckets.x)
    np.testing.assert_allclose(drawn, buckets.drawn, rtol=1e-9, atol=1e-9)


@given(rows_over_x, st.floats(0.5, 500), st.sampled_from([1, 2, 16]))
def test_line_of_window_means_never_enters_or_crosses_what_is_not_finite(
    rows: list[tuple[int, float]], scale: float, size: int
) -> None:
    values, x = columns_over_x(rows)
    got = average_windows(values, x, scale, 0, size)
    ends = x[[min(start + size, len(rows)) - 1 for start in range(0, len(rows), size)]] if rows else x
    buckets = [values[start : start + size] for start in range(0, len(rows), size)]
    passes = [bool(np.isfinite(bucket).any()) and not np.isinf(bucket).any() for bucket in buckets]
    drawn = np.isfinite(got.drawn)
    places = np.searchsorted(ends, got.x[drawn])
    assert all(passes[place] for place in places)
    assert (np.diff(got.x) >= 0).all()
    for before, after in zip(np.flatnonzero(drawn)[:-1], np.flatnonzero(drawn)[1:], strict=True):
        if after == before + 1:  # joined by a stroke
            start, other = np.searchsorted(ends, got.x[[before, after]])
            assert all(passes[start : other + 1])


@given(rows_over_x, st.floats(0.5, 500), st.integers(0, 70))
def test_window_means_never_change(rows: list[tuple[int, float]], scale: float, n_before: int) -> None:
    values, x = columns_over_x(rows)
    before, whole = (average_windows(values[:n], x[:n], scale) for n in (n_before, len(rows)))
    for array, other in (
        (before.x, whole.x),
        (before.drawn, whole.drawn),
        (before.deviation, whole.deviation),
    ):
        assert array.tobytes() == other[: len(array)].tobytes()
    for array, other in zip(
        average_row_windows(values[:n_before], x[:n_before], scale),
        average_row_windows(values, x, scale),
        strict=True,
    ):
        assert array.tobytes() == other[: len(array)].tobytes()


@given(rows_over_x, st.floats(0.5, 100), st.integers(0, 70), st.sampled_from([1, 2, 16]))
def test_window_means_need_no_earlier_rows(
    rows: list[tuple[int, float]], scale: float, first: int, size: int
) -> None:
    values, x = columns_over_x(rows)
    first = min(first // size * size, max(0, len(rows) - 1) // size * size)
    whole = average_windows(values, x, scale, first, size)
    # The window of the bucket before starts in this row; buckets are whole.
    last = min(max(0, first - size) + size, len(rows)) - 1
    start = next((j for j in range(len(rows)) if x[j] > x[last] - scale), 0) // size * size
    part = average_windows(values[start:], x[start:], scale, first - start, size)
    for name in ("x", "mean", "deviation", "low", "high", "n", "drawn"):
        assert getattr(part, name).tobytes() == getattr(whole, name).tobytes(), name


@pytest.mark.parametrize("size", [1, 4, 64])
def test_collapse_is_drawn_where_it_happened(size: int) -> None:
    """A step from 500 to 20 at 2,000,000 agent steps, in a window of 100,000: half of it is drawn at the
    step, all of it within half a window on either side. The moving average over points is late."""
    step, scale = 2_000_000, 100_000.0
    x = np.arange(0, 4_000_000, 500)
    values = np.where(x < step, 500.0, 20.0)
    window = average_windows(values, x, scale, 0, size)

    def drawn_at(level: float) -> float:
        return float(window.x[np.argmax(window.drawn < level)])

    assert abs(drawn_at(260.0) - step) <= 500 * size
    assert drawn_at(500.0) >= step - scale / 2
    assert drawn_at(20.001) <= step + scale / 2 + 500 * size
    late = average_over_x(values, x, scale)
    assert x[np.argmax(late < 260.0)] > step + 0.6 * scale


def test_small_values_after_large_ones_keep_their_digits() -> None:
    values = np.concatenate([np.full(5000, 1e12), np.full(5000, 1e-3)])
    got = average_windows(values, np.arange(10_000), 100.0, 0, 16)
    assert got.mean[-1] == pytest.approx(1e-3, rel=1e-12)


def test_window_over_agent_steps_smooths_200_000_points() -> None:
    values = np.random.default_rng(0).normal(size=200_000)
    got = average_windows(values, np.arange(200_000) * 50, 500_000.0, 0, 256)
    assert np.abs(got.mean[100:]).max() < 0.05
