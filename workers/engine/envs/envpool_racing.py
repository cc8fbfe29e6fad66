"""EnvPool's CarRacing-v3: gymnasium's CarRacing rewritten in C++, with the same reward and car.

A decision repeats one of gymnasium's five discrete actions for `frame_skip` frames; rewards are summed.
EnvPool takes a seed only when a pool is created, so each episode creates a pool, which costs milliseconds.
"""

from typing import Any

import cv2
import envpool
import gymnasium
import numpy as np
from numpy.typing import NDArray

from backend.specs.environments.racing import ENVPOOL_ACTIONS, EnvPoolRacingConfig
from workers.engine.envs.base import Action, ActionSpace, Discrete, OnFrame, Step
from workers.engine.envs.images import SIZE

MAX_FRAMES = 1_000
"""As EnvPool and gymnasium register it."""

cv2.setNumThreads(1)


class EnvPoolRacingEnv:
    """One race."""

    observation_shape: tuple[int, ...] = (SIZE, SIZE, 3)
    observation_dtype = np.dtype(np.uint8)
    action_names: tuple[str, ...] = tuple(ENVPOOL_ACTIONS)
    action_space: ActionSpace = Discrete(len(ENVPOOL_ACTIONS))
    frames_per_second = 50.0

    def __init__(self, config: EnvPoolRacingConfig) -> None:
        self._frame_skip = config.frame_skip
        self._controls = [np.array([numbers], np.float32) for numbers in ENVPOOL_ACTIONS.values()]
        self._pool: Any = None
        self.on_frame: OnFrame | None = None

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Create the pool of this seed."""
        self.close()
        level, gymnasium.logger.min_level = gymnasium.logger.min_level, gymnasium.logger.ERROR
        try:  # gymnasium warns of its float64 spaces
            self._pool = envpool.make_gymnasium(
                "CarRacing-v3", num_envs=1, num_threads=1, seed=seed % 2**31, max_episode_steps=MAX_FRAMES
            )
        finally:
            gymnasium.logger.min_level = level
        frame, _ = self._pool.reset()
        self._observe(frame[0], out)

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Repeat the action for `frame_skip` frames, fewer if the race ends."""
        total_reward, frames, over, truncated = 0.0, 0, False, False
        while frames < self._frame_skip and not (over or truncated):
            frame, reward, terminated, time_over, _ = self._pool.step(self._controls[int(action)])
            total_reward += float(reward[0])
            over, truncated = bool(terminated[0]), bool(time_over[0]) and not bool(terminated[0])
            frames += 1
            if self.on_frame is not None:
                self.on_frame(frame[0])
        self._observe(frame[0], out)
        return Step(
            reward=total_reward,
            terminated=over,
            episode_over=over or truncated,
            truncated=truncated,
            frames=frames,
        )

    def lives(self) -> int:
        """Always 0: there are no lives."""
        return 0

    def close(self) -> None:
        """Close the pool and its thread."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _observe(self, frame: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        cv2.resize(frame, (SIZE, SIZE), dst=out, interpolation=cv2.INTER_AREA)
