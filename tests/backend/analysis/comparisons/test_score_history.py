from datetime import UTC, datetime

import numpy as np
import pytest

from backend.analysis.comparisons.score_history import by_evaluation, by_training
from backend.db import Evaluation


def test_training_score_is_mean_of_last_hundred_episodes() -> None:
    rng = np.random.default_rng(0)
    value = rng.normal(size=250)
    value[17] = np.nan
    rows = {"agent_steps": np.arange(250) * 10, "wall_time_s": np.arange(250) / 2, "value": value}
    history = by_training(rows)
    finite = value[~np.isnan(value)]
    for at in (0, 5, 99, 100, 248):
        expected = finite[max(0, at - 99) : at + 1].mean()
        np.testing.assert_allclose(history.scores[at], expected, atol=1e-12)
    assert history.end == 2490
    assert history.score_at(-1) is None
    assert history.score_at(2485) == pytest.approx(history.scores[-2])


def test_one_huge_return_spoils_only_the_scores_of_its_window() -> None:
    value = np.full(1_000, 7.0)
    value[100] = -1e18
    rows = {"agent_steps": np.arange(1_000), "wall_time_s": np.arange(1_000) / 2, "value": value}
    scores = by_training(rows).scores
    assert scores[99] == scores[200] == scores[-1] == 7.0
    assert (scores[100:200] < -1e15).all()


def test_single_high_return_at_start_does_not_reach_threshold() -> None:
    value = np.concatenate([[500.0], np.zeros(150), np.full(200, 200.0)])
    rows = {"agent_steps": np.arange(351), "wall_time_s": np.arange(351) / 10, "value": value}
    # The mean of the last 100 episodes is above 195 once 98 of them have return 200.
    assert by_training(rows).reached(195.0) == (248.0, 24.8)
    assert by_training(rows).reached(201.0) == (np.inf, np.inf)


def _evaluation(
    agent_steps: int, mean_return: float, second: int = 0, attempt: int | None = 1, n_episodes: int = 30
) -> Evaluation:
    return Evaluation(
        id=f"{agent_steps} {mean_return}",
        attempt=attempt,
        agent_steps=agent_steps,
        wall_time_s=agent_steps / 100,
        mean_return=mean_return,
        n_episodes=n_episodes,
        requested_at=datetime(2026, 1, 1, second=second, tzinfo=UTC),
    )


def test_evaluation_score_is_neither_the_best_parameters_nor_one_that_a_user_requested() -> None:
    own = [_evaluation(100, 5.0), _evaluation(200, 1.0, second=1), _evaluation(200, 4.0, second=2)]
    requested = [_evaluation(200, 9.0, attempt=None), _evaluation(300, 8.0, attempt=None)]
    for done in (own, own[::-1], [*requested, *own]):
        history = by_evaluation(done)
        assert history.scores.tolist() == [5.0, 1.0]
        assert history.end == 200
    assert by_evaluation(requested).scores.tolist() == [9.0, 8.0]


def test_evaluations_reach_threshold_at_first_evaluation_above_it() -> None:
    history = by_evaluation([_evaluation(300, 9.0), _evaluation(100, 1.0), _evaluation(200, 10.0)])
    assert history.reached(5.0) == (200.0, 2.0)
    assert history.score_at(250) == 10.0
    assert history.score_at(10_000) == 9.0
    assert by_evaluation([]).end == 0


def test_evaluation_of_fewer_than_thirty_episodes_reaches_no_threshold() -> None:
    history = by_evaluation([_evaluation(100, 9.0, n_episodes=29), _evaluation(200, 8.0, n_episodes=30)])
    assert history.scores.tolist() == [9.0, 8.0]
    assert history.reached(5.0) == (200.0, 2.0)
