"""A gymnasium environment behind the `Env` interface; gymnasium's classic control environments."""

import os
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.classic import ClassicConfig
from workers.engine.envs.base import Action, ActionSpace, Box, Discrete, OnFrame, Step
from workers.engine.envs.info import InfoTotals

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # rendering is off screen


class GymnasiumEnv:
    """One environment whose observation is one array; a decision is a frame.

    Args:
        env: created with `render_mode="rgb_array"`, unless a subclass renders itself.
        action_names: names of the environment's discrete actions, or of a continuous action's numbers.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], action_names: tuple[str, ...]) -> None:
        self._env = env
        space = env.observation_space
        assert isinstance(space, gymnasium.spaces.Box)
        self.observation_shape: tuple[int, ...] = tuple(space.shape)
        self.observation_dtype = np.dtype(np.float32 if len(space.shape) == 1 else np.uint8)
        self.observation_bounds: tuple[ArrayLike, ArrayLike] = space.low, space.high
        """The least and the greatest numbers of an observation."""
        self.action_space = action_space(env.action_space)
        self.action_names = action_names
        self.frames_per_second = float(env.metadata.get("render_fps") or 30)
        self.on_frame: OnFrame | None = None
        self.info: InfoTotals | None = None
        """Collects the scalars of `info`, if not None."""

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Start the episode of this seed."""
        observation, _ = self._env.reset(seed=seed)
        self._observe(observation, out)
        if self.on_frame is not None:
            self._render(self.on_frame)

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Take one step."""
        if isinstance(self.action_space, Box):
            action = self.action_space.clip(action)
        observation, reward, terminated, truncated, info = self._env.step(action)
        if self.info is not None:
            self.info.add(info)
        if self.on_frame is not None:
            self._render(self.on_frame)
        self._observe(observation, out)
        return Step(
            reward=float(reward),
            terminated=bool(terminated),
            episode_over=bool(terminated or truncated),
            truncated=bool(truncated and not terminated),
            frames=1,
        )

    def lives(self) -> int:
        """Always 0: gymnasium reports none."""
        return 0

    def close(self) -> None:
        """Close the environment and its renderer."""
        self._env.close()

    def _observe(self, observation: Any, out: NDArray[Any]) -> None:
        np.copyto(out, observation, casting="same_kind")

    def _render(self, on_frame: OnFrame) -> None:
        on_frame(np.asarray(self._env.render(), np.uint8))


def action_space(space: gymnasium.Space[Any]) -> ActionSpace:
    """Convert gymnasium's `Discrete` starting at 0, or its `Box` of (D,) numbers."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return Discrete(int(space.n))
    assert isinstance(space, gymnasium.spaces.Box)
    return Box(tuple(space.low.tolist()), tuple(space.high.tolist()))


class ClassicEnv(GymnasiumEnv):
    """One of gymnasium's classic control environments."""

    def __init__(self, environment: str, config: ClassicConfig) -> None:
        env = gymnasium.make(
            environment,
            render_mode="rgb_array",
            max_episode_steps=config.max_episode_agent_steps,
            disable_env_checker=True,
        )
        super().__init__(env, ENVIRONMENTS[environment].action_names)
