"""Small gymnasium worlds with vector observations."""

import os
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.classic import ClassicConfig
from workers.engine.envs.base import Action, ActionSpace, Box, Discrete, OnFrame, Step

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pictures are drawn in memory; no screen is looked for


class ClassicWorld:
    """One gymnasium environment; a decision is a frame."""

    observation_dtype = np.dtype(np.float32)

    def __init__(self, environment: str, config: ClassicConfig) -> None:
        self._env = gymnasium.make(
            environment,
            render_mode="rgb_array",
            max_episode_steps=config.max_episode_agent_steps,
            disable_env_checker=True,
        )
        self.observation_shape: tuple[int, ...] = tuple(self._env.observation_space.shape or ())
        self.action_names = ENVIRONMENTS[environment].action_names
        self.action_space = action_space(self._env.action_space)
        self.frames_per_second = float(self._env.metadata["render_fps"])
        self.on_frame: OnFrame | None = None

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Begin the episode of this seed."""
        observation, _ = self._env.reset(seed=seed)
        np.copyto(out, observation)
        self._show()

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Take one step."""
        if isinstance(self.action_space, Box):
            action = self.action_space.clip(action)
        observation, reward, terminated, truncated, _ = self._env.step(action)
        np.copyto(out, observation)
        self._show()
        return Step(
            reward=float(reward),
            terminal=bool(terminated),
            ended=bool(terminated or truncated),
            truncated=bool(truncated and not terminated),
            frames=1,
        )

    def lives(self) -> int:
        """No world here has lives."""
        return 0

    def close(self) -> None:
        """Close the environment and its picture."""
        self._env.close()

    def _show(self) -> None:
        if self.on_frame is not None:
            self.on_frame(np.asarray(self._env.render(), np.uint8))


def action_space(space: gymnasium.Space[Any]) -> ActionSpace:
    """Ours for gymnasium's.

    Raises:
        TypeError: it is neither `Discrete` from 0 on nor a `Box` of one row of numbers.
    """
    match space:
        case gymnasium.spaces.Discrete(n=n, start=0):
            return Discrete(int(n))
        case gymnasium.spaces.Box(low=low, high=high) if low.ndim == 1:
            return Box(tuple(low.tolist()), tuple(high.tolist()))
    raise TypeError(f"no agent here can choose among {space}")
