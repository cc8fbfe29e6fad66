"""Speed of environments: single, batched, and compared with gymnasium's and EnvPool's.

All rates are agent steps per second of random play; episodes are reset as they end.
"""

import os
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np

from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.envs import Box, make_env
from workers.engine.envs.vector import VectorEnv

ENVS = (
    "ALE/Pong-v5",
    "Labyrinth-Small-v0",
    "Racing-Fast-v0",
    "HalfCheetah-v5",
    "HalfCheetah-Pixels-v5",
    "CartPole-v1",
    "Catch-v0",
)
"""One of each kind."""
BATCH = 16
MEASURE_S = 1.0
WARM_UP_STEPS = 20

_ENVPOOL = {"ALE/Pong-v5": "Pong-v5", "Racing-Fast-v0": "CarRacing-v3", "CartPole-v1": "CartPole-v1"}
_REPEAT = {"Racing-Fast-v0": 4}
"""Steps of the other library's environment per decision of ours, where it does not repeat actions."""


def measure(environment: str) -> dict[str, float]:
    """Rates: `single` and `batched` of ours, `gymnasium` and `envpool` of theirs.

    `batched` is missing if no algorithm supports the environment; theirs if they do not have it.
    """
    rates = {"single": _single(environment)}
    if (spec := _spec(environment)) is not None:
        rates["batched"] = _batched(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice about their spaces
        if (rate := _gymnasium(environment)) is not None:
            rates["gymnasium"] = rate
        with suppress(ImportError):
            if environment in _ENVPOOL:
                rates["envpool"] = _envpool(environment)
    return rates


def _rate(step: Callable[[], None], agent_steps: float) -> float:
    for _ in range(WARM_UP_STEPS):
        step()
    started, n, spent = time.perf_counter(), 0, 0.0
    while spent < MEASURE_S:
        step()
        n += 1
        spent = time.perf_counter() - started
    return n * agent_steps / spent


def _single(environment: str) -> float:
    env = make_env(environment, ENVIRONMENTS[environment].config())
    space, rng = env.action_space, np.random.default_rng(0)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(0, observation)

    def step() -> None:
        action: Any = rng.uniform(space.low, space.high) if isinstance(space, Box) else rng.integers(space.n)
        if env.step(action, observation).episode_over:
            env.reset(0, observation)

    try:
        return _rate(step, 1)
    finally:
        env.close()


def _batched(spec: RunSpec) -> float:
    cores = len(os.sched_getaffinity(0))
    env = VectorEnv(
        spec,
        environments=BATCH,
        processes=cores,
        slots=1,
        next_seed=lambda i: i,
    )
    space, rng = env.action_space, np.random.default_rng(0)
    env.reset()

    def step() -> None:
        if isinstance(space, Box):
            env.step(rng.uniform(space.low, space.high, (BATCH, *space.shape)), 0)
        else:
            env.step(rng.integers(space.n, size=BATCH), 0)

    try:
        return _rate(step, BATCH)
    finally:
        env.close()


def _spec(environment: str) -> RunSpec | None:
    """A run of any algorithm that supports the environment."""
    env = ENVIRONMENTS[environment]
    for algorithm in ALGORITHMS.values():
        if env.observation in algorithm.observations and env.actions in algorithm.actions:
            request = {"algorithm": algorithm.id, "environment": environment, "stop": {"agent_steps": 1}}
            return parse_run_spec(request)
    return None


def _gymnasium(environment: str) -> float | None:
    """The same environment from gymnasium, with the same preprocessing where possible."""
    if environment.startswith("ALE/"):
        from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

        env: gymnasium.Env[Any, Any] = gymnasium.make(environment, frameskip=1, repeat_action_probability=0)
        env = FrameStackObservation(AtariPreprocessing(env), 4)
    elif environment.startswith("Racing-"):
        env = gymnasium.make("CarRacing-v3", continuous=False)
    elif environment.endswith("-Pixels-v5"):
        env = gymnasium.make(environment.replace("-Pixels", ""), render_mode="rgb_array", width=84, height=84)
        env = gymnasium.wrappers.AddRenderObservation(env)
    elif environment in gymnasium.registry:
        env = gymnasium.make(environment)
    else:
        return None
    env.action_space.seed(0)
    env.reset(seed=0)

    def step() -> None:
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()

    try:
        return _rate(step, 1 / _REPEAT.get(environment, 1))
    finally:
        env.close()


def _envpool(environment: str) -> float:
    import envpool

    pool = envpool.make_gymnasium(
        _ENVPOOL[environment], num_envs=BATCH, num_threads=len(os.sched_getaffinity(0)), seed=0
    )
    pool.reset()
    rng, space = np.random.default_rng(0), pool.action_space

    def step() -> None:
        if isinstance(space, gymnasium.spaces.Box):
            pool.step(rng.uniform(space.low, space.high, (BATCH, *space.shape)).astype(space.dtype))
        else:
            pool.step(rng.integers(space.n, size=BATCH).astype(np.int32))

    try:
        return _rate(step, BATCH / _REPEAT.get(environment, 1))
    finally:
        pool.close()
