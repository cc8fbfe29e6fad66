"""The modified z-score of a stretch, by hand."""

import numpy as np
import pytest

from backend.statistics.changes import Change, change


def _of(measured: Change | None) -> list[float]:
    assert measured is not None
    assert measured.z is not None
    return [measured.before, measured.inside, measured.z]


def _values(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(values, np.float64)


def test_change_is_the_difference_of_medians_over_the_mad_before() -> None:
    # The median before is 3, and the deviations from it 2, 1, 0, 1, 97: their median is 1.
    measured = change(_values(1, 2, 3, 4, 100), _values(9, 10, 50))
    assert _of(measured) == pytest.approx([3.0, 10.0, 0.6745 * 7])


def test_change_of_values_of_which_most_are_equal_is_over_their_mean_deviation() -> None:
    # The median is 5 and the MAD 0; the mean deviation is (0 + 0 + 0 + 2) / 4.
    measured = change(_values(5, 5, 5, 7), _values(4, 4, 4))
    assert _of(measured) == pytest.approx([5.0, 4.0, -np.sqrt(2 / np.pi) / 0.5])


def test_change_from_a_constant_has_no_score() -> None:
    assert change(_values(2, 2, 2), _values(2.5, 2.5, 2.5)) == Change(2.0, 2.5, None)
    assert change(_values(2, 2, 2), _values(2, 2, 9)) == Change(2.0, 2.0, 0.0)


def test_change_needs_three_finite_values_on_either_side() -> None:
    assert change(_values(1, 2, np.nan), _values(1, 2, 3)) is None
    assert change(_values(1, 2, 3), _values(1, np.inf, 3)) is None
    measured = change(_values(1, 2, 3, np.nan), _values(np.inf, 5, 5, 5))
    assert _of(measured) == pytest.approx([2.0, 5.0, 0.6745 * 3])


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_score_does_not_depend_on_the_unit(scale: float) -> None:
    rng = np.random.default_rng(0)
    before, inside = rng.normal(size=50), rng.normal(3.0, size=40)
    measured, scaled = change(before, inside), change(scale * before + 7 * scale, scale * inside + 7 * scale)
    assert measured is not None
    assert scaled is not None
    assert scaled.z == pytest.approx(measured.z)


def test_score_of_normal_values_is_in_standard_deviations() -> None:
    rng = np.random.default_rng(1)
    measured = change(rng.normal(10.0, 2.0, 20_000), rng.normal(16.0, 2.0, 20_000))
    assert measured is not None
    assert measured.z == pytest.approx(3.0, abs=0.1)
