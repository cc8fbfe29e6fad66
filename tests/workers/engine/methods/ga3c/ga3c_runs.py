"""GA3C on CartPole, trained by hand; and its agents as threads."""

import dataclasses
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psutil
import pytest

from backend.specs.run import RunSpec, parse_run_spec
from tests.support.thread_children import ThreadChild
from tests.support.waiting import Patience
from workers.engine.methods.base import StepResult
from workers.engine.methods.ga3c import agent_pool
from workers.engine.methods.ga3c.agent import AgentEnds
from workers.engine.methods.ga3c.ga3c import Ga3cLearner


def cartpole(environment: str = "CartPole-v1", device: str = "cpu", **config: Any) -> RunSpec:
    # By default the numbers of agents and threads change after a minute, which a slow machine takes.
    fixed = {"evaluation_episodes": 0, "n_actors": 4, "adjustment_interval_s": 0.0}
    return parse_run_spec(
        {
            "algorithm": "ga3c",
            "environment": environment,
            "stop": {"agent_steps": 10**9},
            "device": device,
            "config": fixed | config,
        }
    )


@contextmanager
def at_work(**config: Any) -> Iterator[Ga3cLearner]:
    learner = Ga3cLearner(cartpole(**config))
    try:
        yield learner
    finally:
        learner.close()


def train_for(learner: Ga3cLearner, steps: int) -> list[StepResult]:
    """Train for at least so many agent steps."""
    reported: list[StepResult] = []
    patience = Patience()
    while patience.lasts() and sum(advance.agent_steps for advance in reported) < steps:
        reported.append(learner.advance(0.0, watched=False))
    return reported


def agents(learner: Ga3cLearner) -> list[psutil.Process]:
    """The agents' processes."""
    return [psutil.Process(pid) for pid in learner.agents.pids]


@contextmanager
def thread_agents(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the processes of agents as threads of this one."""
    sockets: list[socket.socket] = []

    def own(argument: Any) -> Any:
        if not isinstance(argument, AgentEnds):
            return argument
        sockets.append(argument.notices.dup())
        return dataclasses.replace(argument, notices=sockets[-1])

    monkeypatch.setattr(agent_pool, "Child", partial(ThreadChild, own=own))
    try:
        yield
    finally:
        for end in sockets:
            end.close()
