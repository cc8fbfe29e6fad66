"""Annealing as Mnih et al. 2016, section 5.1, have it."""

import pytest

from workers.engine.schedules import annealed, linear


@pytest.mark.parametrize(("progress", "expected"), [(0.0, 7e-4), (0.25, 5.25e-4), (1.0, 0.0), (1.5, 0.0)])
def test_falls_in_a_straight_line_and_stays_at_zero(progress: float, expected: float) -> None:
    assert linear(7e-4, progress) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("done", "expected"), [(0, 1.0), (1_000_000, 0.775), (4_000_000, 0.1), (9e6, 0.1)])
def test_goes_to_its_end_in_a_straight_line_and_stays_there(done: float, expected: float) -> None:
    assert annealed(1.0, 0.1, done, 4_000_000) == pytest.approx(expected)


def test_without_a_time_to_anneal_over_the_end_is_there_at_once() -> None:
    assert annealed(1.0, 0.1, 0, 0) == 0.1
