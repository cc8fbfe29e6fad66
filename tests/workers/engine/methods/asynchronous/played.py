"""A method that acts in made-up states, and the comparison of its gradient with a transcription's.

Its tests use the fixture `float64`.
"""

from collections import defaultdict
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from backend.specs.run import RunSpec, parse_run_spec
from tests.workers.engine.methods.asynchronous.oracles import Batch, Features, Objective
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
        self.config: Any = spec.config
        self.batches: list[Batch] = []
        shape = (1, *env.observation_shape)
        state = rng.normal(size=shape)
        for update in range(updates):
            self.flat.dtheta.zero_()
            self.method.begin_update()
            states: list[NDArray[Any]] = []
            actions, rewards = [], []
            for _ in range(T):
                states.append(state.copy())
                actions.append(self.method.choose(state).action)
                rewards.append(float(rng.normal()))
                state = rng.normal(size=shape)
            after = None if terminal and update == updates - 1 else state
            self.metrics = self.method.learn(rewards, after)
            self.batches.append(Batch(states, actions, rewards, after, None, update == 0))
        self.after = state

    def gradient(self) -> Tensor:
        return self.flat.dtheta.clone()

    def target(self) -> Any:
        """The network of theta_minus."""
        network = deepcopy(self.network)
        FlatParameters(network).theta.copy_(self.theta_minus)
        return network


def check(played: Played, objective: Objective) -> None:
    """The gradient of the last update is that of the objective."""
    mine = played.gradient()
    target, features = played.target(), defaultdict[str, Features](Features)
    following = [batch.action_T[0] for batch in played.batches[1:]]
    following.append(played.method.choose(played.after).action)
    for batch, next_action in zip(played.batches, following, strict=True):
        batch = batch._replace(next_action=next_action)
        minimised = objective(batch, played.network, target, played.config, features)
    played.flat.dtheta.zero_()
    minimised.backward()  # type: ignore[no-untyped-call]
    assert played.flat.dtheta.abs().max() > 1e-2
    torch.testing.assert_close(mine, played.flat.dtheta, rtol=0, atol=1e-6)
