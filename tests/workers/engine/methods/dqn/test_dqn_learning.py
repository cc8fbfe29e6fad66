"""DQN learns small tasks, and does not with the sign of its loss flipped."""

from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.run import parse_run_spec
from tests.support.waiting import Patience
from workers.engine.methods.dqn import learner
from workers.engine.methods.dqn.dqn import DqnLearner
from workers.engine.nn.losses import DqnLoss, dqn_loss

QUICK = {
    "learning_starts_agent_steps": 500,
    "exploration_anneal_agent_steps": 4_000,
    "target_update_updates": 100,
}
CATCH = {
    "network": "nips",
    "learning_starts_agent_steps": 500,
    "exploration_anneal_agent_steps": 3_000,
    "exploration_eps": 0.05,
    "replay_capacity": 20_000,
    "target_update_updates": 250,
    "rmsprop_eps": 0.0001,
}

LEARNING_S = 1_000.0
"""Deadline for learning, which takes a minute on an idle machine."""


def score(environment: str, agent_steps: int, enough: float, **config: Any) -> float:
    """Mean return of the last 100 training episodes, once it is enough or so many agent steps are done."""
    spec = parse_run_spec(
        {
            "algorithm": "dqn",
            "environment": environment,
            "seed": 1,
            "device": "cpu",
            "stop": {"agent_steps": agent_steps},
            "config": config,
        }
    )
    dqn = DqnLearner(spec)
    returns: list[float] = []
    done = 0
    patience = Patience(LEARNING_S)
    while (
        patience.lasts()
        and done < agent_steps
        and not (len(returns) >= 100 and np.mean(returns[-100:]) >= enough)
    ):
        advance = dqn.advance(done / agent_steps, watched=False)
        done += advance.agent_steps
        returns += [episode.episode_return for episode in advance.episodes]
    dqn.close()
    return float(np.mean(returns[-100:]))


def flipped(q_NA: torch.Tensor, action_N: torch.Tensor, y_N: torch.Tensor) -> DqnLoss:
    """The loss with its gradient's sign turned."""
    loss = dqn_loss(q_NA, action_N, y_N)
    return loss._replace(total=-loss.total)


TASKS = [
    pytest.param("CartPole-v1", 30_000, 80.0, QUICK, id="CartPole"),
    pytest.param("Catch-v0", 20_000, 0.6, CATCH, id="Catch", marks=pytest.mark.long),
]


@pytest.mark.long
@pytest.mark.learning
@pytest.mark.parametrize(("environment", "agent_steps", "enough", "config"), TASKS)
def test_dqn_learns(environment: str, agent_steps: int, enough: float, config: dict[str, Any]) -> None:
    assert score(environment, agent_steps, enough, **config) >= enough


@pytest.mark.learning
@pytest.mark.long
@pytest.mark.parametrize(("environment", "agent_steps", "enough", "config"), TASKS)
def test_dqn_does_not_learn_with_the_loss_sign_flipped(
    monkeypatch: pytest.MonkeyPatch,
    environment: str,
    agent_steps: int,
    enough: float,
    config: dict[str, Any],
) -> None:
    guessing = config | {"exploration_eps": 1.0, "learning_starts_agent_steps": 2_000}
    random = score(environment, 2_000, enough, **guessing)
    monkeypatch.setattr(learner, "dqn_loss", flipped)
    wrong = score(environment, agent_steps // 5, enough, **config)
    assert max(random, wrong) < (random + enough) / 2
