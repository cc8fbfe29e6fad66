import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from backend.statistics.distributions import f_upper_tail, student_upper_tail


@given(st.floats(0, 200), st.floats(1, 200))
def test_upper_tail_of_students_t_equals_scipys(t: float, degrees: float) -> None:
    tail = student_upper_tail(np.array([t]), np.array([degrees]))
    assert tail[0] == pytest.approx(stats.t.sf(t, degrees), rel=1e-6, abs=1e-12)


def test_upper_tail_of_students_t_at_its_ends() -> None:
    tails = student_upper_tail(np.array([[np.inf, 0.0]]), np.array([[3.0, 3.0]]))
    assert tails.tolist() == [[0.0, pytest.approx(0.5)]]


@given(st.floats(0, 1_000), st.integers(1, 1_000), st.integers(1, 9_000))
def test_upper_tail_of_f_equals_scipys(f: float, above: int, below: int) -> None:
    assert f_upper_tail(f, above, below) == pytest.approx(stats.f.sf(f, above, below), rel=1e-4, abs=1e-9)


def test_upper_tail_of_f_at_its_ends() -> None:
    assert f_upper_tail(0.0, 3, 8) == pytest.approx(1.0)
    assert f_upper_tail(np.inf, 3, 8) == 0.0
