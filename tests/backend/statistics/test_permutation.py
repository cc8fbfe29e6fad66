from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from backend.statistics.estimates import Scores, probability_of_improvement
from backend.statistics.permutation import (
    difference,
    holm,
    permutation_p_value,
    seeds_to_decide,
    seeds_to_differ,
)

tied = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=5).map(np.array)
distinct = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=24, unique=True).map(np.array)


def apart(n: int) -> tuple[Scores, Scores]:
    """Two groups of n scores that do not overlap."""
    low = np.linspace(0.0, 1.0, n)
    return low + 9.0, low


def slow_p_value(a: Scores, b: Scores) -> float:
    """Every assignment of the scores to the groups, one by one."""
    both = np.concatenate([a, b])
    observed = abs(probability_of_improvement(a, b) - 0.5)
    as_far = 0
    for chosen in combinations(range(len(both)), len(a)):
        rest = np.delete(both, chosen)
        as_far += abs(probability_of_improvement(both[list(chosen)], rest) - 0.5) > observed - 1e-9
    return as_far / comb(len(both), len(a))


@settings(max_examples=40, deadline=None)
@given(tied, tied)
def test_p_value_equals_enumeration_of_all_assignments(a: Scores, b: Scores) -> None:
    assert permutation_p_value(a, b) == pytest.approx(slow_p_value(a, b))


@given(distinct, st.data())
def test_p_value_equals_scipys_exact_mann_whitney_test(both: Scores, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(both) - 1))
    wanted = stats.mannwhitneyu(both[:n], both[n:], method="exact").pvalue
    assert permutation_p_value(both[:n], both[n:]) == pytest.approx(wanted)


@pytest.mark.parametrize(("n", "p"), [(1, 1.0), (2, 1 / 3), (3, 0.1), (4, 2 / 70), (50, 2 / comb(100, 50))])
def test_lowest_p_value_is_that_of_groups_that_do_not_overlap(n: int, p: float) -> None:
    assert permutation_p_value(*apart(n)) == pytest.approx(p)


def test_p_value_of_equal_scores_is_one() -> None:
    assert permutation_p_value(np.full(5, 3.0), np.full(7, 3.0)) == 1.0


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("ties", [False, True])
def test_share_of_assignments_with_a_verdict_is_at_most_5_percent(n: int, ties: bool) -> None:
    both = np.arange(2.0 * n) // (2 if ties else 1)
    has_verdict = [
        permutation_p_value(both[list(chosen)], np.delete(both, chosen)) < 0.05
        for chosen in combinations(range(2 * n), n)
    ]
    assert np.mean(has_verdict) <= 0.05
    assert any(has_verdict) == (n >= 4)


def test_holm_multiplies_by_the_number_of_hypotheses_left() -> None:
    # 4 * 0.01, 3 * 0.015, 2 * 0.02 raised to the one before, 1 * 0.2.
    assert holm([0.02, 0.2, 0.01, 0.015]) == pytest.approx([0.045, 0.2, 0.04, 0.045])
    assert holm([0.4, 0.6]) == pytest.approx([0.8, 0.8])
    assert holm([0.9, 0.7]) == [1.0, 1.0]
    assert holm([0.33]) == [0.33]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("n", "m", "comparisons", "seeds"),
    [(2, 2, 1, 4), (3, 3, 1, 4), (4, 4, 1, None), (2, 8, 1, None), (2, 7, 1, 4), (5, 5, 10, 6), (4, 4, 3, 5)],
)
def test_seeds_to_differ_is_least_number_whose_lowest_p_value_is_significant(
    n: int, m: int, comparisons: int, seeds: int | None
) -> None:
    assert seeds_to_differ(n, m, comparisons) == seeds
    if seeds:
        lowest = [permutation_p_value(*apart(k)) for k in (seeds, seeds - 1)]
        assert lowest[0] * comparisons < 0.05 <= lowest[1] * comparisons


@given(distinct, st.data())
def test_interval_of_difference_excludes_zero_exactly_when_the_test_finds_one(
    both: Scores, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, len(both) - 1))
    a, b = both[:n], both[n:]
    estimate = difference(a, b)
    assert estimate.value == np.median(np.subtract.outer(a, b))
    differs = permutation_p_value(a, b) < 0.05
    if estimate.low is None or estimate.high is None:
        assert 2 / comb(len(both), n) >= 0.05
        assert not differs
    else:
        assert (estimate.low > 0 or estimate.high < 0) == differs
        assert estimate.low <= estimate.value <= estimate.high


def test_seeds_to_decide_find_the_difference_four_times_in_five() -> None:
    # Normal scores 1.2 standard deviations apart: P(A > B) = 0.80.
    quantiles = stats.norm.ppf((np.arange(40) + 0.5) / 40)
    seeds = seeds_to_decide((quantiles + 1.2)[::8], quantiles[::8], 1)
    assert seeds is not None
    random = np.random.default_rng(0)
    p_values = [
        permutation_p_value(random.normal(1.2, 1.0, seeds), random.normal(0.0, 1.0, seeds))
        for _ in range(400)
    ]
    assert 0.7 < np.mean(np.array(p_values) < 0.05) < 0.95


@pytest.mark.parametrize(
    ("a", "b", "comparisons", "seeds"),
    [
        (apart(2)[0], apart(2)[1], 1, 4),  # as `seeds_to_differ`
        (apart(3)[0], apart(3)[1], 28, 7),
        ([1.0, 3.0], [0.0, 2.0], 1, None),  # too few that overlap
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], 1, None),  # alike
        (np.arange(9.0) + 0.5, np.arange(9.0), 1, None),  # more than can be asked for
    ],
)
def test_seeds_to_decide_are_not_guessed(a: Scores, b: Scores, comparisons: int, seeds: int | None) -> None:
    assert seeds_to_decide(np.array(a), np.array(b), comparisons) == seeds
