import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.metrics.smoothing import smoothed, smoothed_at_ends, window_rows

weights = st.sampled_from([0.01, 0.5, 0.6, 0.9, 0.97, 0.99, 0.9999])
series = st.lists(
    st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf])), max_size=400
).map(lambda xs: np.array(xs, "f8"))


def slow(values: np.ndarray, weight: float) -> list[float]:
    """The recursion as one writes it: numerator and its bias correction."""
    out, total, mass = [], 0.0, 0.0
    for x in values:
        total, mass = weight * total, weight * mass
        if math.isfinite(x):
            total, mass = total + x, mass + 1.0
        out.append(total / mass if mass > 1e-6 else math.nan)
    return out


@given(series, weights)
def test_equals_the_recursion(values: np.ndarray, weight: float) -> None:
    wanted = np.array(slow(values, weight))
    known = ~np.isnan(wanted)  # long after the last finite value the weights themselves are rounding
    np.testing.assert_allclose(smoothed(values, weight)[known], wanted[known], rtol=1e-6, atol=1e-2)


@given(series, weights, st.integers(0, 400))
def test_never_rewrites_the_past(values: np.ndarray, weight: float, n_before: int) -> None:
    assert smoothed(values[:n_before], weight).tobytes() == smoothed(values, weight)[:n_before].tobytes()


@given(series, weights, st.integers(0, 400))
def test_depends_on_its_window_alone(values: np.ndarray, weight: float, first: int) -> None:
    begin = max(0, first - window_rows(weight) + 1)
    part = smoothed(values[begin:], weight)[first - begin :]
    assert part.tobytes() == smoothed(values, weight)[first:].tobytes()


def test_is_debiased() -> None:
    assert smoothed(np.full(50, 7.0), 0.99) == pytest.approx(np.full(50, 7.0))


def test_what_the_window_leaves_out_is_negligible() -> None:
    for weight in (0.01, 0.6, 0.99, 0.9999):
        assert weight ** window_rows(weight) <= 1e-9


def test_nothing_finite_yet_is_nan() -> None:
    out = smoothed(np.array([math.nan, math.inf, 2.0, math.nan]), 0.5)
    assert np.isnan(out[:2]).all()
    assert out[2:].tolist() == [2.0, 2.0]


@given(series, weights, st.sampled_from([1, 2, 4, 64, 256]), st.integers(0, 400))
def test_at_the_ends_of_buckets_it_is_the_same_to_the_bit(
    values: np.ndarray, weight: float, size: int, first: int
) -> None:
    first = min(first, len(values))
    whole = smoothed(values, weight)
    ends = [min(start + size, len(values)) - 1 for start in range(first, len(values), size)]
    found = smoothed_at_ends(values, weight, first, size)
    np.testing.assert_array_equal(found, whole[ends] if ends else np.empty(0))
