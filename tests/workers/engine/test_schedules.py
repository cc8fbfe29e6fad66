"""Annealing as Mnih et al. 2016, section 5.1, have it."""

import pytest

from workers.engine.schedules import linear


@pytest.mark.parametrize(("progress", "expected"), [(0.0, 7e-4), (0.25, 5.25e-4), (1.0, 0.0), (1.5, 0.0)])
def test_falls_in_a_straight_line_and_stays_at_zero(progress: float, expected: float) -> None:
    assert linear(7e-4, progress) == pytest.approx(expected, abs=1e-12)
