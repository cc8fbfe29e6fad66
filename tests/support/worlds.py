"""Worlds as gymnasium sees them, so that its own checker can look at them."""

from typing import Any

import gymnasium
import numpy as np

from backend.specs.environments import ENVIRONMENTS, EnvironmentConfig
from workers.engine.envs import Box, World, make_world


def build(environment: str, **settings: Any) -> World:
    return make_world(environment, ENVIRONMENTS[environment].config.model_validate(settings))


class AsGymnasium(gymnasium.Env[Any, Any]):
    """One world behind gymnasium's interface; an unseeded reset goes on to the next seed."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, environment: str, config: EnvironmentConfig | None = None) -> None:
        self.world = make_world(environment, config or ENVIRONMENTS[environment].config())
        shape, dtype = self.world.observation_shape, self.world.observation_dtype
        bounds = (0, 255) if dtype == np.uint8 else (-np.inf, np.inf)
        self.observation_space = gymnasium.spaces.Box(*bounds, shape, dtype.type)
        space = self.world.action_space
        if isinstance(space, Box):
            self.action_space = gymnasium.spaces.Box(np.float32(space.low), np.float32(space.high))
        else:
            self.action_space = gymnasium.spaces.Discrete(space.n)
        self._seed = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._seed = self._seed + 1 if seed is None else seed
        out = np.empty(self.world.observation_shape, self.world.observation_dtype)
        self.world.reset(self._seed, out)
        return out, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        out = np.empty(self.world.observation_shape, self.world.observation_dtype)
        step = self.world.step(action, out)
        return out, step.reward, step.terminal, step.truncated, {}

    def close(self) -> None:
        self.world.close()
