"""What holds for every world: gymnasium's checker, determinism, and nothing left behind."""

import gc
import threading
from importlib.util import find_spec
from typing import Any

import numpy as np
import psutil
import pytest
from gymnasium.utils.env_checker import check_env

from backend.specs.environments import ENVIRONMENTS
from backend.specs.run import parse_run_spec
from tests.support.worlds import AsGymnasium, build
from workers.engine.envs import Box, World
from workers.engine.envs.mujoco import GL
from workers.engine.envs.vector import VectorWorld
from workers.engine.seeds import EpisodeSeeds

WORLDS = [
    "ALE/Pong-v5",
    "Labyrinth-Small-v0",
    "Racing-Slow-v0",
    "Racing-Fast-Continuous-v0",
    "HalfCheetah-v5",
    "Reacher-Pixels-v5",
    "CartPole-v1",
    "Acrobot-v1",
    "Pendulum-v1",
    "Catch-v0",
    "Memory-v0",
]


if find_spec("envpool"):
    WORLDS.append("CarRacing-v3")
if GL == "disable":
    WORLDS.remove("Reacher-Pixels-v5")  # no libEGL here

EVERY = [
    pytest.param(name, marks=[] if name in WORLDS else pytest.mark.long)
    for name in ENVIRONMENTS
    if name in WORLDS or (name != "CarRacing-v3" and not (GL == "disable" and name.endswith("-Pixels-v5")))
]
"""All that can be built here; more than one of a kind takes long."""


def random_action(world: World, rng: np.random.Generator) -> Any:
    space = world.action_space
    if isinstance(space, Box):
        return rng.uniform(space.low, space.high).astype(np.float32)
    return int(rng.integers(space.n))


def trajectory(world: World, seed: int, steps: int) -> list[Any]:
    """Observations and steps of one random player from this seed, over as many episodes as fit."""
    rng = np.random.default_rng(seed)
    observation = np.empty(world.observation_shape, world.observation_dtype)
    world.reset(seed, observation)
    seen: list[Any] = [observation.tobytes()]
    for _ in range(steps):
        step = world.step(random_action(world, rng), observation)
        seen += [observation.tobytes(), step]
        if step.ended:
            seed += 1
            world.reset(seed, observation)
            seen.append(observation.tobytes())
    return seen


@pytest.mark.parametrize("environment", EVERY)
# Its advice on bounds of Box spaces, and that no pictures are drawn, concern our view of the world alone.
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_gymnasiums_checker_passes(environment: str) -> None:
    env = AsGymnasium(environment)
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("environment", EVERY)
def test_same_seed_same_trajectory_whatever_came_before(environment: str) -> None:
    fresh, used = build(environment), build(environment)
    trajectory(used, 99, 150)
    first, again = trajectory(fresh, 5, 150), trajectory(used, 5, 150)
    other = trajectory(fresh, 6, 150)
    fresh.close()
    used.close()
    assert first == again
    assert first != other


@pytest.mark.long
@pytest.mark.parametrize("environment", WORLDS)
def test_a_batch_plays_as_each_world_does_alone(environment: str) -> None:
    continuous = ENVIRONMENTS[environment].actions == "continuous"
    request = {"algorithm": "a3c" if continuous else "paac", "environment": environment}
    spec = parse_run_spec(request | {"stop": {"agent_steps": 1}})
    seeds = EpisodeSeeds(3, range(3))
    batch = VectorWorld(spec, environments=3, processes=2, slots=1, next_seed=seeds.next)
    rng = np.random.default_rng(0)
    alone = [build(environment) for _ in range(3)]
    theirs = EpisodeSeeds(3, range(3))
    out = [np.empty(world.observation_shape, world.observation_dtype) for world in alone]
    batch.reset()
    for i, world in enumerate(alone):
        world.reset(theirs.next(i), out[i])
    for _ in range(150):
        np.testing.assert_array_equal(batch.shared.observation_SB[0], np.stack(out))
        actions = [random_action(world, rng) for world in alone]
        batch.step(np.stack(actions), 0)
        for i, (world, action) in enumerate(zip(alone, actions, strict=True)):
            step = world.step(action, out[i])
            assert batch.shared.reward_B[i] == np.float32(step.reward)
            assert batch.shared.terminal_B[i] == step.terminal
            if step.ended:
                world.reset(theirs.next(i), out[i])
    batch.close()
    for world in alone:
        world.close()


@pytest.mark.parametrize("environment", EVERY)
def test_the_catalogue_tells_the_truth(environment: str) -> None:
    told, world = ENVIRONMENTS[environment], build(environment)
    assert told.action_names == world.action_names
    assert told.observation_shape == world.observation_shape
    assert (told.actions == "continuous") is isinstance(world.action_space, Box)
    assert (told.observation == "pixels") is (world.observation_dtype == np.uint8)
    pictures: list[np.ndarray] = []
    world.on_frame = pictures.append
    observation = np.empty(world.observation_shape, world.observation_dtype)
    world.reset(0, observation)
    rng = np.random.default_rng(0)
    frames = sum(world.step(random_action(world, rng), observation).frames for _ in range(2))
    world.close()
    assert frames == 2 * told.frames_per_agent_step
    assert pictures
    assert all(picture.dtype == np.uint8 and picture.shape[2] == 3 for picture in pictures)


@pytest.mark.long
@pytest.mark.parametrize("environment", WORLDS)
def test_ten_thousand_random_steps_leave_nothing_behind(environment: str) -> None:
    me = psutil.Process()
    rng = np.random.default_rng(0)

    def held() -> tuple[int, int, int]:
        gc.collect()
        return me.num_fds(), threading.active_count(), len(me.children(recursive=True))

    def played(steps: int) -> int:
        world = build(environment)
        observation = np.empty(world.observation_shape, world.observation_dtype)
        world.reset(0, observation)
        for t in range(steps):
            if world.step(random_action(world, rng), observation).ended:
                world.reset(t, observation)
        world.close()
        gc.collect()
        return me.memory_info().rss

    played(200)  # what is loaded once, is
    before = held()
    rss = [played(steps) for steps in (2_500, 2_500, 2_500, 2_500)]
    assert held() == before
    assert rss[-1] - rss[0] < 4 * 2**20, rss
