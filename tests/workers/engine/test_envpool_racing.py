"""EnvPool's race, where it is installed."""

import numpy as np
import pytest

from tests.support.worlds import build

envpool = pytest.importorskip("envpool", reason="callboard[envpool] is not installed")


@pytest.mark.filterwarnings("ignore:.*precision lowered.*:UserWarning")
def test_a_race_is_envpools_with_actions_held_for_four_frames() -> None:
    world = build("CarRacing-v3")
    observation = np.empty(world.observation_shape, np.uint8)
    world.reset(5, observation)
    pool = envpool.make_gymnasium("CarRacing-v3", num_envs=1, num_threads=1, seed=5)
    pool.reset()
    total = 0.0
    for _ in range(40):
        step = world.step(world.action_names.index("GAS"), observation)
        wanted = sum(float(pool.step(np.array([[0, 0.2, 0]], np.float32))[1][0]) for _ in range(4))
        assert step.reward == pytest.approx(wanted)
        total += step.reward
    pool.close()
    assert total > 10
    brake = world.action_names.index("BRAKE")
    while not (step := world.step(brake, observation)).ended:
        assert step.frames == 4
    assert step.truncated
    world.close()
