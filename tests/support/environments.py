"""Environments behind gymnasium's interface, for gymnasium's environment checker."""

from typing import Any

import gymnasium
import numpy as np

from backend.specs.environments import ENVIRONMENTS, EnvironmentConfig
from workers.engine.envs import Box, Env, make_env


def build(environment: str, **settings: Any) -> Env:
    return make_env(environment, ENVIRONMENTS[environment].config.model_validate(settings))


class AsGymnasium(gymnasium.Env[Any, Any]):
    """An environment behind gymnasium's interface. A reset without a seed uses the next seed."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, environment: str, config: EnvironmentConfig | None = None) -> None:
        self.env = make_env(environment, config or ENVIRONMENTS[environment].config())
        shape, dtype = self.env.observation_shape, self.env.observation_dtype
        low, high = (0.0, 255.0) if dtype == np.uint8 else (-np.inf, np.inf)
        self.observation_space = gymnasium.spaces.Box(low, high, shape, dtype.type)
        space = self.env.action_space
        if isinstance(space, Box):
            self.action_space = gymnasium.spaces.Box(
                np.array(space.low, np.float32), np.array(space.high, np.float32)
            )
        else:
            self.action_space = gymnasium.spaces.Discrete(space.n)
        self._seed = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._seed = self._seed + 1 if seed is None else seed
        out = np.empty(self.env.observation_shape, self.env.observation_dtype)
        self.env.reset(self._seed, out)
        return out, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        out = np.empty(self.env.observation_shape, self.env.observation_dtype)
        step = self.env.step(action, out)
        return out, step.reward, step.terminated, step.truncated, {}

    def close(self) -> None:
        self.env.close()
