"""Actor-learners that play a script in the test's process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from backend.specs.run import RunSpec, parse_run_spec
from tests.support.scripted_environment import EVERY_END, Decision, Outcome, Script, Scripted
from workers.engine.envs import make_env
from workers.engine.methods.asynchronous.actor import ActorFactories, ActorLearner
from workers.engine.methods.asynchronous.memory import Counts, Memory, Vectors
from workers.engine.methods.registry import METHODS
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.processes.child import Channel

T_MAX = 60
"""Agent steps of the run: its learning rate is 0 there."""
CONFIG: dict[str, Any] = {
    "t_max": 3,
    "gamma": 0.9,
    "learning_rate": 0.02,
    "learning_rate_schedule": "linear",
    "optimizer": "shared_rmsprop",
    "rmsprop_decay": 0.9,
    "rmsprop_eps": 0.1,
    "reward_clip": 1.0,
}


class Run:
    """Actors of one run in this process, and what they share."""

    def __init__(self, spec: RunSpec, actors: int = 1) -> None:
        self.config: Any = spec.config
        self.method: ActorFactories = METHODS[spec.algorithm].factories
        env = make_env(spec.environment, spec.environment_config)
        torch.manual_seed(spec.seed)
        self.network: Any = self.method.network(spec.config, env)
        env.close()
        initial = FlatParameters(self.network).theta
        self.memory = Memory(len(initial))
        self.vectors, self.counts = Vectors(self.memory), Counts(self.memory.counts)
        self.vectors.theta.copy_(initial)
        self.vectors.theta_minus.copy_(initial)
        FlatParameters(self.network, theta=self.vectors.theta)
        self.channels = [Channel.pair() for _ in range(actors)]
        self.actors = [
            ActorLearner(theirs, spec, k, self.method, self.memory)
            for k, (_, theirs) in enumerate(self.channels)
        ]


@contextmanager
def running(
    script: Script,
    algorithm: str,
    outcomes: Sequence[Outcome] = EVERY_END,
    *,
    actors: int = 1,
    continuous: bool = False,
    agent_steps: int = T_MAX,
    **config: Any,
) -> Iterator[Run]:
    request = script(outcomes, continuous=continuous)
    settings = {"algorithm": algorithm, "stop": {"agent_steps": agent_steps}, "config": CONFIG | config}
    run = Run(parse_run_spec(request | settings), actors)
    try:
        yield run
    finally:
        run.memory.close()
        for ends in run.channels:
            for end in ends:
                end.close()


class Update(NamedTuple):
    """An update of the run: the decisions it was made of, and the vectors after it."""

    decisions: list[Decision]
    theta: Tensor
    theta_minus: Tensor


def play(run: Run, n: int) -> list[Update]:
    updates = []
    for _ in range(n):
        first = len(Scripted.decisions)
        run.actors[0].update()
        vectors = run.vectors
        updates.append(Update(Scripted.decisions[first:], vectors.theta.clone(), vectors.theta_minus.clone()))
    return updates
