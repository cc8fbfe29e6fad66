"""What holds for every environment: gymnasium's checker, determinism, and nothing left behind."""

import gc
import os
import threading
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import psutil
import pytest
from gymnasium.utils.env_checker import check_env

from backend.specs.environments import ENVIRONMENTS
from backend.specs.run import parse_run_spec
from tests.support.environments import AsGymnasium, build
from workers.engine.envs import Box, Env
from workers.engine.envs.mujoco import GL
from workers.engine.envs.vector import VectorEnv
from workers.engine.nn.seeds import EpisodeSeeds

ENVS = [
    "ALE/Pong-v5",
    "Labyrinth-Small-v0",
    "Racing-Slow-v0",
    "Racing-Fast-Continuous-v0",
    "Racing-Fast-Opponents-v0",
    "HalfCheetah-v5",
    "Reacher-Pixels-v5",
    "CartPole-v1",
    "Acrobot-v1",
    "Pendulum-v1",
    "Catch-v0",
    "Memory-v0",
]


if find_spec("envpool"):
    ENVS.append("CarRacing-v3")
if GL == "disable":
    ENVS.remove("Reacher-Pixels-v5")  # no libEGL here

EVERY = [
    pytest.param(name, marks=[] if name in ENVS else pytest.mark.long)
    for name in ENVIRONMENTS
    if name in ENVS or (name != "CarRacing-v3" and not (GL == "disable" and name.endswith("-Pixels-v5")))
]
"""All that can be built here; more than one of a kind takes long."""


def random_action(env: Env, rng: np.random.Generator) -> Any:
    space = env.action_space
    if isinstance(space, Box):
        return rng.uniform(space.low, space.high).astype(np.float32)
    return int(rng.integers(space.n))


def trajectory(env: Env, seed: int, steps: int) -> list[Any]:
    """Observations and steps of one random player from this seed, over as many episodes as fit."""
    rng = np.random.default_rng(seed)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(seed, observation)
    seen: list[Any] = [observation.tobytes()]
    for _ in range(steps):
        step = env.step(random_action(env, rng), observation)
        seen += [observation.tobytes(), step]
        if step.episode_over:
            seed += 1
            env.reset(seed, observation)
            seen.append(observation.tobytes())
    return seen


@pytest.mark.parametrize("environment", EVERY)
# Its warnings about Box bounds and missing frames concern only this wrapper.
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_env_passes_gymnasiums_checker(environment: str) -> None:
    env = AsGymnasium(environment)
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("environment", EVERY)
def test_same_seed_gives_the_same_trajectory(environment: str) -> None:
    fresh, used = build(environment), build(environment)
    trajectory(used, 99, 150)
    first, again = trajectory(fresh, 5, 150), trajectory(used, 5, 150)
    other = trajectory(fresh, 6, 150)
    fresh.close()
    used.close()
    assert first == again
    assert first != other


@pytest.mark.long
@pytest.mark.parametrize("environment", ENVS)
def test_vector_env_plays_as_each_environment_alone(environment: str) -> None:
    continuous = ENVIRONMENTS[environment].actions == "continuous"
    request = {"algorithm": "a3c" if continuous else "paac", "environment": environment}
    spec = parse_run_spec(request | {"stop": {"agent_steps": 1}})
    seeds = EpisodeSeeds(3, range(3))
    batch = VectorEnv(spec, environments=3, processes=2, slots=1, next_seed=seeds.next)
    rng = np.random.default_rng(0)
    alone = [build(environment) for _ in range(3)]
    theirs = EpisodeSeeds(3, range(3))
    out = [np.empty(env.observation_shape, env.observation_dtype) for env in alone]
    batch.reset()
    for i, env in enumerate(alone):
        env.reset(theirs.next(i), out[i])
    for _ in range(150):
        np.testing.assert_array_equal(batch.shared.observation_SB[0], np.stack(out))
        actions = [random_action(env, rng) for env in alone]
        batch.step(np.stack(actions), 0)
        for i, (env, action) in enumerate(zip(alone, actions, strict=True)):
            step = env.step(action, out[i])
            assert batch.shared.reward_B[i] == np.float32(step.reward)
            assert batch.shared.terminated_B[i] == step.terminated
            if step.episode_over:
                env.reset(theirs.next(i), out[i])
    batch.close()
    for env in alone:
        env.close()


@pytest.mark.parametrize("environment", EVERY)
def test_catalogue_matches_every_environment(environment: str) -> None:
    entry, env = ENVIRONMENTS[environment], build(environment)
    assert entry.action_names == env.action_names
    assert entry.observation_shape == env.observation_shape
    assert (entry.actions == "continuous") is isinstance(env.action_space, Box)
    assert (entry.observation == "pixels") is (env.observation_dtype == np.uint8)
    images: list[np.ndarray] = []
    env.on_frame = images.append
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(0, observation)
    rng = np.random.default_rng(0)
    frames = sum(env.step(random_action(env, rng), observation).frames for _ in range(2))
    env.close()
    assert frames == 2 * entry.frames_per_agent_step
    assert images
    assert all(image.dtype == np.uint8 and image.shape[2] == 3 for image in images)


@pytest.mark.long
@pytest.mark.parametrize("environment", ENVS)
def test_10000_random_steps_leak_nothing(environment: str) -> None:
    me = psutil.Process()
    rng = np.random.default_rng(0)

    def held() -> set[str]:
        gc.collect()
        resources = {f"file {fd}" for fd in os.listdir("/proc/self/fd")}
        resources |= {f"thread {thread.ident}" for thread in threading.enumerate()}
        # Not their children: the browser of other tests in this process starts some when it likes.
        return resources | {f"process {child.pid}" for child in me.children()}

    def played(steps: int) -> int:
        env = build(environment)
        observation = np.empty(env.observation_shape, env.observation_dtype)
        env.reset(0, observation)
        for t in range(steps):
            if env.step(random_action(env, rng), observation).episode_over:
                env.reset(t, observation)
        env.close()
        gc.collect()
        return me.memory_info().rss

    played(200)  # what is loaded once, is
    before = held()
    rss = [played(steps) for steps in (2_500, 2_500, 2_500, 2_500)]
    # What a test before has left may end meanwhile.
    assert held() <= before
    # Of a leak each part of the steps has its share; the allocator and the kernel take some at once.
    assert 3 * min(after - earlier for earlier, after in pairwise(rss)) < 4 * 2**20, rss
