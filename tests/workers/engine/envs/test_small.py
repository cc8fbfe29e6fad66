"""The small environments by their rules."""

import numpy as np
import pytest

from tests.support.environments import build


def test_catch_rewards_standing_under_the_ball() -> None:
    env = build("Catch-v0")
    observation = np.empty(env.observation_shape, np.uint8)
    for seed in range(30):
        for away in (False, True):
            env.reset(seed, observation)
            rewards = []
            for _ in range(11):
                cells = observation[3::7, 3::7, 0]
                ball = int(np.argwhere(cells == 255)[0, 1])
                [paddle, _] = np.flatnonzero(cells[-1] == 128).tolist()
                towards = 1 + np.sign(ball - paddle) if not away else 2 * int(ball < 6)
                step = env.step(int(towards), observation)
                rewards.append(step.reward)
            assert rewards == [0.0] * 10 + [-1.0 if away else 1.0]
            assert step.terminated
            assert step.episode_over


def test_catch_uses_every_column() -> None:
    env = build("Catch-v0")
    observation = np.empty(env.observation_shape, np.uint8)
    columns = set()
    for seed in range(200):
        env.reset(seed, observation)
        columns.add(int(observation[0, :, 0].argmax()) // 7)
    assert columns == set(range(12))


@pytest.mark.parametrize("delay", [1, 8])
def test_memory_query_observation_does_not_reveal_the_answer(delay: int) -> None:
    env = build("Memory-v0", delay_agent_steps=delay)
    observation = np.empty(3, np.float32)
    asked, cues, earned = set(), [], []
    for seed in range(100):
        env.reset(seed, observation)
        cue = int(observation[1])
        cues.append(cue)
        assert observation.tolist() == [1 - cue, cue, 0]
        for t in range(delay):
            step = env.step(t % 2, observation)
            assert (step.reward, step.episode_over) == (0.0, False)
            assert observation.tolist() == [0, 0, t == delay - 1]
        asked.add(tuple(observation.tolist()))
        answer = cue if seed % 2 else 1 - cue
        step = env.step(answer, observation)
        earned.append(step.reward)
        assert step.terminated
    assert asked == {(0.0, 0.0, 1.0)}
    assert 30 < sum(cues) < 70
    assert earned == [-1.0, 1.0] * 50
