"""What is checked of custom environments: spaces, values and seeds, each with a sentence."""

import random
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from backend.specs.environments.custom import CustomEnvironment, CustomEnvironmentsError
from workers.engine.envs import checks
from workers.engine.envs.checks import CheckedEnv, check_environment


class Counter(gymnasium.Env[Any, Any]):
    """Counts decisions from a random number; a test replaces what it returns."""

    def __init__(self, space: Box, observe: Callable[["Counter"], Any], reward: Any = 1.0) -> None:
        self.observation_space, self.observe, self.reward = space, observe, reward
        self.action_space = Discrete(2)
        self.count, self.resets = 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count, self.resets = int(self.np_random.integers(100)), self.resets + 1
        return self.observe(self), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.count += 1 + int(action)
        return self.observe(self), self.reward, self.count > 120, False, {}

    def render(self) -> Any:
        return np.zeros((20, 40, 3), np.uint8)


def described(observation: str) -> CustomEnvironment:
    return CustomEnvironment.model_validate(
        {
            "id": "Custom/Counter-v0",
            "title": "Counter",
            "observation": observation,
            "actions": "discrete",
            "action_names": ["ONE", "TWO"],
        }
    )


VECTOR = Box(0, 1_000, (2,), np.float32)
PIXELS = Box(0, 255, (12, 10, 1), np.uint8)


def counted(env: Counter) -> Any:
    return np.array([env.count, 0], np.float32)


def try_out(space: Box, observe: Callable[[Counter], Any], reward: Any = 1.0) -> None:
    entry = described("vector" if len(space.shape) == 1 else "pixels")
    check_environment(entry, lambda: Counter(space, observe, reward))


@pytest.mark.parametrize("seconds", [2.0, 0.0])
def test_sound_environment_passes(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(checks, "SLOW_S", seconds)
    try_out(VECTOR, counted)
    try_out(PIXELS, lambda env: np.full((12, 10, 1), env.count, np.uint8))


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Box(0, 255, (3, 84, 84), np.uint8), r"has the shape \(3, 84, 84\), with its channels first"),
        (Box(0, 65_535, (84, 84, 3), np.uint16), "has pixels of uint16; return uint8"),
        (Box(0, 1, (84, 84, 3), np.float32), "has pixels of float32; return uint8"),
        (Box(0, 1, (0,), np.float32), "is empty"),
        (Box(0, 1, (4, 4), np.float32), "is not supported: use a Box of"),
    ],
    ids=str,
)
def test_space_is_refused(space: Box, message: str) -> None:
    with pytest.raises(CustomEnvironmentsError, match=rf"Custom/Counter-v0: observation space .*{message}"):
        try_out(space, lambda env: space.sample())


@pytest.mark.parametrize(
    ("space", "observe", "reward", "message"),
    [
        (VECTOR, lambda env: np.zeros(1), 1.0, r"observation has the shape \(1,\) in the reset"),
        (VECTOR, lambda env: np.array([0, 1e300]), 1.0, r"observation\[1\] is 1e\+300 in the reset"),
        (PIXELS, lambda env: np.zeros((12, 10, 1)), 1.0, "observation is float64 in the reset"),
        (VECTOR, counted, float("nan"), "reward is nan in decision 1 of the episode with the seed 7"),
        (VECTOR, counted, float("-inf"), "reward is -inf in decision 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_value_is_refused_in_training(space: Box, observe: Any, reward: float, message: str) -> None:
    entry = described("vector" if len(space.shape) == 1 else "pixels")
    env = CheckedEnv(entry, Counter(space, observe, reward))

    def play() -> None:
        env.reset(seed=7)
        env.step(0)

    with pytest.raises(CustomEnvironmentsError, match=f"Custom/Counter-v0: {message}"):
        play()


def test_large_finite_observation_is_accepted() -> None:
    env = CheckedEnv(described("vector"), Counter(VECTOR, lambda env: np.array([0, 3e38])))
    assert np.isfinite(env.reset(seed=0)[0]).all()


@pytest.mark.parametrize(
    ("observe", "message"),
    [
        (
            lambda env: np.array([random.random(), 0]),
            r"seed 0 differ .*: after the reset observation\[0\] is",
        ),
        (
            lambda env: counted(env) * (env.resets > 1),
            "one that has played 1 episode differ after a reset with the seed 1",
        ),
    ],
)
def test_environment_that_does_not_follow_its_seed_is_refused(observe: Any, message: str) -> None:
    with pytest.raises(CustomEnvironmentsError, match=f"Custom/Counter-v0: .*{message}"):
        try_out(VECTOR, observe)
