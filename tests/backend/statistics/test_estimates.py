"""Estimates equal those of `rliable`, the package of the paper's authors; intervals follow the binomial."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rliable import metrics as rliable
from scipy import stats

from backend.statistics.estimates import (
    MIN_SEEDS,
    Scores,
    interquartile_mean,
    interval_rank,
    median,
    medians,
    probability_of_improvement,
)
from backend.statistics.grouping import Spread, summary

scores = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=12).map(np.array)


@given(scores)
def test_point_estimates_match_rliable(values: Scores) -> None:
    runs = values[:, None]  # one task
    assert interquartile_mean(values) == pytest.approx(rliable.aggregate_iqm(runs))
    assert summary(runs, Spread("mean", "ci95"))["mean"][0] == pytest.approx(rliable.aggregate_mean(runs))
    # The median over tasks of rliable, here over runs.
    assert median(values).value == pytest.approx(rliable.aggregate_median(runs.T))


@given(scores, scores)
def test_probability_of_improvement_matches_rliable_and_its_definition(a: Scores, b: Scores) -> None:
    estimate = probability_of_improvement(a, b)
    assert estimate == pytest.approx(rliable.probability_of_improvement(a[:, None], b[:, None]))
    wins = sum(1.0 if x > y else 0.5 if x == y else 0.0 for x, y in product(a, b))
    assert estimate == pytest.approx(wins / (len(a) * len(b)))
    assert estimate + probability_of_improvement(b, a) == pytest.approx(1.0)


@pytest.mark.parametrize("n", range(1, 101))
def test_median_interval_is_the_narrowest_with_95_percent_coverage(n: int) -> None:
    def coverage(rank: int) -> float:
        return 1 - 2 * float(stats.binom.cdf(rank - 1, n, 0.5))

    rank = interval_rank(n)
    assert (rank == 0) == (n < MIN_SEEDS)
    if n < MIN_SEEDS:
        assert coverage(1) < 0.9
    elif n == MIN_SEEDS:
        assert (rank, coverage(1)) == (1, 0.9375)
    else:
        assert coverage(rank) >= 0.95 > coverage(rank + 1)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30).map(np.array))
def test_median_and_interval_are_order_statistics(values: Scores) -> None:
    estimate, ordered = median(values), np.sort(values)
    assert estimate.value == pytest.approx(np.median(values / 2) * 2)
    if len(values) < MIN_SEEDS:
        assert (estimate.low, estimate.high) == (None, None)
    else:
        rank = interval_rank(len(values))
        assert (estimate.low, estimate.high) == (ordered[rank - 1], ordered[-rank])


def test_median_with_unreached_thresholds_is_infinite() -> None:
    estimate = median(np.array([1.0, 2.0, 3.0, np.inf, np.inf]))
    assert (estimate.value, estimate.low, estimate.high) == (3.0, 1.0, np.inf)
    assert median(np.array([np.inf, np.inf, 1.0])).value == np.inf
    assert median(np.array([1.0, np.inf])).value == np.inf


def test_medians_of_columns_ignore_missing_values() -> None:
    rng = np.random.default_rng(0)
    values = np.where(rng.random((9, 200)) < 0.4, np.nan, rng.normal(size=(9, 200)))
    values[:, 0] = np.nan
    for column, *estimate in zip(values.T, *medians(values), strict=True):
        present = column[~np.isnan(column)]
        if not len(present):
            assert np.isnan(estimate).all()
            continue
        alone = median(present)
        wanted = [alone.value, alone.low or np.nan, alone.high or np.nan]
        np.testing.assert_array_equal(estimate, wanted)


def test_median_of_thousands_of_scores_has_an_interval() -> None:
    estimate = median(np.arange(5_000.0))
    assert estimate.low is not None
    assert estimate.high is not None
    rank = int(estimate.low) + 1
    assert 2 * stats.binom.cdf(rank - 1, 5_000, 0.5) <= 0.05 < 2 * stats.binom.cdf(rank, 5_000, 0.5)
    assert estimate.high == 4_999 - estimate.low


def test_medians_of_no_points_are_empty() -> None:
    assert [column.shape for column in medians(np.empty((2, 0)))] == [(0,)] * 3
