"""Small built-in environments: Catch from pixels, and an environment that needs memory."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backend.specs.environments.small import CatchConfig, MemoryConfig
from workers.engine.envs.base import Action, ActionSpace, Discrete, OnFrame, Step

CELLS = 12
CELL_PIXELS = 7
PADDLE_CELLS = 2


class CatchEnv:
    """A ball falls one row per decision from a random column of a 12×12 board; a paddle moves at the bottom.

    The episode ends after 11 decisions. Reward: 1 if the paddle is under the ball, else -1.
    """

    observation_shape: tuple[int, ...] = (CELLS * CELL_PIXELS, CELLS * CELL_PIXELS, 1)
    observation_dtype = np.dtype(np.uint8)
    frames_per_second = 10.0
    action_names: tuple[str, ...] = ("LEFT", "STAY", "RIGHT")
    action_space: ActionSpace = Discrete(3)

    def __init__(self, config: CatchConfig) -> None:
        self.on_frame: OnFrame | None = None
        self._ball = (0, 0)
        self._paddle = 0

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Drop a ball from the seed's column; the paddle is in the middle."""
        self._ball = (0, int(np.random.default_rng(seed).integers(CELLS)))
        self._paddle = (CELLS - PADDLE_CELLS) // 2
        self._draw(out)

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Move the paddle by a cell, let the ball fall by one."""
        self._paddle = min(max(self._paddle + int(action) - 1, 0), CELLS - PADDLE_CELLS)
        row, column = self._ball
        self._ball = (row + 1, column)
        self._draw(out)
        over = row + 1 == CELLS - 1
        caught = 0 <= column - self._paddle < PADDLE_CELLS
        reward = (1.0 if caught else -1.0) if over else 0.0
        return Step(reward=reward, terminated=over, episode_over=over, truncated=False, frames=1)

    def lives(self) -> int:
        """Always 0: there are no lives."""
        return 0

    def close(self) -> None:
        """Nothing to free."""

    def _draw(self, out: NDArray[np.uint8]) -> None:
        out[:] = 0
        row, column = self._ball
        _fill(out, CELLS - 1, self._paddle, PADDLE_CELLS, 128)
        _fill(out, row, column, 1, 255)
        if self.on_frame is not None:
            self.on_frame(np.repeat(out, 3, axis=-1))


def _fill(out: NDArray[np.uint8], row: int, column: int, cells: int, value: int) -> None:
    c = CELL_PIXELS
    out[row * c : (row + 1) * c, column * c : (column + cells) * c] = value


class MemoryEnv:
    """A cue, left or right, is shown in the first observation only; after a delay the agent is asked for it.

    Observation (3,): cue is left, cue is right, the question is asked. The answer gives a reward of 1 or -1
    and ends the episode; earlier decisions have no effect. Both cues are equally likely, so an agent without
    memory has a mean return of at most 0.
    """

    observation_shape: tuple[int, ...] = (3,)
    observation_dtype = np.dtype(np.float32)
    observation_bounds: tuple[ArrayLike, ArrayLike] = 0.0, 1.0
    frames_per_second = 5.0
    action_names: tuple[str, ...] = ("LEFT", "RIGHT")
    action_space: ActionSpace = Discrete(2)

    def __init__(self, config: MemoryConfig) -> None:
        self._delay = config.delay_agent_steps
        self.on_frame: OnFrame | None = None
        self._cue = 0
        self._t = 0

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Show the seed's cue."""
        self._cue = int(np.random.default_rng(seed).integers(2))
        self._t = 0
        self._observe(out)

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Wait, or answer."""
        asked = self._t == self._delay
        reward = (1.0 if int(action) == self._cue else -1.0) if asked else 0.0
        self._t += 1
        self._observe(out)
        return Step(reward=reward, terminated=asked, episode_over=asked, truncated=False, frames=1)

    def lives(self) -> int:
        """Always 0: there are no lives."""
        return 0

    def close(self) -> None:
        """Nothing to free."""

    def _observe(self, out: NDArray[np.float32]) -> None:
        shown = self._t == 0
        out[:] = (shown and self._cue == 0, shown and self._cue == 1, self._t == self._delay)
        if self.on_frame is not None:
            frame = np.zeros((80, 160, 3), np.uint8)
            frame[:, :80, 0] = 255 * out[0]
            frame[:, 80:, 1] = 255 * out[1]
            frame[32:48] |= np.uint8(255 * out[2])
            self.on_frame(frame)
