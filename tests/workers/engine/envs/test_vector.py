"""Vectorised environments: the same whatever steps them."""

import socket
from collections import defaultdict
from typing import Any

import gymnasium
import numpy as np
import pytest

from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.envs import Box
from workers.engine.envs.vector import FinishedEpisode, VectorEnv
from workers.engine.nn.seeds import EpisodeSeeds
from workers.engine.processes.child import ChildDiedError


def spec(environment: str = "CartPole-v1", **environment_config: int) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": "paac",
            "environment": environment,
            "stop": {"agent_steps": 1},
            "environment_config": environment_config,
        }
    )


def play(
    processes: int, steps: int, *, B: int = 5, groups: int = 1
) -> tuple[list[np.ndarray], list[FinishedEpisode]]:
    seeds = EpisodeSeeds(11, range(B))
    env = VectorEnv(spec(), environments=B, processes=processes, slots=2, next_seed=seeds.next, groups=groups)
    try:
        env.reset()
        rng = np.random.default_rng(0)
        seen, finished = [env.shared.observation_SB[0].copy()], []
        for t in range(steps):
            slot = (t + 1) % 2
            finished += env.step(rng.integers(2, size=B), slot)
            seen.append(env.shared.observation_SB[slot].copy())
    finally:
        env.close()
    return seen, finished


@pytest.mark.service
def test_vector_env_is_the_same_with_processes() -> None:
    seen, finished = play(0, 120)
    assert len(finished) > 10
    for processes in (1, 2, 5):
        others, episodes = play(processes, 120)
        np.testing.assert_array_equal(np.stack(others), np.stack(seen))
        assert episodes == finished


@pytest.mark.service
def test_vector_env_is_the_same_in_groups() -> None:
    seen, finished = play(0, 120, B=6)
    for processes, groups in ((0, 2), (2, 2), (2, 3), (6, 3)):
        others, episodes = play(processes, 120, B=6, groups=groups)
        np.testing.assert_array_equal(np.stack(others), np.stack(seen))
        assert episodes == finished


class CountingSocket:
    """A socket that counts what is sent through it."""

    messages = 0

    def __init__(self, wrapped: socket.socket) -> None:
        self._wrapped = wrapped

    def sendall(self, content: bytes) -> None:
        CountingSocket.messages += 1
        self._wrapped.sendall(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


@pytest.mark.service
def test_one_message_to_each_process_steps_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    socketpair = socket.socketpair

    def counted() -> tuple[Any, socket.socket]:
        mine, theirs = socketpair()
        return CountingSocket(mine), theirs

    monkeypatch.setattr(socket, "socketpair", counted)
    env = VectorEnv(spec(), environments=12, processes=2, slots=1, next_seed=lambda i: i, groups=2)
    env.reset()
    CountingSocket.messages = 0
    for _ in range(10):
        env.step(np.zeros(12, np.int64), 0)
    env.close()
    n_steps, n_groups, n_processes = 10, 2, 2
    assert CountingSocket.messages == n_steps * n_groups * n_processes


def test_one_group_steps_while_the_other_rests() -> None:
    env = VectorEnv(spec(), environments=4, processes=0, slots=1, next_seed=lambda i: i, groups=2)
    env.reset()
    before = env.shared.observation_SB[0].copy()
    env.begin_step(np.array([0, 1]), 0, 1)
    assert env.finish_step(1) == []
    np.testing.assert_array_equal(env.shared.observation_SB[0, :2], before[:2])
    assert (env.shared.observation_SB[0, 2:] != before[2:]).any(-1).all()
    env.close()


def test_groups_of_different_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="groups: 5 environments"):
        VectorEnv(spec(), environments=5, processes=0, slots=1, next_seed=lambda i: i, groups=2)


def test_finished_episodes_carry_seed_return_and_length() -> None:
    _, finished = play(0, 300)
    by_environment = defaultdict(list)
    for episode in finished:
        assert episode.episode_return == episode.length_steps == episode.length_frames
        by_environment[episode.environment].append(episode.seed)
    for environment, played in by_environment.items():
        expected = EpisodeSeeds(11, range(5))
        assert played == [expected.next(environment) for _ in played]


def test_final_observation_of_a_truncated_episode_is_kept() -> None:
    env = VectorEnv(
        spec(max_episode_agent_steps=5), environments=2, processes=0, slots=1, next_seed=lambda i: i
    )
    env.reset()
    for _ in range(4):
        assert env.step(np.array([0, 1]), 0) == []
    before = env.shared.observation_SB[0].copy()
    assert len(env.step(np.array([1, 0]), 0)) == 2
    assert env.shared.truncated_B.all()
    assert not env.shared.terminated_B.any()
    # One step of the pole from where it was, not the start of the next episode.
    assert np.abs(env.shared.final_observation_B - before).max() < 0.5
    assert np.abs(env.shared.observation_SB[0]).max() < 0.06
    env.close()


def test_inactive_environments_are_not_stepped() -> None:
    env = VectorEnv(spec(), environments=2, processes=0, slots=1, next_seed=lambda i: i)
    env.reset()
    before = env.shared.observation_SB[0].copy()
    env.step(np.array([0, 1]), 0, np.array([False, True]))
    np.testing.assert_array_equal(env.shared.observation_SB[0, 0], before[0])
    assert (env.shared.observation_SB[0, 1] != before[1]).any()
    env.close()


@pytest.mark.service
def test_step_raises_after_a_process_died() -> None:
    env = VectorEnv(spec(), environments=2, processes=2, slots=1, next_seed=lambda i: i)
    env.reset()
    env.children[1].process.kill()
    env.children[1].join()
    with pytest.raises(ChildDiedError):
        env.step(np.array([0, 0]), 0)
    env.close()


@pytest.mark.service
@pytest.mark.parametrize("processes", [0, 2])
def test_continuous_actions_reach_the_environments_unchanged(processes: int) -> None:
    request = {"algorithm": "a3c", "environment": "Pendulum-v1", "stop": {"agent_steps": 1}}
    env = VectorEnv(
        parse_run_spec(request), environments=3, processes=processes, slots=1, next_seed=lambda i: i
    )
    assert env.action_space == Box((-2.0,), (2.0,))
    env.reset()
    actions = np.random.default_rng(3).normal(0, 3, (200, 3, 1)).astype(np.float32)
    rewards = []
    for action_B in actions:
        env.step(action_B, 0)
        rewards.append(env.shared.reward_B.copy())
    assert env.shared.episode_over_B.all()
    env.close()
    reference = gymnasium.make("Pendulum-v1")
    reference.reset(seed=1)
    alone = [float(reference.step(np.clip(action[1], -2, 2))[1]) for action in actions]
    np.testing.assert_array_equal(np.stack(rewards)[:, 1], np.array(alone, np.float32))
