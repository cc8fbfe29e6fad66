"""MuJoCo's tasks from state and from pixels."""

import gymnasium
import numpy as np
import pytest

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.mujoco import MUJOCO_ENVIRONMENTS
from tests.support.environments import build
from workers.engine.envs import Box, mujoco
from workers.engine.envs.mujoco import GL


@pytest.mark.parametrize("task", MUJOCO_ENVIRONMENTS)
def test_mujoco_env_equals_gymnasiums_with_scaled_observations(task: str) -> None:
    env = gymnasium.make(f"{task}-v5")
    whole, scaled = build(f"{task}-v5", normalise=False), build(f"{task}-v5")
    assert isinstance(whole.action_space, Box)
    assert whole.action_names == scaled.action_names == ENVIRONMENTS[f"{task}-v5"].action_names
    assert len(whole.action_names) == len(whole.action_space.low)
    out = np.empty(whole.observation_shape, np.float32)
    normal = np.empty_like(out)
    wanted, _ = env.reset(seed=4)
    whole.reset(4, out)
    scaled.reset(4, normal)
    rng = np.random.default_rng(0)
    seen = []
    space = env.action_space
    assert isinstance(space, gymnasium.spaces.Box)
    for _ in range(30):
        np.testing.assert_array_equal(out, wanted.astype(np.float32))
        seen.append(normal.copy())
        action = rng.normal(0, 2 * np.array(whole.action_space.high)).astype(np.float32)
        clipped = np.clip(action, space.low, space.high)
        wanted, reward, *_ = env.step(clipped)
        step = whole.step(action, out)
        assert step.reward == reward
        assert scaled.step(action, normal) == step
    assert np.abs(seen).max() <= 10.0
    for opened in (env, whole, scaled):
        opened.close()


@pytest.mark.parametrize("task", ["HalfCheetah", "Hopper", "Reacher"])
def test_random_play_has_mean_0_and_standard_deviation_1(task: str) -> None:
    env = build(f"{task}-v5")
    assert isinstance(env.action_space, Box)
    observation = np.empty(env.observation_shape, np.float32)
    rng = np.random.default_rng(5)
    seen, seed = [], 1_000
    env.reset(seed, observation)
    for _ in range(4_000):
        if env.step(rng.uniform(env.action_space.low, env.action_space.high), observation).episode_over:
            seed += 1
            env.reset(seed, observation)
        seen.append(observation.copy())
    env.close()
    assert np.abs(np.mean(seen, 0)).max() < 0.5
    assert np.std(seen, 0).min() > 0.5
    assert np.std(seen, 0).max() < 1.5


def test_episode_is_truncated_at_gymnasiums_or_our_limit() -> None:
    for bound, settings in ((50, {}), (7, {"max_episode_agent_steps": 7})):
        env = build("Reacher-v5", **settings)
        observation = np.empty(env.observation_shape, np.float32)
        env.reset(0, observation)
        steps = [env.step(np.zeros(2, np.float32), observation) for _ in range(bound)]
        assert [step.episode_over for step in steps] == [False] * (bound - 1) + [True]
        assert steps[-1].truncated
        assert not steps[-1].terminated
        env.close()


@pytest.mark.skipif(GL == "disable", reason="rendering MuJoCo needs libEGL: the package libegl1")
def test_pixel_observations_change_as_the_body_moves() -> None:
    env = build("HalfCheetah-Pixels-v5")
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(0, observation)
    assert not observation[..., :3].any()
    assert observation[..., 3].std() > 10
    for t in range(8):
        before = observation.copy()
        env.step(np.full(6, 1.0 if t % 4 < 2 else -1.0, np.float32), observation)
        np.testing.assert_array_equal(observation[..., :3], before[..., 1:])
        assert np.abs(observation[..., 3].astype(int) - before[..., 3]).mean() > 0.5
    env.close()


def test_state_observations_need_no_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mujoco, "GL", "disable")
    env = build("Reacher-v5")
    observation = np.empty(env.observation_shape, np.float32)
    images: list[np.ndarray] = []
    env.on_frame = images.append
    env.reset(0, observation)
    assert env.step(np.zeros(2, np.float32), observation).frames == 1
    assert not images
    env.close()
    with pytest.raises(RuntimeError, match="libegl1"):
        build("Reacher-Pixels-v5")
