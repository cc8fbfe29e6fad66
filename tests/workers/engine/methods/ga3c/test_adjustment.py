"""The walk over N_A, N_P and N_T finds the fast thread counts of a machine that is given."""

import numpy as np
import pytest

from workers.engine.methods.ga3c.adjustment import ThreadCounts, ThreadTuning


def tps(counts: ThreadCounts) -> float:
    """A machine that gains from agents up to 12, from a second predictor, and from no third thread."""
    agents = min(counts.n_actors, 12) - 0.2 * max(0, counts.n_actors - 12)
    threads = 1.0 - 0.2 * abs(counts.n_predictors - 2) - 0.2 * abs(counts.n_trainers - 1)
    return agents * max(threads, 0.1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_adjustment_reaches_a_fast_setting_from_one_of_each(seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    walk = ThreadTuning(ThreadCounts(1, 1, 1), rng, max_actors=32)
    best = tps(ThreadCounts(12, 2, 1))
    reached = []
    for _ in range(400):
        counts = walk.counts
        assert all(1 <= n <= most for n, most in zip(counts, (32, 16, 16), strict=True))
        mean = tps(counts)
        reached.append(mean)
        after = walk.judge((mean * (1 + noise * rng.normal(size=12))).tolist())
        assert sum(abs(a - b) for a, b in zip(counts, after, strict=True)) <= 2
    assert np.median(reached[-50:]) >= 0.9 * best


def test_adjustment_changes_one_number_by_one() -> None:
    walk = ThreadTuning(ThreadCounts(5, 3, 3), np.random.default_rng(0), max_actors=32)
    first = walk.judge([10.0] * 8)
    assert sum(abs(a - b) for a, b in zip(first, (5, 3, 3), strict=True)) == 1
    assert walk.judge([1.0] * 8) == (5, 3, 3), "much slower: taken back"
    assert walk.judge([10.0] * 8) != (5, 3, 3), "measured anew, then the next"


def test_adjustment_keeps_more_if_faster_and_fewer_if_not_slower() -> None:
    level = [10.0, 10.1, 9.9, 10.0] * 3
    for seed in range(20):
        walk = ThreadTuning(ThreadCounts(5, 3, 3), np.random.default_rng(seed), max_actors=32)
        tried = walk.judge(level)
        kept = walk.judge(level)
        if sum(tried) > 11:
            assert kept == (5, 3, 3)
        else:
            assert sum(abs(a - b) for a, b in zip(kept, tried, strict=True)) == 1


def test_adjustment_ignores_the_beginning_of_an_interval() -> None:
    walk = ThreadTuning(ThreadCounts(1, 1, 1), np.random.default_rng(0), max_actors=32)
    tried = walk.judge([10.0] * 8)
    assert sum(tried) == 4
    walk.judge([0.0, 0.0] + [20.0] * 6)
    assert sum(abs(a - b) for a, b in zip(walk.counts, tried, strict=True)) == 1


def test_adjustment_never_exceeds_max_agents() -> None:
    rng = np.random.default_rng(0)
    walk = ThreadTuning(ThreadCounts(1, 1, 1), rng, max_actors=6)
    seen = [
        walk.judge((walk.counts.n_actors * (1 + 0.01 * rng.normal(size=12))).tolist()) for _ in range(300)
    ]
    assert max(counts.n_actors for counts in seen) == 6
