import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.statistics.importance import MAX_VALUES, Importance, TooFewRuns, importance

Run = tuple[float, float, int]
"""Value of a, value of b, seed."""


def grid(n_a: int, n_b: int, n_seeds: int) -> list[Run]:
    return [*itertools.product(range(n_a), range(n_b), range(n_seeds))]


def shares(runs: Sequence[Run], scores: Sequence[float]) -> Importance:
    return importance(
        np.array(scores, "f8"),
        [(a, b) for a, b, _ in runs],
        {"a": [a for a, _, _ in runs], "b": [b for _, b, _ in runs], "c": ["same" for _ in runs]},
    )


def slow_shares(runs: Sequence[Run], scores: Sequence[float]) -> tuple[float, float, float, float]:
    """Of a, b, combinations and the seed, from the tables of means of a full grid, by loops."""
    n = len(runs)
    mean = sum(scores) / n
    total = sum((score - mean) ** 2 for score in scores)

    def mean_of(where: dict[int, float]) -> float:
        chosen = [
            s for run, s in zip(runs, scores, strict=True) if all(run[i] == v for i, v in where.items())
        ]
        return sum(chosen) / len(chosen)

    within = sum((s - mean_of({0: r[0], 1: r[1]})) ** 2 for r, s in zip(runs, scores, strict=True))
    of_seed = within / (n - len({run[:2] for run in runs}))
    explained = []
    for at in (0, 1):
        squares = sum((mean_of({at: run[at]}) - mean) ** 2 for run in runs)
        explained.append(max(0.0, squares - (len({run[at] for run in runs}) - 1) * of_seed) / total)
    seed = min(1.0, (n - 1) * of_seed / total)
    if sum(explained) > 1 - seed:
        explained = [share * (1 - seed) / sum(explained) for share in explained]
    return explained[0], explained[1], max(0.0, 1 - seed - sum(explained)), seed


@settings(max_examples=60)
@given(st.integers(2, 4), st.integers(2, 3), st.integers(2, 3), st.integers(0, 2**16))
def test_shares_of_a_full_grid_are_those_of_its_tables_of_means(
    n_a: int, n_b: int, n_seeds: int, random_seed: int
) -> None:
    runs = grid(n_a, n_b, n_seeds)
    rng = np.random.default_rng(random_seed)
    of_a, of_b, of_both = rng.uniform(-3, 3, 3) * rng.integers(0, 2, 3)
    scores = [of_a * a + of_b * b + of_both * a * b + rng.normal() for a, b, _ in runs]
    result = shares(runs, scores)
    expected = slow_shares(runs, scores)
    assert (result.settings["a",], result.settings["b",]) == pytest.approx(expected[:2])
    assert (result.combinations, result.seed) == pytest.approx(expected[2:])
    assert sum(result.settings.values()) + result.combinations + result.seed == pytest.approx(1)
    assert [*result.settings.values()] == sorted(result.settings.values(), reverse=True)


def test_what_has_no_effect_has_no_share() -> None:
    runs = grid(2, 2, 2)
    result = shares(runs, [10.0 * a + seed for a, _, seed in runs])
    # Within each config the variance is 1/2; of all scores it is 202 / 7.
    assert result.seed == pytest.approx(7 * 0.5 / 202)
    assert result.settings == {("a",): pytest.approx(1 - result.seed), ("b",): 0.0}


def test_scores_of_seeds_alone_are_explained_by_the_seed() -> None:
    runs = grid(2, 3, 2)
    result = shares(runs, [float(seed) for _, _, seed in runs])
    assert (result.seed, sum(result.settings.values())) == (1.0, 0.0)


def test_interaction_is_a_combination() -> None:
    runs = grid(2, 2, 2)
    result = shares(runs, [float(a == b) for a, b, _ in runs])
    assert (result.combinations, result.seed) == pytest.approx((1.0, 0.0))


def test_settings_that_change_together_stand_together() -> None:
    values = [0, 0, 0, 1, 1, 1]
    result = importance(np.array([1.0, 2, 3, 11, 12, 13]), values, {"a": values, "b": ["x"] * 3 + ["y"] * 3})
    assert [*result.settings] == [("a", "b")]


def test_many_numbers_are_ranges() -> None:
    values = [float(n) for n in range(MAX_VALUES + 2) for _ in range(2)]
    scores = np.array([value >= 4 for value in values], "f8") + np.tile([0.0, 0.01], len(values) // 2)
    result = importance(scores, values, {"a": values})
    assert result.settings["a",] > 0.99
    assert math.isclose(result.settings["a",] + result.combinations + result.seed, 1)


@pytest.mark.parametrize(
    ("runs", "scores", "why"),
    [
        ([(0, 0, 0), (1, 0, 0), (2, 0, 0)], [1, 2, 3], "needs at least 6"),
        (grid(1, 1, 5), [1, 2, 3, 4, 5], "no setting differs"),
        (grid(2, 1, 4), [2] * 8, "all scores are equal"),
        (
            [(a, b, s) for a, b in ((0, 0), (1, 1), (2, 1)) for s in range(3)],
            [*range(9)],
            "cannot be told apart",
        ),
        ([], [], "no setting differs"),
    ],
)
def test_too_few_runs_are_refused(runs: list[Run], scores: list[float], why: str) -> None:
    with pytest.raises(TooFewRuns, match=why):
        shares(runs, scores)
