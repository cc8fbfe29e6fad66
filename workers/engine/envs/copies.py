"""Copies of an environment in the middle of an episode: each goes on exactly as the original would."""

from collections.abc import Callable
from copy import deepcopy

import numpy as np

from workers.engine.envs.atari import AtariEnv
from workers.engine.envs.base import Env
from workers.engine.envs.gymnasium_env import ClassicEnv
from workers.engine.envs.small import CatchEnv, MemoryEnv

_PYTHON_OBJECTS = (CatchEnv, ClassicEnv, MemoryEnv)
"""Environments whose whole state is in Python objects."""


def copies(env: Env, build: Callable[[], Env], n: int) -> list[Env] | None:
    """The environment and n - 1 copies of it; None if its state cannot be copied exactly.

    That of simulators outside of Python (MuJoCo, Box2D, ViZDoom) and of custom environments cannot: their
    episodes have to be repeated from the beginning, once for each copy.

    Args:
        env: shows no frames.
        build: creates another such environment.
        n: at least 1.
    """
    if isinstance(env, AtariEnv):
        snapshot = env.snapshot()
        observation = np.empty(env.observation_shape, env.observation_dtype)
        games: list[Env] = [env]
        for _ in range(n - 1):
            game = build()
            assert isinstance(game, AtariEnv)
            game.restore_snapshot(snapshot, observation)
            games.append(game)
        return games
    if isinstance(env, _PYTHON_OBJECTS):
        return [env, *(deepcopy(env) for _ in range(n - 1))]
    return None
