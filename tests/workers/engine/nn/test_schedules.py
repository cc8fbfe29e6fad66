"""Annealing as Mnih et al. 2016, section 5.1, have it."""

import pytest

from workers.engine.nn.schedules import annealed, linear


@pytest.mark.parametrize(("progress", "expected"), [(0.0, 7e-4), (0.25, 5.25e-4), (1.0, 0.0), (1.5, 0.0)])
def test_learning_rate_anneals_linearly_to_zero(progress: float, expected: float) -> None:
    assert linear(7e-4, progress) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("done", "expected"), [(0, 1.0), (1_000_000, 0.775), (4_000_000, 0.1), (9e6, 0.1)])
def test_epsilon_anneals_linearly_to_its_final_value(done: float, expected: float) -> None:
    assert annealed(1.0, 0.1, done, 4_000_000) == pytest.approx(expected)


def test_epsilon_without_annealing_is_final_immediately() -> None:
    assert annealed(1.0, 0.1, 0, 0) == 0.1
