"""A gymnasium environment as one of our worlds."""

import os
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from workers.engine.envs.base import Action, ActionSpace, Box, Discrete, OnFrame, Step

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pictures are drawn in memory; no screen is looked for


class GymnasiumWorld:
    """One environment with observations of one array; a decision is a frame.

    Args:
        env: made with `render_mode="rgb_array"`.
        action_names: of its actions, or of the numbers of one.

    Raises:
        TypeError: its spaces are none that an agent here can see or choose from.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], action_names: tuple[str, ...]) -> None:
        self._env = env
        space = env.observation_space
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) not in (1, 3):
            raise TypeError(
                f"no agent here can see {space}; a Box of (D,) numbers or (H, W, C) pixels is wanted"
            )
        self.observation_shape: tuple[int, ...] = tuple(space.shape)
        self.observation_dtype = np.dtype(np.float32 if len(space.shape) == 1 else np.uint8)
        self.action_space = action_space(env.action_space)
        self.action_names = action_names
        self.frames_per_second = float(env.metadata.get("render_fps") or 30)
        self.on_frame: OnFrame | None = None

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Begin the episode of this seed."""
        observation, _ = self._env.reset(seed=seed)
        self._observe(observation, out)
        if self.on_frame is not None:
            self._show(self.on_frame)

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Take one step."""
        if isinstance(self.action_space, Box):
            action = self.action_space.clip(action)
        observation, reward, terminated, truncated, _ = self._env.step(action)
        self._observe(observation, out)
        if self.on_frame is not None:
            self._show(self.on_frame)
        return Step(
            reward=float(reward),
            terminal=bool(terminated),
            ended=bool(terminated or truncated),
            truncated=bool(truncated and not terminated),
            frames=1,
        )

    def lives(self) -> int:
        """None that are told."""
        return 0

    def close(self) -> None:
        """Close the environment and its picture."""
        self._env.close()

    def _observe(self, observation: Any, out: NDArray[Any]) -> None:
        np.copyto(out, observation, casting="same_kind")

    def _show(self, on_frame: OnFrame) -> None:
        on_frame(np.asarray(self._env.render(), np.uint8))


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
    raise TypeError(
        f"no agent here can choose among {space}; Discrete from 0 on, or a Box of (D,), is wanted"
    )
