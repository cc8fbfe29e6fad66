from datetime import UTC, datetime

import numpy as np

from backend.comparisons.courses import by_evaluation, by_training
from backend.db import Evaluation


def test_a_training_score_is_the_mean_of_the_last_hundred_episodes() -> None:
    rng = np.random.default_rng(0)
    value = rng.normal(size=250)
    value[17] = np.nan
    rows = {"agent_steps": np.arange(250) * 10, "wall_time_s": np.arange(250) / 2, "value": value}
    course = by_training(rows)
    finite = value[~np.isnan(value)]
    for at in (0, 5, 99, 100, 248):
        expected = finite[max(0, at - 99) : at + 1].mean()
        np.testing.assert_allclose(course.scores[at], expected, atol=1e-12)
    assert course.end == 2490
    assert course.score_at(-1) is None
    np.testing.assert_allclose(course.score_at(2485), course.scores[-2])


def test_a_lucky_beginning_is_not_a_threshold_reached() -> None:
    value = np.concatenate([[500.0], np.zeros(150), np.full(200, 200.0)])
    rows = {"agent_steps": np.arange(351), "wall_time_s": np.arange(351) / 10, "value": value}
    # 195 of the last 100 episodes' mean: 98 of them at 200.
    assert by_training(rows).reached(195.0) == (248.0, 24.8)
    assert by_training(rows).reached(201.0) == (np.inf, np.inf)


def test_evaluations_reach_a_threshold_at_the_first_that_does() -> None:
    def one(agent_steps: int, mean_return: float) -> Evaluation:
        return Evaluation(
            agent_steps=agent_steps,
            wall_time_s=agent_steps / 100,
            mean_return=mean_return,
            requested_at=datetime(2026, 1, 1, tzinfo=UTC),
        )

    course = by_evaluation([one(300, 9.0), one(100, 1.0), one(200, 10.0)])
    assert course.reached(5.0) == (200.0, 2.0)
    assert course.score_at(250) == 10.0
    assert course.score_at(10_000) == 9.0
    assert by_evaluation([]).end == 0
