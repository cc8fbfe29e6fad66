"""Returns of continuations, and how far V predicts them."""

import numpy as np
import pytest

from backend.replays.branches.outcomes import discounted_return, valued_decisions


@pytest.mark.parametrize(
    ("decision", "of_whole", "of_life"),
    [(0, 5, 2), (1, 4, 1), (2, 3, 2), (3, 2, 1), (4, 1, 1)],
)
def test_value_of_single_lives_predicts_up_to_the_next_lost_one(
    decision: int, of_whole: int, of_life: int
) -> None:
    lives = [3, 2, 2, 1, 1]
    assert valued_decisions(lives, decision, value_is_per_life=False) == of_whole
    assert valued_decisions(lives, decision, value_is_per_life=True) == of_life


def test_life_that_is_gained_later_is_not_lost_in_the_first_decision() -> None:
    lives = [3, 3, 3, 4, 4, 3, 2, 1, 0]
    assert [valued_decisions(lives, decision, value_is_per_life=True) for decision in (0, 1)] == [6, 5]


def test_value_follows_the_last_reward_that_it_predicts() -> None:
    rewards = np.array([1.0, -3.0, 4.0])
    assert discounted_return(rewards, 2, 8.0, 0.5, None) == 1 - 1.5 + 2
    assert discounted_return(rewards, 2, 8.0, 0.5, 1.0) == 1 - 0.5 + 2
    assert discounted_return(rewards, 3, None, 0.5, 1.0) == 1 - 0.5 + 0.25
