"""A method that acts in made-up states, and the parts of slow transcriptions of its gradient.

A transcription follows the paper's algorithm line by line: one decision at a time, one call of autograd a
decision, from parameters that are plain matrices. Its tests use the fixture `float64`.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.envs import make_env
from workers.engine.methods.asynchronous.actor import ActorContext, ActorFactories
from workers.engine.methods.asynchronous.memory import Counts
from workers.engine.methods.registry import METHODS
from workers.engine.nn.optimizers import FlatParameters

GAMMA = 0.9


def spec_of(algorithm: str, environment: str = "CartPole-v1", **config: Any) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": environment,
            "stop": {"agent_steps": 1_000},
            "config": {"gamma": GAMMA, **config},
        }
    )


class Played:
    """A method that has acted in made-up states, and what it did there."""

    def __init__(self, spec: RunSpec, *, terminal: bool, T: int = 5, updates: int = 1) -> None:
        factories: ActorFactories = METHODS[spec.algorithm].factories
        rng = np.random.default_rng(3)
        torch.manual_seed(1)
        env = make_env(spec.environment, spec.environment_config)
        self.network: Any = factories.network(spec.config, env)
        for parameter in self.network.parameters():
            nn.init.normal_(parameter, std=0.3)
        self.flat = FlatParameters(self.network)
        self.theta_minus = torch.randn_like(self.flat.theta) * 0.3
        counts = Counts(np.zeros((65, 4), np.int64))
        self.method = factories.algorithm(
            ActorContext(spec.config, self.network, self.theta_minus, rng, counts, env)
        )
        env.close()
        self.method.begin_episode()
        self.all_states: list[NDArray[Any]] = []
        shape = (1, *env.observation_shape)
        state = rng.normal(size=shape)
        for update in range(updates):
            self.flat.dtheta.zero_()
            self.method.begin()
            self.states, self.actions, self.rewards = [], [], []
            for _ in range(T):
                self.states.append(state.copy())
                self.actions.append(self.method.choose(state).action)
                self.rewards.append(float(rng.normal()))
                state = rng.normal(size=shape)
            self.all_states += self.states
            self.terminal = terminal and update == updates - 1
            self.after = state
            self.metrics = self.method.learn(self.rewards, None if self.terminal else state)

    def gradient(self) -> Tensor:
        return self.flat.dtheta.clone()


def features(network: nn.Module, state: NDArray[Any]) -> Tensor:
    """Two tanh layers, by hand."""
    body = network.body
    assert isinstance(body, nn.Sequential)
    x = torch.from_numpy(state[0])
    for k in (0, 2):
        layer = body[k]
        assert isinstance(layer, nn.Linear)
        x = torch.tanh(layer.weight @ x + layer.bias)
    return x


def q_values(network: Any, state: NDArray[Any]) -> Tensor:
    q: Tensor = network.q.weight @ features(network, state) + network.q.bias
    return q


def target_values(played: Played, state: NDArray[Any]) -> Tensor:
    """Q(s, .; theta_minus)."""
    theta = played.flat.theta.clone()
    played.flat.theta.copy_(played.theta_minus)
    with torch.no_grad():
        q = q_values(played.network, state).clone()
    played.flat.theta.copy_(theta)
    return q


def accumulate(played: Played, objective: Tensor) -> None:
    objective.backward(retain_graph=True)  # type: ignore[no-untyped-call]


def check(played: Played, transcribed: Any) -> None:
    mine = played.gradient()
    played.flat.dtheta.zero_()
    transcribed(played)
    assert played.flat.dtheta.abs().max() > 1e-2
    torch.testing.assert_close(mine, played.flat.dtheta, rtol=0, atol=1e-6)
