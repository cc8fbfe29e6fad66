"""Small gymnasium worlds with vector observations."""

import os
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backend.specs.environments.classic import ClassicConfig
from workers.engine.envs.base import OnFrame, Step

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pictures are drawn in memory; no screen is looked for

_ACTION_NAMES = {"CartPole-v1": ("LEFT", "RIGHT")}


class ClassicWorld:
    """One gymnasium environment with discrete actions; a decision is a frame."""

    observation_dtype = np.dtype(np.float32)

    def __init__(self, environment: str, config: ClassicConfig) -> None:
        self._env = gymnasium.make(
            environment, render_mode="rgb_array", max_episode_steps=config.max_episode_agent_steps
        )
        self.observation_shape: tuple[int, ...] = tuple(self._env.observation_space.shape or ())
        self.action_names: tuple[str, ...] = _ACTION_NAMES[environment]
        self.frames_per_second = float(self._env.metadata["render_fps"])
        self.on_frame: OnFrame | None = None

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Begin the episode of this seed."""
        observation, _ = self._env.reset(seed=seed)
        np.copyto(out, observation)
        self._show()

    def step(self, action: int, out: NDArray[Any]) -> Step:
        """Take one step."""
        observation, reward, terminated, truncated, _ = self._env.step(action)
        np.copyto(out, observation)
        self._show()
        return Step(
            reward=float(reward),
            terminal=terminated,
            ended=terminated or truncated,
            truncated=truncated and not terminated,
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
