"""The one interface to every world: seeded episodes, one action at a time, a picture for people."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

OnFrame = Callable[[NDArray[np.uint8]], None]

Action = Any
"""What one decision is: the index of a discrete action, or (D,) float32 in a `Box`."""


@dataclass(frozen=True, slots=True)
class Discrete:
    """One of n actions."""

    n: int


@dataclass(frozen=True, slots=True)
class Box:
    """D numbers at once, each within its bounds; a world takes what lies outside for the bound."""

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
    """What one decision led to."""

    reward: float
    """True, unclipped."""
    terminal: bool
    """Nothing that follows counts for learning (the episode's real end, or a lost life if so set)."""
    ended: bool
    """The episode is over: `reset` comes next."""
    truncated: bool
    """The episode was cut off: what would have followed still has a value."""
    frames: int
    """Emulator frames that passed."""
    crashed: bool = False
    """The world broke instead: the episode, which is over, counts for nothing, and `reset` begins anew."""


class WorldCrashedError(RuntimeError):
    """An environment broke, and breaks again and again."""


MAX_CRASHES = 3


class Crashes:
    """What becomes of a world that breaks: a lost episode, unless it breaks again and again."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def lost_episode(self, error: WorldCrashedError) -> Step:
        """The step in which it broke.

        Raises:
            WorldCrashedError: it has broken `MAX_CRASHES` times without finishing an episode in between.
        """
        self._in_a_row += 1
        if self._in_a_row >= MAX_CRASHES:
            raise error
        return Step(reward=0.0, terminal=True, ended=True, truncated=False, frames=0, crashed=True)

    def finished_episode(self) -> None:
        """It works."""
        self._in_a_row = 0


class World(Protocol):
    """One environment. An episode is wholly determined by its seed and its actions."""

    observation_shape: tuple[int, ...]
    """(H, W, C) of uint8 pixels, or (D,) of float32."""
    observation_dtype: np.dtype[Any]
    action_space: ActionSpace
    action_names: tuple[str, ...]
    """Of each discrete action, or of each of the D numbers."""
    frames_per_second: float
    """Pace of `on_frame` pictures at normal speed."""
    on_frame: OnFrame | None
    """Called with each (H, W, 3) RGB picture while set; costs nothing while it is None."""

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Begin the episode of this seed; write the first observation to `out`.

        Raises:
            WorldCrashedError: the world cannot be begun.
        """

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Take one decision; write the next observation to `out`.

        Raises:
            WorldCrashedError: the world breaks again and again.
        """

    def lives(self) -> int:
        """Lives left, 0 where the world has none."""

    def close(self) -> None:
        """Free the emulator."""
