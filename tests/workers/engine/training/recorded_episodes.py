"""Recorded episodes of agents that have learnt nothing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.envs import make_env
from workers.engine.methods.base import Policy
from workers.engine.methods.recording import EpisodeRecorder
from workers.engine.methods.registry import METHODS

SEED = 3
"""Seed of the recorded episode."""


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
