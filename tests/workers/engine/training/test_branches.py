"""Continuations of a recorded episode, against a simulation of each from the beginning."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backend.specs.branches import BranchOutcome, BranchPlan
from backend.specs.environments.atari import AtariConfig
from backend.specs.run import RunSpec
from tests.workers.engine.training.recorded_episodes import (
    SEED,
    Played,
    policies_of,
    record,
    simulate,
    spec_of,
)
from workers.engine.envs import make_env
from workers.engine.envs.atari import AtariEnv
from workers.engine.envs.copies import copies
from workers.engine.envs.forks import Forks
from workers.engine.envs.small import CatchEnv
from workers.engine.nn.policies import PolicyWithMemory
from workers.engine.training import branches, emulator_states
from workers.engine.training.branches import play_continuations
from workers.engine.training.emulator_states import EmulatorStates
from workers.engine.training.restore import ReplayMismatchError, environment_of_episode


def _branch(spec: RunSpec, file: Path, plan: BranchPlan, **options: Any) -> BranchOutcome:
    reader, actor = policies_of(spec, [plan.seed, plan.seed])
    return play_continuations(spec, file, (reader, actor), plan, **options)


def _simulate(spec: RunSpec, actions: Sequence[Any], plan: BranchPlan, group: int) -> Played:
    [policy] = policies_of(spec, [plan.seed])
    return simulate(spec, policy, SEED, actions, plan, group)


def _as_played(outcome: BranchOutcome) -> Played:
    return [(line.rewards, line.end, line.last_value) for line in outcome.continuations]


LSTM = {"network": "mlp", "recurrent": True, "n_actors": 1}


@pytest.mark.parametrize(
    ("algorithm", "environment", "config", "settings", "plan"),
    [
        ("a3c", "Memory-v0", LSTM, {"delay_agent_steps": 9}, {"decision": 5, "horizon": 3}),
        ("a3c", "Memory-v0", LSTM, {"delay_agent_steps": 9}, {"decision": 5, "horizon": 20}),
        ("paac", "Catch-v0", {"network": "compact"}, {}, {"decision": 4, "horizon": 4, "first_action": 0}),
        ("paac", "CartPole-v1", {"network": "mlp"}, {}, {"decision": 3, "horizon": 60}),
        ("a3c", "InvertedPendulum-v5", {"n_actors": 1}, {}, {"decision": 2, "horizon": 30}),
    ],
)
def test_continuations_are_those_of_a_simulation_from_the_beginning(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    algorithm: str,
    environment: str,
    config: dict[str, Any],
    settings: dict[str, Any],
    plan: dict[str, Any],
) -> None:
    monkeypatch.setattr(branches, "MAX_REPEATED", 4)
    spec = spec_of(algorithm, environment, config, **settings)
    is_continuous = environment.startswith("Inverted")
    rng = np.random.default_rng(0)

    def choose(t: int) -> Any:
        return rng.normal(size=1).astype(np.float32) * 0.1 if is_continuous else int(rng.integers(2))

    file = tmp_path / "r.npz"
    actions = record(spec, file, 6, choose)
    wanted = BranchPlan(continuations=6, seed=11, **plan)
    outcome = _branch(spec, file, wanted)
    simulated = _simulate(spec, actions, wanted, group=4 if is_continuous else 6)
    assert _as_played(outcome) == simulated
    assert len({tuple(rewards) for rewards, _, _ in simulated}) > 1 or plan["horizon"] < 5
    assert _as_played(_branch(spec, file, wanted)) == simulated, "the same seed, the same fan"
    assert all(line.n_valued == len(line.rewards) for line in outcome.continuations)


def test_memory_of_the_episode_is_carried_into_every_continuation(tmp_path: Path) -> None:
    spec = spec_of("a3c", "Memory-v0", LSTM, delay_agent_steps=9)
    file = tmp_path / "r.npz"
    actions = record(spec, file, 6, lambda t: t % 2)
    plan = BranchPlan(decision=5, continuations=3, horizon=1, seed=11)
    reader, actor = policies_of(spec, [0, 0])
    read: list[NDArray[Any]] = []
    assert isinstance(actor, PolicyWithMemory)
    remember = actor.remember
    memories: list[Any] = []

    def kept(environment: int, memory: Any) -> None:
        memories.append(memory)
        remember(environment, memory)

    actor.remember = kept  # type: ignore[method-assign]
    outcome = play_continuations(spec, file, (reader, actor), plan)

    [alone] = policies_of(spec, [0])
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(SEED, observation)
    for action in actions[:5]:
        alone.act(observation[None], np.array([0]))
        read.append(observation.copy())
        env.step(action, observation)
    assert isinstance(alone, PolicyWithMemory)
    expected = alone.memory(0)
    assert len(memories) == 3
    for memory in memories:
        assert all(torch.equal(part, wanted) for part, wanted in zip(memory, expected, strict=True))
    _, value_N, policy_NA = alone.act(observation[None], np.array([0]))
    assert outcome.value == value_N[0]
    assert outcome.policy == policy_NA[0].tolist()


def test_value_of_a_forced_first_action_is_its_q(tmp_path: Path) -> None:
    spec = spec_of("one_step_q", "Catch-v0", {"network": "compact", "n_actors": 1})
    file = tmp_path / "r.npz"
    record(spec, file, 4, lambda t: 1)
    free = _branch(spec, file, BranchPlan(decision=2, continuations=2, horizon=2, seed=0), action_values=True)
    assert free.value == max(free.policy)
    for action in range(3):
        plan = BranchPlan(decision=2, continuations=2, horizon=2, seed=0, first_action=action)
        forced = _branch(spec, file, plan, action_values=True)
        assert forced.policy == free.policy
        assert forced.value == free.policy[action]


def test_decision_that_the_episode_lacks_is_an_error(tmp_path: Path) -> None:
    spec = spec_of("paac", "Catch-v0", {"network": "compact"})
    file = tmp_path / "r.npz"
    record(spec, file, 4, lambda t: 1)
    with pytest.raises(ValueError, match="has 4 decisions"):
        _branch(spec, file, BranchPlan(decision=5, continuations=2, horizon=2, seed=0))
    with np.load(file) as data:
        changed = dict(data) | {"rewards": np.ones(4, np.float32)}
    np.savez(file, **changed)
    with pytest.raises(ReplayMismatchError):
        _branch(spec, file, BranchPlan(decision=2, continuations=2, horizon=2, seed=0))


@pytest.mark.long
@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_continuations_of_an_atari_game_are_those_of_a_simulation_from_power_on(
    tmp_path: Path, sticky: float
) -> None:
    spec = spec_of("paac", "ALE/Breakout-v5", {"network": "nips"}, sticky_actions=sticky)
    rng = np.random.default_rng(0)
    file = tmp_path / "r.npz"
    actions = record(spec, file, 60, lambda t: int(rng.integers(4)))
    plan = BranchPlan(decision=50, continuations=5, horizon=150, seed=2)
    outcome = _branch(spec, file, plan)
    assert _as_played(outcome) == _simulate(spec, actions, plan, group=5)
    assert len({tuple(line.rewards) for line in outcome.continuations}) > 1


@pytest.mark.long
def test_fan_from_an_emulator_state_of_the_episode_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulator_states, "INTERVAL_FRAMES", 80)
    monkeypatch.setattr(emulator_states, "MIN_FRAMES", 160)
    spec = spec_of("paac", "ALE/Breakout-v5", {"network": "nips"})
    file, states = tmp_path / "r.npz", tmp_path / "states.npz"
    record(spec, file, 60, lambda t: t % 4)
    env, episode = environment_of_episode(spec, file, None)
    assert isinstance(env, AtariEnv)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(SEED, observation)
    kept = EmulatorStates(env)
    for t in range(60):
        kept.add(t + 1, episode.repeat(env, t, observation).frames)
    assert kept.save(states)
    plan = BranchPlan(decision=50, continuations=3, horizon=60, seed=2)
    with np.load(file) as data:
        changed = dict(data) | {"rewards": np.full(60, 9, np.float32)}
        changed["rewards"][40:] = data["rewards"][40:]
    unread = tmp_path / "unread.npz"
    np.savez(unread, **changed)  # what comes before the state is not repeated
    assert _branch(spec, unread, plan, states=states) == _branch(spec, file, plan)


@pytest.mark.long
def test_value_of_an_agent_of_single_lives_predicts_up_to_a_lost_life(tmp_path: Path) -> None:
    spec = spec_of("paac", "ALE/Breakout-v5", {"network": "nips"})
    file = tmp_path / "r.npz"
    record(spec, file, 30, lambda t: 1)
    plan = BranchPlan(decision=20, continuations=4, horizon=150, seed=2)
    whole, cut = _branch(spec, file, plan), _branch(spec, file, plan, value_is_per_life=True)
    assert [line.rewards for line in whole.continuations] == [line.rewards for line in cut.continuations]
    assert all(line.n_valued == 150 and line.last_value is not None for line in whole.continuations)
    assert all(line.n_valued < 150 and line.last_value is None for line in cut.continuations)


def test_life_that_is_won_ends_nothing_and_can_be_lost_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of("paac", "Catch-v0", {"network": "compact"})
    file = tmp_path / "r.npz"
    record(spec, file, 4, lambda t: 1)
    lives = iter((3, 4, 4, 3, 3, 3))
    monkeypatch.setattr(CatchEnv, "lives", lambda env: next(lives))
    plan = BranchPlan(decision=2, continuations=1, horizon=5, seed=0)
    [line] = _branch(spec, file, plan, value_is_per_life=True).continuations
    assert (line.n_valued, line.last_value) == (3, None)


@pytest.fixture
def one_core() -> Iterator[None]:
    """Run on one core, with one thread."""
    cores, threads = os.sched_getaffinity(0), torch.get_num_threads()
    os.sched_setaffinity(0, {min(cores)})
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    os.sched_setaffinity(0, cores)


def _space_invaders() -> AtariEnv:
    return AtariEnv("ALE/SpaceInvaders-v5", AtariConfig(sticky_actions=0.25))


@pytest.mark.service
def test_copied_atari_games_go_on_bit_for_bit_like_those_of_power_on() -> None:
    rng = np.random.default_rng(0)
    before = rng.integers(6, size=40).tolist()
    alone = [_space_invaders() for _ in range(3)]
    observations = [np.empty(env.observation_shape, env.observation_dtype) for env in alone]
    for k, (env, observation) in enumerate(zip(alone, observations, strict=True)):
        env.reset(SEED, observation)
        for action in before:
            env.step(action, observation)
        env.draw_sticky_actions(np.random.default_rng([7, k]))
    original = _space_invaders()
    observation = observations[0].copy()
    original.reset(SEED, observation)
    for action in before:
        original.step(action, observation)
    games = copies(original, observation, 3, 7)
    assert isinstance(games, Forks)
    with closing(games):
        assert [games.lives(k) for k in range(3)] == [env.lives() for env in alone] == [3, 3, 3]
        for _ in range(60):  # each takes its own actions, not all at every decision, in any order
            acting = rng.permutation(3)[: rng.integers(1, 4)].tolist()
            actions = rng.integers(6, size=len(acting)).tolist()
            steps = games.step(acting, actions)
            for k, action, step in zip(acting, actions, steps, strict=True):
                assert step == alone[k].step(action, observations[k])
                assert games.lives(k) == alone[k].lives()
            np.testing.assert_array_equal(games.observation_N, observations)


@pytest.mark.benchmark
@pytest.mark.parametrize("maximum", ["luminance", "rgb"])
@pytest.mark.parametrize("game", ["Pong", "Breakout"])
def test_time_of_a_branch_on_one_core(tmp_path: Path, one_core: None, game: str, maximum: str) -> None:
    """32 continuations of 500 decisions with `nips`. For an idle machine only."""
    spec = spec_of("paac", f"ALE/{game}-v5", {"network": "nips"}, frame_maximum=maximum)
    file = tmp_path / "r.npz"
    record(spec, file, 12, lambda t: 1)
    plan = BranchPlan(decision=10, continuations=32, horizon=500, seed=7)
    began = perf_counter()
    outcome = _branch(spec, file, plan)
    took_s = perf_counter() - began
    n_decisions = sum(len(line.rewards) for line in outcome.continuations)
    print(f"\n{game}, {maximum}: {n_decisions:,} decisions in {took_s:.1f} s")  # noqa: T201
    assert len(outcome.continuations) == 32
