"""GA3C on CartPole, trained by hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from backend.specs.run import RunSpec, parse_run_spec
from tests.support.waiting import Patience
from workers.engine.methods.base import StepResult
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
    return [psutil.Process(pid) for pid in learner.agents.pids]
