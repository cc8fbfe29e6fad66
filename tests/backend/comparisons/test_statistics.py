"""Held against `rliable` 1.2.0, the package of the paper's authors, and against the definitions.

Its numbers were taken down once, with 20,000 and 1,500 resamples of `np.random.RandomState(0)`: it brings
sixteen packages and takes seconds for what is compared here.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.comparisons.statistics import iqm, median, probability_of_improvement
from backend.metrics.chunks import Array

patient = settings(deadline=None)
scores = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=12).map(np.array)


# Seeds by worlds.
A = np.random.default_rng(1).normal(1.0, 1.0, (8, 3))
B = np.random.default_rng(2).normal(0.4, 1.0, (8, 3))


def test_iqm_is_that_of_rliable() -> None:
    ours = iqm(list(A.T))
    assert ours.value == pytest.approx(1.14236626, abs=1e-8)
    # Both are drawn: the edges of 5,000 resamples come out within some hundredths.
    assert (ours.low, ours.high) == (pytest.approx(0.88165571, abs=0.03), pytest.approx(1.40165371, abs=0.03))


def test_probability_of_improvement_is_that_of_rliable() -> None:
    ours = probability_of_improvement(list(A.T), list(B.T))
    assert ours.value == pytest.approx(0.74479167, abs=1e-8)
    assert (ours.low, ours.high) == (pytest.approx(0.60416667, abs=0.02), pytest.approx(0.88020833, abs=0.02))


def test_strata_keep_worlds_apart() -> None:
    # Two worlds, each without any spread: mixed, the resamples would differ.
    worlds = [np.full(4, 10.0), np.full(4, 90.0)]
    assert (iqm(worlds).low, iqm(worlds).high) == (50.0, 50.0)


@patient
@given(scores)
def test_iqm_by_its_definition(values: Array) -> None:
    cut = len(values) // 4
    middle = sorted(values)[cut : len(values) - cut]
    found = iqm([values])
    assert found.value == pytest.approx(sum(middle) / len(middle))
    if len(values) == 1:
        assert (found.low, found.high) == (None, None)
    else:
        assert min(values) <= found.low <= found.high <= max(values)


@patient
@given(scores, scores)
def test_probability_by_its_definition(a: Array, b: Array) -> None:
    wins = sum(1.0 if x > y else 0.5 if x == y else 0.0 for x, y in product(a, b))
    found = probability_of_improvement([a], [b])
    assert found.value == pytest.approx(wins / (len(a) * len(b)))
    other = probability_of_improvement([b], [a])
    assert found.value + other.value == pytest.approx(1.0)
    assert (found.low is None) == (len(a) == 1 or len(b) == 1)


def test_the_interval_covers_what_it_should() -> None:
    """Of 200 pairs of equals, about 95 % of the intervals hold one half (ten seeds: some less)."""
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(200):
        found = probability_of_improvement([rng.normal(size=10)], [rng.normal(size=10)])
        held += found.low <= 0.5 <= found.high
    assert 170 <= held <= 199


def test_never_reached_is_infinite() -> None:
    found = median(np.array([1.0, 2.0, np.inf]))
    assert found.value == 2.0
    assert found.low == 1.0
    assert found.high == np.inf
    assert median(np.array([np.inf, np.inf, 1.0])).value == np.inf


def test_the_same_scores_give_the_same_interval() -> None:
    assert iqm(list(A.T)) == iqm(list(A.T))
