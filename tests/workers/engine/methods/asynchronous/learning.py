"""Training of a method by two actor-learners that take turns in this process, so that a run repeats."""

from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.run import parse_run_spec
from tests.support.waiting import Patience
from workers.engine.envs import Box, make_env
from workers.engine.methods.asynchronous import a3c, a3c_continuous, q
from workers.engine.methods.asynchronous.actor import ActorFactories, ActorLearner
from workers.engine.methods.asynchronous.memory import AGENT_STEPS, Counts, Memory, Vectors
from workers.engine.methods.registry import METHODS
from workers.engine.nn.losses import (
    ActorCriticDescent,
    ActorCriticLoss,
    actor_critic_descent,
    gaussian_actor_critic_loss,
    td_loss,
)
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.processes.child import Channel

LEARNING_S = 1_000.0
"""Deadline for learning, which takes a minute on an idle machine."""


def score(algorithm: str, environment: str, agent_steps: int, enough: float, **config: Any) -> float:
    """Mean return of the last 100 training episodes, once it is enough or so many agent steps are done."""
    spec = parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": environment,
            "seed": 1,
            "stop": {"agent_steps": agent_steps},
            "config": config,
        }
    )
    factories: ActorFactories = METHODS[algorithm].factories
    env = make_env(spec.environment, spec.environment_config)
    torch.manual_seed(spec.seed)
    theta = FlatParameters(factories.network(spec.config, env)).theta
    env.close()
    memory = Memory(len(theta))
    vectors, counts = Vectors(memory), Counts(memory.counts)
    vectors.theta.copy_(theta)
    vectors.theta_minus.copy_(theta)
    ends = [Channel.pair() for _ in range(2)]
    actors = [ActorLearner(theirs, spec, k, factories, memory) for k, (_, theirs) in enumerate(ends)]
    returns: list[float] = []
    patience = Patience(LEARNING_S)
    while patience.lasts() and counts.total(AGENT_STEPS) < agent_steps:
        for actor in actors:
            actor.update()
            returns += [episode.episode_return for episode in actor.report.episodes]
            actor.report.episodes.clear()
        if len(returns) >= 100 and np.mean(returns[-100:]) >= enough:
            break
    memory.close()
    for mine, theirs in ends:
        mine.close()
        theirs.close()
    return float(np.mean(returns[-100:]))


def flip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn the sign of the policy gradient, and of the values' where there is no policy."""

    def flipped(*batch: Any, **weights: Any) -> ActorCriticDescent:
        descent = actor_critic_descent(*batch, **weights)
        policys_TA = actor_critic_descent(*batch, **weights | {"beta": 0.0}).d_logits_TA
        return descent._replace(d_logits_TA=descent.d_logits_TA - 2 * policys_TA)

    def flipped_gaussian(*batch: Any, **weights: Any) -> ActorCriticLoss:
        loss = gaussian_actor_critic_loss(*batch, **weights)
        return loss._replace(total=loss.total - 2 * loss.policy)

    monkeypatch.setattr(a3c, "actor_critic_descent", flipped)
    monkeypatch.setattr(a3c_continuous, "gaussian_actor_critic_loss", flipped_gaussian)
    monkeypatch.setattr(q, "td_loss", lambda *batch: -td_loss(*batch))


def random_score(environment: str) -> float:
    """Mean return of 100 episodes of random actions."""
    spec = parse_run_spec({"algorithm": "a3c", "environment": environment, "stop": {"agent_steps": 1}})
    env = make_env(environment, spec.environment_config)
    rng = np.random.default_rng(0)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    returns = []
    for seed in range(100):
        env.reset(seed, observation)
        returns.append(0.0)
        ended = False
        patience = Patience(LEARNING_S)
        while patience.lasts() and not ended:
            space = env.action_space
            action = rng.uniform(space.low, space.high) if isinstance(space, Box) else rng.integers(space.n)
            step = env.step(action, observation)
            returns[-1] += step.reward
            ended = step.episode_over
    env.close()
    return float(np.mean(returns))


def check_flipped(
    monkeypatch: pytest.MonkeyPatch,
    algorithm: str,
    environment: str,
    agent_steps: int,
    enough: float,
    **config: Any,
) -> None:
    """Check that a quarter of the agent steps with the loss's sign flipped do not bring half of the score."""
    flip(monkeypatch)
    flipped = score(algorithm, environment, agent_steps // 4, enough, **config)
    assert flipped < (random_score(environment) + enough) / 2
