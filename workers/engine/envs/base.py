"""The interface of every environment: seeded episodes, one action at a time, frames to watch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

OnFrame = Callable[[NDArray[np.uint8]], None]

Action = Any
"""Index of a discrete action, or (D,) float32 in a `Box`."""


@dataclass(frozen=True, slots=True)
class Discrete:
    """One of n actions."""

    n: int


@dataclass(frozen=True, slots=True)
class Box:
    """D numbers, each within its bounds; environments clip values outside them."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def shape(self) -> tuple[int]:
        """(D,)."""
        return (len(self.low),)

    def clip(self, action: NDArray[np.float32]) -> NDArray[np.float32]:
        """The nearest action within the bounds."""
        return np.clip(action, np.asarray(self.low, np.float32), np.asarray(self.high, np.float32))


ActionSpace = Discrete | Box


@dataclass(slots=True)
class Step:
    """The result of one decision."""

    reward: float
    """True, unclipped."""
    terminated: bool
    """Gymnasium's: the next state has no value. Also set at a lost life under `life_loss_terminal`."""
    episode_over: bool
    """The episode is over, terminated or truncated: `reset` comes next. Not set at a mere lost life."""
    truncated: bool
    """Gymnasium's: a limit ended the episode. The next state still has a value."""
    frames: int
    """Emulator frames that passed."""
    crashed: bool = False
    """The environment crashed in this decision, which is dropped: the episode is over and is not counted.
    `reset` comes next."""
    crash: str = ""
    """How it crashed."""


class EnvCrashedError(RuntimeError):
    """An environment crashed."""


MAX_CRASHES = 3


class Crashes:
    """Counts an environment's crashes: each loses an episode; `MAX_CRASHES` in a row are an error."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def lost_episode(self, error: EnvCrashedError) -> Step:
        """The step in which it crashed.

        Raises:
            EnvCrashedError: it crashed `MAX_CRASHES` times without finishing an episode in between.
        """
        self._in_a_row += 1
        if self._in_a_row >= MAX_CRASHES:
            raise error
        return Step(
            reward=0.0,
            terminated=True,
            episode_over=True,
            truncated=False,
            frames=0,
            crashed=True,
            crash=str(error),
        )

    def finished_episode(self) -> None:
        """Reset the count: the environment works."""
        self._in_a_row = 0


class Env(Protocol):
    """One environment. Its seed and actions determine an episode completely."""

    observation_shape: tuple[int, ...]
    """(H, W, C) of uint8 pixels, or (D,) of float32."""
    observation_dtype: np.dtype[Any]
    action_space: ActionSpace
    action_names: tuple[str, ...]
    """Name of each discrete action, or of each of the D numbers."""
    frames_per_second: float
    """Rate of `on_frame` calls at normal speed."""
    on_frame: OnFrame | None
    """Called with each rendered (H, W, 3) RGB frame; nothing is rendered while it is None."""

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Start the episode of this seed; write the first observation to `out`.

        Raises:
            EnvCrashedError: the environment cannot start.
        """

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Take one decision; write the next observation to `out`, which stays as it is if the step crashed.

        Raises:
            EnvCrashedError: the environment keeps crashing.
        """

    def lives(self) -> int:
        """Lives left, 0 if the environment has none."""

    def close(self) -> None:
        """Free the emulator."""
