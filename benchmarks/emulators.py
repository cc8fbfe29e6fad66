"""Speed of this machine's emulators alone: random play with full preprocessing."""

from contextlib import closing
from ctypes import Array, c_longlong

import numpy as np

from backend.specs.environments import ENVIRONMENTS
from benchmarks.plain_a2c import ale
from benchmarks.rows import RowGenerator, RowProgress
from benchmarks.step_counter import count_agent_steps
from workers.engine.envs import make_env


def vector(environment: str, *, n_e: int, threads: int) -> RowGenerator:
    """ale-py's `AtariVectorEnv`."""
    rng, n_actions = np.random.default_rng(0), len(ENVIRONMENTS[environment].action_names)
    with closing(ale(environment, n_e, threads)) as envs:
        envs.reset()
        while True:
            envs.step(rng.integers(n_actions, size=n_e))
            yield RowProgress(n_e)


def scalar(environment: str, *, processes: int) -> RowGenerator:
    """Callboard's environments, one per process, without synchronisation."""
    return count_agent_steps(_play, processes, environment)


def _play(k: int, counts: "Array[c_longlong]", environment: str) -> None:
    env = make_env(environment, ENVIRONMENTS[environment].config())
    rng = np.random.default_rng(k)
    seeds = iter(range(k * 2**20, 2**32))
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(next(seeds), observation)
    while True:
        for action in rng.integers(len(env.action_names), size=256).tolist():
            if env.step(action, observation).episode_over:
                env.reset(next(seeds), observation)
            counts[k] += 1
