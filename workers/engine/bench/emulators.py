"""How fast this machine's emulators are alone: random play, preprocessed in full."""

from contextlib import closing
from ctypes import Array, c_longlong

import numpy as np

from backend.specs.environments import ENVIRONMENTS
from workers.engine.bench.counted import counted
from workers.engine.bench.made import Made, Turns
from workers.engine.bench.plain_a2c import ale
from workers.engine.envs import make_world


def vector(environment: str, *, n_e: int, threads: int) -> Turns:
    """ale-py's own `AtariVectorEnv`."""
    rng, n_actions = np.random.default_rng(0), len(ENVIRONMENTS[environment].action_names)
    with closing(ale(environment, n_e, threads)) as envs:
        envs.reset()
        while True:
            envs.step(rng.integers(n_actions, size=n_e))
            yield Made(n_e)


def scalar(environment: str, *, processes: int) -> Turns:
    """Our own worlds, one in each process, for which nobody waits."""
    return counted(_play, processes, environment)


def _play(k: int, counts: "Array[c_longlong]", environment: str) -> None:
    world = make_world(environment, ENVIRONMENTS[environment].config())
    rng = np.random.default_rng(k)
    seeds = iter(range(k * 2**20, 2**32))
    observation = np.empty(world.observation_shape, world.observation_dtype)
    world.reset(next(seeds), observation)
    while True:
        for action in rng.integers(len(world.action_names), size=256).tolist():
            if world.step(action, observation).ended:
                world.reset(next(seeds), observation)
            counts[k] += 1
