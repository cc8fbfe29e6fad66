"""Each asynchronous method learns a small task within seconds, and not with its gradient's sign flipped.

Two actor-learners take turns in this process, so that a run is the same each time; the processes have tests
of their own.
"""

from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.run import parse_run_spec
from tests.support.waiting import Patience
from workers.engine.envs import Box, make_env
from workers.engine.methods.asynchronous import a3c, a3c_continuous
from workers.engine.methods.asynchronous import q as async_q
from workers.engine.methods.asynchronous.actor import ActorLearner, ActorMethodSpec
from workers.engine.methods.asynchronous.memory import AGENT_STEPS, Counts, Memory, Vectors
from workers.engine.nn.losses import (
    ActorCriticDescent,
    ActorCriticLoss,
    actor_critic_descent,
    gaussian_actor_critic_loss,
    td_loss,
)
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.processes.child import Channel

MAKERS: dict[str, ActorMethodSpec] = {
    "a3c": a3c.A3C,
    "n_step_q": async_q.N_STEP_Q,
    "one_step_q": async_q.ONE_STEP_Q,
    "one_step_sarsa": async_q.ONE_STEP_SARSA,
}

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
    maker: ActorMethodSpec = MAKERS[algorithm]
    env = make_env(spec.environment, spec.environment_config)
    torch.manual_seed(spec.seed)
    theta = FlatParameters(maker.network(spec.config, env)).theta
    env.close()
    memory = Memory(len(theta))
    vectors, counts = Vectors(memory), Counts(memory.counts)
    vectors.theta.copy_(theta)
    vectors.theta_minus.copy_(theta)
    ends = [Channel.pair() for _ in range(2)]
    actors = [ActorLearner(theirs, spec, k, maker, memory) for k, (_, theirs) in enumerate(ends)]
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
    monkeypatch.setattr(async_q, "td_loss", lambda *batch: -td_loss(*batch))


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


CARTPOLE_Q = {"learning_rate": 0.002, "t_max": 20, "exploration_anneal_frames": 8_000}
MEMORY = {"t_max": 20, "optimizer": "shared_adam", "learning_rate": 0.001}
CATCH = {
    "network": "compact",
    "n_actors": 2,
    "t_max": 11,
    "optimizer": "shared_adam",
    "learning_rate": 0.001,
    "learning_rate_schedule": "constant",
}
CATCH_Q = {"exploration_anneal_frames": 15_000, "target_update_frames": 1_000}
PENDULUM = {
    "recurrent": False,
    "optimizer": "shared_adam",
    "learning_rate": 0.0003,
    "learning_rate_schedule": "constant",
    "t_max": 10,
    "gamma": 0.9,
    "beta": 0.01,
    "max_grad_norm": 100_000.0,
}
LONG = [pytest.mark.long]
CONTINUOUS = ("a3c", "Pendulum-v1", 200_000, -800.0, PENDULUM)
QUICK_TASKS = [
    ("a3c", "CartPole-v1", 30_000, 80.0, {}),
    ("n_step_q", "CartPole-v1", 40_000, 70.0, CARTPOLE_Q),
    ("one_step_q", "CartPole-v1", 40_000, 50.0, CARTPOLE_Q),
    ("one_step_sarsa", "CartPole-v1", 40_000, 50.0, CARTPOLE_Q),
    ("a3c", "Memory-v0", 30_000, 0.9, MEMORY | {"recurrent": True}),
]
TASKS = [
    *QUICK_TASKS,
    pytest.param("a3c", "Catch-v0", 100_000, 0.7, CATCH, marks=LONG),
    pytest.param("n_step_q", "Catch-v0", 100_000, 0.5, CATCH | CATCH_Q, marks=LONG),
    pytest.param(*CONTINUOUS, marks=LONG),
]


@pytest.mark.learning
@pytest.mark.parametrize(("algorithm", "environment", "agent_steps", "enough", "config"), TASKS)
def test_method_learns(
    algorithm: str, environment: str, agent_steps: int, enough: float, config: dict[str, Any]
) -> None:
    assert score(algorithm, environment, agent_steps, enough, **config) >= enough


@pytest.mark.learning
@pytest.mark.long
@pytest.mark.parametrize(
    ("algorithm", "environment", "agent_steps", "enough", "config"), [*QUICK_TASKS, CONTINUOUS]
)
def test_method_does_not_learn_with_the_loss_sign_flipped(
    monkeypatch: pytest.MonkeyPatch,
    algorithm: str,
    environment: str,
    agent_steps: int,
    enough: float,
    config: dict[str, Any],
) -> None:
    flip(monkeypatch)
    flipped = score(algorithm, environment, agent_steps // 4, enough, **config)
    assert flipped < (random_score(environment) + enough) / 2


@pytest.mark.learning
@pytest.mark.long
def test_only_recurrent_a3c_solves_the_memory_environment(capsys: pytest.CaptureFixture[str]) -> None:
    forgetful = score("a3c", "Memory-v0", 30_000, 0.9, **MEMORY)
    with capsys.disabled():
        print(f"\na3c without an LSTM on Memory-v0: {forgetful:.2f}")  # noqa: T201
    assert abs(forgetful) < 0.4, "four standard errors of a mean of 100"
