import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.metrics.smoothing import Smoothing, smoothed, smoothed_at_ends, smoothed_over_x, window_rows

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
        out.append(total / mass if mass > 1e-6 else math.nan)
    return out


@given(series, weights)
def test_smoothed_matches_recursion(values: np.ndarray, weight: float) -> None:
    wanted = np.array(slow(values, weight))
    known = ~np.isnan(wanted)  # long after the last finite value the weights themselves are rounding
    np.testing.assert_allclose(smoothed(values, weight)[known], wanted[known], rtol=1e-6, atol=1e-2)


@given(series, weights, st.integers(0, 400))
def test_smoothed_prefix_is_independent_of_later_values(
    values: np.ndarray, weight: float, n_before: int
) -> None:
    assert smoothed(values[:n_before], weight).tobytes() == smoothed(values, weight)[:n_before].tobytes()


@given(series, weights, st.integers(0, 400))
def test_smoothed_depends_only_on_its_window(values: np.ndarray, weight: float, first: int) -> None:
    begin = max(0, first - window_rows(weight) + 1)
    part = smoothed(values[begin:], weight)[first - begin :]
    assert part.tobytes() == smoothed(values, weight)[first:].tobytes()


def test_smoothed_constant_is_unbiased() -> None:
    assert smoothed(np.full(50, 7.0), 0.99) == pytest.approx(np.full(50, 7.0))


def test_weight_outside_window_is_negligible() -> None:
    for weight in (0.01, 0.6, 0.99, 0.9999):
        assert weight ** window_rows(weight) <= 1e-9


def test_smoothed_is_nan_before_first_finite_value() -> None:
    out = smoothed(np.array([math.nan, math.inf, 2.0, math.nan]), 0.5)
    assert np.isnan(out[:2]).all()
    assert out[2:].tolist() == [2.0, 2.0]


@given(series, weights, st.sampled_from([1, 2, 4, 64, 256]), st.integers(0, 400))
def test_smoothed_at_ends_equals_smoothed_at_bucket_ends(
    values: np.ndarray, weight: float, size: int, first: int
) -> None:
    first = min(first, len(values))
    whole = smoothed(values, weight)
    ends = [min(start + size, len(values)) - 1 for start in range(first, len(values), size)]
    found = smoothed_at_ends(values, weight, first, size)
    np.testing.assert_array_equal(found, whole[ends] if ends else np.empty(0))


@given(
    st.lists(st.tuples(st.integers(0, 40), st.one_of(st.floats(-100, 100), st.just(math.nan))), max_size=70),
    st.sampled_from(["ema", "window"]),
    st.floats(0.5, 500),
    st.integers(0, 70),
    st.sampled_from([1, 2, 16]),
)
def test_smoothing_over_x_matches_definition(
    rows: list[tuple[int, float]], kind: Smoothing, scale: float, first: int, size: int
) -> None:
    x = np.cumsum([step for step, _ in rows]).astype("i8")
    values = np.array([value for _, value in rows], "f8")
    first = min(first, max(0, len(rows) - 1))
    wanted = []
    for start in range(first, len(rows), size):
        last = min(start + size, len(rows)) - 1
        age = (x[last] - x[: last + 1]).astype("f8")
        weight = np.exp(-age / scale) if kind == "ema" else (age < scale).astype("f8")
        known = np.isfinite(values[: last + 1]) & (weight > 0)
        total = weight[known].sum()
        wanted.append((weight * values[: last + 1])[known].sum() / total if total > 1e-200 else math.nan)
    got = smoothed_over_x(values, x, kind, scale, first, size)
    assert len(got) == len(wanted)
    comparable = np.isfinite(wanted)
    np.testing.assert_allclose(got[comparable], np.array(wanted)[comparable], rtol=1e-6, atol=1e-6)


def test_window_over_agent_steps_smooths_200_000_points() -> None:
    values = np.random.default_rng(0).normal(size=200_000)
    x = np.arange(200_000) * 50
    got = smoothed_over_x(values, x, "window", 500_000.0, 0, 256)
    assert np.abs(got[100:]).max() < 0.05
