"""A decision in which an environment crashed is dropped; the decisions before it are bootstrapped."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from backend.specs.run import parse_run_spec
from tests.support.scripted_environment import Decision, Outcome, Script, Scripted
from workers.engine.methods.paac.learner import PaacLearner
from workers.engine.methods.registry import METHODS
from workers.engine.nn.optimizers import FlatParameters

CONFIG = {"n_e": 1, "n_w": 1, "t_max": 4, "gamma": 0.9, "reward_clip": 0.0, "max_grad_norm": 1e6}


def learner(script: Script, algorithm: str, outcomes: list[Outcome], **config: Any) -> PaacLearner:
    request = {"algorithm": algorithm, "stop": {"agent_steps": 1_000}, "config": CONFIG | config}
    return PaacLearner(parse_run_spec(script(outcomes) | request), METHODS[algorithm].factories)


def tensor(state: Any) -> Tensor:
    return torch.from_numpy(np.asarray(state, np.float64))[None]


def actor_critic(network: Any, decision: Decision, R: float, c: Any) -> Tensor:
    logits, v = network(tensor(decision.state))
    log_pi = logits[0].log_softmax(0)
    entropy = -(log_pi.exp() * log_pi).sum()
    policy = -log_pi[int(decision.action)] * (R - v[0].detach())
    total: Tensor = policy - c.beta * entropy + c.value_coefficient * (R - v[0]) ** 2
    return total


def squared(network: Any, decision: Decision, R: float, c: Any) -> Tensor:
    total: Tensor = (R - network(tensor(decision.state))[0, int(decision.action)]) ** 2
    return total


@pytest.mark.parametrize("algorithm", ["paac", "paac_q"])
def test_crashed_decision_is_dropped_and_its_state_bootstrapped(script: Script, algorithm: str) -> None:
    outcomes = [Outcome(1.0), Outcome(2.0), Outcome(-5.0, "crashed"), Outcome(3.0)]
    paac = learner(script, algorithm, outcomes)
    torch.manual_seed(5)
    paac.theta_minus.copy_(torch.randn_like(paac.theta_minus) * 0.3)
    network, target = (deepcopy(paac.network).double() for _ in range(2))
    flat = FlatParameters(network)
    FlatParameters(target).theta.copy_(paac.theta_minus)
    [worker] = paac.rollout_workers
    gradients = [worker.finish().dtheta.double() for _ in range(2)]
    paac.close()
    c = paac.config

    def V(state: Any) -> float:
        if algorithm == "paac":
            return float(network(tensor(state))[1].detach())
        return float(target(tensor(state)).detach().max())

    loss = actor_critic if algorithm == "paac" else squared
    for k, gradient in enumerate(gradients):
        first, second, crashed, last = Scripted.decisions[4 * k : 4 * k + 4]
        R_second = 2.0 + c.gamma * V(crashed.state)
        total = loss(network, first, 1.0 + c.gamma * R_second, c) + loss(network, second, R_second, c)
        total = total + loss(network, last, 3.0 + c.gamma * V(last.after), c)
        flat.dtheta.zero_()
        (total / (c.n_e * c.t_max)).backward()  # type: ignore[no-untyped-call]
        assert flat.dtheta.abs().max() > 1e-2
        torch.testing.assert_close(gradient, flat.dtheta, rtol=0, atol=1e-6, msg=f"rollout {k}")


def test_rollout_of_crashes_alone_changes_nothing(script: Script) -> None:
    paac = learner(script, "paac", [Outcome(0.0, "crashed"), Outcome(1.0)], t_max=1)
    theta = paac.flat.theta.clone()
    crashed = paac.advance(0.0, watched=False)
    assert torch.equal(paac.flat.theta, theta)
    assert crashed.metrics["optim/grad_norm"] == 0
    assert [episode.crashed for episode in crashed.episodes] == [True]
    assert "loss/value" in paac.advance(0.0, watched=False).metrics
    assert not torch.equal(paac.flat.theta, theta)
    paac.close()
