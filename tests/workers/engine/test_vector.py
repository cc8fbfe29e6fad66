"""Vectorised worlds: the same whatever steps them."""

from collections import defaultdict

import gymnasium
import numpy as np
import pytest

from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.envs import Box
from workers.engine.envs.vector import FinishedEpisode, VectorWorld, WorldDiedError
from workers.engine.seeds import EpisodeSeeds


def spec(environment: str = "CartPole-v1", **environment_config: int) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": "paac",
            "environment": environment,
            "stop": {"agent_steps": 1},
            "environment_config": environment_config,
        }
    )


def play(processes: int, steps: int) -> tuple[list[np.ndarray], list[FinishedEpisode]]:
    seeds = EpisodeSeeds(11, range(5))
    world = VectorWorld(spec(), environments=5, processes=processes, slots=2, next_seed=seeds.next)
    try:
        world.reset()
        rng = np.random.default_rng(0)
        seen, finished = [world.shared.observation_SB[0].copy()], []
        for t in range(steps):
            slot = (t + 1) % 2
            finished += world.step(rng.integers(2, size=5), slot)
            seen.append(world.shared.observation_SB[slot].copy())
    finally:
        world.close()
    return seen, finished


def test_processes_change_nothing() -> None:
    seen, finished = play(0, 120)
    assert len(finished) > 10
    for processes in (1, 2, 5):
        others, episodes = play(processes, 120)
        np.testing.assert_array_equal(np.stack(others), np.stack(seen))
        assert episodes == finished


def test_episodes_are_told_whole_and_begin_with_their_seeds() -> None:
    _, finished = play(0, 300)
    by_environment = defaultdict(list)
    for episode in finished:
        assert episode.episode_return == episode.length_steps == episode.length_frames
        by_environment[episode.environment].append(episode.seed)
    for environment, played in by_environment.items():
        expected = EpisodeSeeds(11, range(5))
        assert played == [expected.next(environment) for _ in played]


def test_the_last_observation_of_a_cut_off_episode_is_kept() -> None:
    world = VectorWorld(
        spec(max_episode_agent_steps=5), environments=2, processes=0, slots=1, next_seed=lambda i: i
    )
    world.reset()
    for _ in range(4):
        assert world.step(np.array([0, 1]), 0) == []
    before = world.shared.observation_SB[0].copy()
    assert len(world.step(np.array([1, 0]), 0)) == 2
    assert world.shared.truncated_B.all()
    assert not world.shared.terminal_B.any()
    # One step of the pole from where it was, not the start of the next episode.
    assert np.abs(world.shared.final_observation_B - before).max() < 0.5
    assert np.abs(world.shared.observation_SB[0]).max() < 0.06
    world.close()


def test_an_environment_can_rest() -> None:
    world = VectorWorld(spec(), environments=2, processes=0, slots=1, next_seed=lambda i: i)
    world.reset()
    before = world.shared.observation_SB[0].copy()
    world.step(np.array([0, 1]), 0, np.array([False, True]))
    np.testing.assert_array_equal(world.shared.observation_SB[0, 0], before[0])
    assert (world.shared.observation_SB[0, 1] != before[1]).any()
    world.close()


def test_a_dead_process_is_noticed() -> None:
    world = VectorWorld(spec(), environments=2, processes=2, slots=1, next_seed=lambda i: i)
    world.reset()
    world._processes[1].kill()
    world._processes[1].wait()
    with pytest.raises(WorldDiedError):
        world.step(np.array([0, 0]), 0)
    world.close()


@pytest.mark.parametrize("processes", [0, 2])
def test_continuous_actions_reach_the_worlds_as_they_are(processes: int) -> None:
    request = {"algorithm": "a3c", "environment": "Pendulum-v1", "stop": {"agent_steps": 1}}
    world = VectorWorld(
        parse_run_spec(request), environments=3, processes=processes, slots=1, next_seed=lambda i: i
    )
    assert world.action_space == Box((-2.0,), (2.0,))
    world.reset()
    actions = np.random.default_rng(3).normal(0, 3, (200, 3, 1)).astype(np.float32)
    rewards = []
    for action_B in actions:
        world.step(action_B, 0)
        rewards.append(world.shared.reward_B.copy())
    assert world.shared.ended_B.all()
    world.close()
    reference = gymnasium.make("Pendulum-v1")
    reference.reset(seed=1)
    alone = [float(reference.step(np.clip(action[1], -2, 2))[1]) for action in actions]
    np.testing.assert_array_equal(np.stack(rewards)[:, 1], np.float32(alone))
