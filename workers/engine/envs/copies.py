"""Copies of an environment in the middle of an episode: each goes on exactly as the original would."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from workers.engine.envs.atari import AtariEnv
from workers.engine.envs.base import Action, Env, Step
from workers.engine.envs.forks import Forks
from workers.engine.envs.gymnasium_env import ClassicEnv
from workers.engine.envs.small import CatchEnv, MemoryEnv

_PYTHON_OBJECTS = (CatchEnv, ClassicEnv, MemoryEnv)
"""Environments whose whole state is in Python objects."""


class Copies(Protocol):
    """N environments that begin in one state and are stepped together."""

    observation_N: NDArray[Any]
    """The latest observation of each."""

    def step(self, numbers: Sequence[int], actions: Sequence[Action] | NDArray[Any]) -> list[Step]:
        """Take a decision in these copies, in their order."""

    def lives(self, number: int) -> int:
        """Lives left in a copy, 0 if the environment has none."""

    def close(self) -> None:
        """Free the copies."""


class LocalCopies:
    """Environments of this process."""

    def __init__(self, envs: Sequence[Env], observation: NDArray[Any]) -> None:
        """`envs` are in one state, which has this observation."""
        self._envs = envs
        self.observation_N = np.stack([observation] * len(envs))

    def step(self, numbers: Sequence[int], actions: Sequence[Action] | NDArray[Any]) -> list[Step]:
        """As `Copies.step`."""
        return [
            self._envs[k].step(action, self.observation_N[k])
            for k, action in zip(numbers, actions, strict=True)
        ]

    def lives(self, number: int) -> int:
        """As `Copies.lives`."""
        return self._envs[number].lives()

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()


def copies(env: Env, observation: NDArray[Any], n: int, sticky_seed: int) -> Copies | None:
    """The environment n times; None if its state cannot be copied exactly.

    The state of simulators outside of Python (MuJoCo, Box2D, ViZDoom) and of custom environments cannot be
    copied: their episodes have to be repeated from the beginning, once for each copy.

    Args:
        env: shows no frames; belongs to the copies from now on.
        observation: its latest one.
        n: at least 1.
        sticky_seed: copy k draws the repeated actions of an Atari game from the generator of this seed and k.
    """
    if isinstance(env, AtariEnv):
        game = env

        def before_fork(k: int) -> None:
            game.draw_sticky_actions(np.random.default_rng([sticky_seed, k]))

        return Forks(env, observation, n, before_fork)
    if isinstance(env, _PYTHON_OBJECTS):
        return LocalCopies([env, *(deepcopy(env) for _ in range(n - 1))], observation)
    return None
