"""A small run of `make interval-coverage`: coverage of the intervals shown, and rate of false verdicts."""

import numpy as np
import pytest

from backend.statistics.estimates import MIN_SEEDS
from backend.statistics.grouping import Centre, Spread, draws_seeds
from tests.campaigns.interval_coverage.simulation import (
    BEST,
    POPULATIONS,
    coverages,
    difference_coverage,
    false_verdicts,
    former_false_verdicts,
    t_coverages,
)

SAMPLES = 2_000
NOISE = 3 * (0.9 * 0.1 / SAMPLES) ** 0.5
"""Three standard errors of a share of 90 %."""


@pytest.mark.parametrize("kind", POPULATIONS)
def test_median_interval_covers_at_every_number_of_seeds(kind: str) -> None:
    rng = np.random.default_rng(0)
    for n in range(2, 21):
        covered = coverages(POPULATIONS[kind], n, SAMPLES, 0, rng)[BEST]
        if n < MIN_SEEDS:
            assert np.isnan(covered)
        else:
            assert covered >= 0.9 - NOISE, n


def test_students_interval_of_the_mean_does_not_cover_where_few_runs_fail() -> None:
    rng = np.random.default_rng(0)
    for n in (3, 5):
        assert coverages(POPULATIONS["one in five fails"], n, SAMPLES, 0, rng)["t"] < 0.8


def test_intervals_of_means_cover_wherever_they_are_shown_and_not_with_fewer_seeds() -> None:
    rng, samples = np.random.default_rng(0), 10_000
    lowest: dict[Centre, dict[int, float]] = {"mean": {}, "iqm": {}}
    for n in range(10, 21):
        coverages = [t_coverages(population, n, samples, rng) for population in POPULATIONS.values()]
        lowest["mean"][n] = min(covered["mean"] for covered in coverages)
        lowest["iqm"][n] = min(covered["iqm"] for covered in coverages)
    for centre, by_seeds in lowest.items():
        shown = [n for n in by_seeds if not draws_seeds(n, Spread.chosen(centre, "ci95"))]
        assert min(by_seeds[n] for n in shown) >= 0.9 - 3 * (0.9 * 0.1 / samples) ** 0.5
        assert by_seeds[min(shown) - 1] < 0.9


@pytest.mark.parametrize("kind", POPULATIONS)
def test_difference_interval_covers_a_shift(kind: str) -> None:
    rng = np.random.default_rng(0)
    for n in (4, 5, 10):
        assert difference_coverage(POPULATIONS[kind], n, 1.0, 500, rng) >= 0.95 - 2 * NOISE


@pytest.mark.parametrize("n_groups", [2, 4])
def test_equal_settings_are_found_to_differ_in_at_most_5_percent(n_groups: int) -> None:
    rng = np.random.default_rng(0)
    for n in (2, 3, 5, 8):
        rate = false_verdicts(POPULATIONS["bimodal"], n, n_groups, 500, rng)
        assert rate <= (0.0 if n < 4 else 0.05 + 3 * (0.05 * 0.95 / 500) ** 0.5)


def test_bootstrap_of_the_probability_finds_differences_between_equal_settings() -> None:
    rate = former_false_verdicts(POPULATIONS["normal"], 2, 300, 500, np.random.default_rng(0))
    assert rate == pytest.approx(1 / 3, abs=0.1)
