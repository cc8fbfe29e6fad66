"""The small worlds by their rules."""

import numpy as np
import pytest

from tests.support.worlds import build


def test_who_stands_under_the_ball_catches_it_and_who_does_not_misses() -> None:
    world = build("Catch-v0")
    observation = np.empty(world.observation_shape, np.uint8)
    for seed in range(30):
        for away in (False, True):
            world.reset(seed, observation)
            rewards = []
            for _ in range(11):
                cells = observation[3::7, 3::7, 0]
                ball = int(np.argwhere(cells == 255)[0, 1])
                [paddle, _] = np.flatnonzero(cells[-1] == 128).tolist()
                towards = 1 + np.sign(ball - paddle) if not away else 2 * int(ball < 6)
                step = world.step(int(towards), observation)
                rewards.append(step.reward)
            assert rewards == [0.0] * 10 + [-1.0 if away else 1.0]
            assert step.terminal
            assert step.ended


def test_every_column_is_played() -> None:
    world = build("Catch-v0")
    observation = np.empty(world.observation_shape, np.uint8)
    columns = set()
    for seed in range(200):
        world.reset(seed, observation)
        columns.add(int(observation[0, :, 0].argmax()) // 7)
    assert columns == set(range(12))


@pytest.mark.parametrize("delay", [1, 8])
def test_the_question_cannot_be_answered_from_what_is_seen_when_it_is_asked(delay: int) -> None:
    world = build("Memory-v0", delay_agent_steps=delay)
    observation = np.empty(3, np.float32)
    asked, cues, earned = set(), [], []
    for seed in range(100):
        world.reset(seed, observation)
        cue = int(observation[1])
        cues.append(cue)
        assert observation.tolist() == [1 - cue, cue, 0]
        for t in range(delay):
            step = world.step(t % 2, observation)
            assert (step.reward, step.ended) == (0.0, False)
            assert observation.tolist() == [0, 0, t == delay - 1]
        asked.add(tuple(observation.tolist()))
        answer = cue if seed % 2 else 1 - cue
        step = world.step(answer, observation)
        earned.append(step.reward)
        assert step.terminal
    assert asked == {(0.0, 0.0, 1.0)}
    assert 30 < sum(cues) < 70
    assert earned == [-1.0, 1.0] * 50
