"""Recorded episodes of agents that have learnt nothing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backend.specs.branches import BranchPlan
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.envs import Env, make_env
from workers.engine.envs.atari import AtariEnv
from workers.engine.methods.base import Policy
from workers.engine.methods.recording import EpisodeRecorder
from workers.engine.methods.registry import METHODS

SEED = 3
"""Seed of the recorded episode."""

Played = list[tuple[list[float], str, float | None]]
"""Rewards, end and last value of each continuation."""


def spec_of(algorithm: str, environment: str, config: dict[str, Any], **settings: Any) -> RunSpec:
    """A run's specification."""
    return parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": environment,
            "environment_config": settings,
            "config": config,
            "stop": {"agent_steps": 1},
        }
    )


def policies_of(spec: RunSpec, seeds: Sequence[int]) -> list[Policy]:
    """Policies of one network that has learnt nothing, but is sure of itself."""
    torch.manual_seed(1)
    env = make_env(spec.environment, spec.environment_config)
    method = METHODS[spec.algorithm]
    network = method.network(spec.config, env)
    env.close()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return [method.policy(network, torch.device("cpu"), seed) for seed in seeds]


def record(spec: RunSpec, file: Path, n: int, choose: Callable[[int], Any]) -> list[Any]:
    """Record the first n decisions of an episode; returns its actions."""
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(SEED, observation)
    recorder, actions = EpisodeRecorder(), []
    for t in range(n):
        actions.append(choose(t))
        step = env.step(actions[-1], observation)
        recorder.add(actions[-1], step.reward, 0.0, np.full(len(env.action_names), 0.5), env.lives())
    env.close()
    recorder.save(file, seed=SEED, protocol=None, frames_per_step=1, action_names=env.action_names)
    return actions


def simulate(
    spec: RunSpec, policy: Policy, seed: int, actions: Sequence[Any], plan: BranchPlan, group: int
) -> Played:
    """Play each continuation of a branch from the beginning of its episode; `group` at a time act together.

    A policy with a memory reads the episode once for every continuation.
    """
    games: list[tuple[Env, NDArray[Any]]] = []
    for k in range(plan.continuations):
        env = make_env(spec.environment, spec.environment_config)
        observation = np.empty(env.observation_shape, env.observation_dtype)
        env.reset(seed, observation)
        for action in actions[: plan.decision]:
            policy.act(observation[None], np.array([k]))
            env.step(action, observation)
        if isinstance(env, AtariEnv):
            env.draw_sticky_actions(np.random.default_rng([plan.seed, k]))
        games.append((env, observation))
    policy._generator.manual_seed(plan.seed)  # type: ignore[attr-defined]  # noqa: SLF001
    played: Played = [([], "horizon", None) for _ in games]
    for first in range(0, len(games), group):
        numbers = list(range(first, min(first + group, len(games))))
        going = numbers
        for t in range(plan.horizon):
            if not going:
                break
            chosen, _, _ = policy.act(np.stack([games[k][1] for k in going]), np.array(going))
            remaining = []
            for k, action in zip(going, chosen, strict=True):
                if t == 0 and plan.first_action is not None:
                    action = plan.first_action
                env, observation = games[k]
                step = env.step(action, observation)
                rewards, _, _ = played[k]
                rewards.append(step.reward)
                if step.episode_over:
                    played[k] = rewards, "truncated" if step.truncated else "terminated", None
                else:
                    remaining.append(k)
            going = remaining
        valued = [k for k in numbers if played[k][1] != "terminated"]
        if valued:
            _, value_N, _ = policy.act(np.stack([games[k][1] for k in valued]), np.array(valued))
            for k, value in zip(valued, value_N.tolist(), strict=True):
                played[k] = played[k][0], played[k][1], value
    for env, _ in games:
        env.close()
    return played
