"""EnvPool's race, where it is installed."""

import numpy as np
import pytest

from tests.support.environments import build
from tests.support.waiting import Patience

envpool = pytest.importorskip("envpool", reason="callboard[envpool] is not installed")


@pytest.mark.filterwarnings("ignore:.*precision lowered.*:UserWarning")
def test_envpool_race_equals_envpool_with_action_repeat_4() -> None:
    env = build("CarRacing-v3")
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(5, observation)
    pool = envpool.make_gymnasium("CarRacing-v3", num_envs=1, num_threads=1, seed=5)
    pool.reset()
    total = 0.0
    for _ in range(40):
        step = env.step(env.action_names.index("GAS"), observation)
        wanted = sum(float(pool.step(np.array([[0, 0.2, 0]], np.float32))[1][0]) for _ in range(4))
        assert step.reward == pytest.approx(wanted)
        total += step.reward
    pool.close()
    assert total > 10
    brake = env.action_names.index("BRAKE")
    patience = Patience()
    while patience.lasts() and not (step := env.step(brake, observation)).episode_over:
        assert step.frames == 4
    assert step.truncated
    env.close()
