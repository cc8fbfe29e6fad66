import numpy as np
import pytest
from scipy import stats

from backend.statistics.estimates import Scores
from backend.statistics.permutation import permutation_p_value
from backend.statistics.racing import level, worse
from tests.campaigns.racing_errors.simulation import DISTRIBUTIONS, N_RACES, race

FIRST, *OTHERS = DISTRIBUTIONS
ONE_IN_THE_GATE = [FIRST, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]
MAX_SEEDS = 8
MAX_FALSE = 0.07
"""5 % and three standard errors of 1,000 races."""


def eliminated_in(scores: Scores) -> dict[int, int]:
    return race(scores)[0]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(
    "n_configurations", [pytest.param(2, marks=pytest.mark.long), 5, pytest.param(12, marks=pytest.mark.long)]
)
def test_equal_configurations_are_rarely_declared_worse(distribution: str, n_configurations: int) -> None:
    rng = np.random.default_rng(7)
    draw = DISTRIBUTIONS[distribution]
    false = sum(bool(eliminated_in(draw(rng, (n_configurations, MAX_SEEDS)))) for _ in range(N_RACES))
    assert false <= MAX_FALSE * N_RACES


@pytest.mark.parametrize("distribution", ONE_IN_THE_GATE)
def test_configuration_better_by_one_standard_deviation_is_rarely_eliminated(distribution: str) -> None:
    rng = np.random.default_rng(8)
    false = 0
    for _ in range(N_RACES):
        scores = DISTRIBUTIONS[distribution](rng, (6, MAX_SEEDS))
        scores[0] += 1.0
        false += 0 in eliminated_in(scores)
    assert false <= MAX_FALSE * N_RACES


@pytest.mark.parametrize("distribution", ONE_IN_THE_GATE)
def test_equal_best_configurations_survive_among_many_that_fail(distribution: str) -> None:
    rng = np.random.default_rng(9)
    false, seeds = 0, 0
    for _ in range(N_RACES):
        equal = DISTRIBUTIONS[distribution](rng, (4, MAX_SEEDS))
        scores = np.concatenate([equal, rng.normal(-9.0, 0.1, (4, MAX_SEEDS))])
        eliminated, n_seeds = race(scores)
        false += any(number < 4 for number in eliminated)
        seeds += n_seeds
    assert false <= MAX_FALSE * N_RACES
    assert seeds / N_RACES < 0.8 * scores.size, "the failing ones lose within a few looks"


def test_configuration_is_worse_if_both_steps_find_it() -> None:
    rng = np.random.default_rng(10)
    n_worse = 0
    for _ in range(100):
        m, n = int(rng.integers(2, 6)), int(rng.integers(3, 9))
        scores = list(rng.normal(rng.normal(0, 2.0, (m, 1)), 1.0, (m, n)).round(1))
        alpha = level(2)
        ranks = np.split(stats.rankdata(np.concatenate(scores)), m)
        differ = permutation_p_value(*scores) if m == 2 else stats.f_oneway(*ranks).pvalue
        expected = []
        if differ < alpha:
            within = np.mean([own.var(ddof=1) for own in scores])
            for number, own in enumerate(scores):
                p_values = [_welch(own, other, within) for other in scores if other is not own]
                if min(p_values) < alpha / (m * (m - 1)):
                    expected.append(number)
        assert worse(scores, 2) == expected
        n_worse += len(expected)
    assert n_worse > 15


def _welch(below: Scores, above: Scores, least_variance: float) -> float:
    """One-sided, from the definition."""
    a, b = (max(own.var(ddof=1), least_variance) / len(own) for own in (below, above))
    degrees = (a + b) ** 2 / (a**2 / (len(below) - 1) + b**2 / (len(above) - 1))
    return float(stats.t.sf((above.mean() - below.mean()) / np.sqrt(a + b), degrees))


def test_rival_with_few_scores_hides_no_decisive_one() -> None:
    """It has the largest T, but so few degrees of freedom that it decides nothing."""

    def spread(n: int, mean: float) -> Scores:
        even = np.linspace(-1.0, 1.0, n)
        return np.asarray(even / even.std(ddof=1) + mean)

    bad, few, decisive = spread(8, 0.0), spread(3, 4.6), spread(8, 3.2)
    assert worse([bad, decisive], 6) == [0]
    assert worse([bad, few, decisive], 6) == [0]


def test_levels_of_all_looks_add_up_to_the_probability_of_error() -> None:
    levels = [level(look, 0.9) for look in range(1, 100_000)]
    assert sum(levels) == pytest.approx(0.1, rel=1e-4)
    assert levels[0] > levels[1] > levels[2]


def test_scores_without_variance_can_be_compared() -> None:
    assert worse([np.full(5, 500.0), np.full(5, 9.0)], 1) == [1]
    assert worse([np.full(5, 500.0), np.full(5, 500.0)], 1) == []


def test_configurations_with_few_seeds_are_left_out() -> None:
    good, bad = np.array([9.0, 9.1, 9.2, 9.3, 9.4]), np.array([1.0, 1.1, 1.2, 1.3, 1.4])
    assert worse([bad[:2], good, bad, np.zeros(0)], 1) == [2]
    assert worse([bad[:2], good], 1) == []
    assert worse([], 1) == []
