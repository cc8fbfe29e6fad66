"""What the tests of Gorila's processes share."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil

from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.algorithms.gorila import Gorila
from workers.engine.learner import Advance

QUICK = {
    "learning_starts_agent_steps": 500,
    "exploration_anneal_updates": 1_000,
    "target_update_updates": 100,
    "evaluation_episodes": 0,
}


def spec_of(
    environment: str = "CartPole-v1", agent_steps: int = 10**9, score: float | None = None, **config: Any
) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": "gorila_dqn",
            "environment": environment,
            "seed": 1,
            "stop": {"agent_steps": agent_steps, "score": score},
            "config": QUICK | config,
        }
    )


def processes(kind: str = "", *, under: int | None = None) -> list[psutil.Process]:
    """Ray's processes under this one, or that of a pid; of hosts of one kind, where one is named."""
    found = []
    for process in psutil.Process(under).children(recursive=True):
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if line.startswith(f"ray::{kind}") if kind else "ray" in line:
            found.append(process)
    return found


class Run:
    """A run that is trained by hand."""

    def __init__(self, spec: RunSpec) -> None:
        self.learner = Gorila(spec)
        self.told: list[tuple[float, Advance]] = []

    def until(self, enough: Callable[[], bool], timeout_s: float = 240.0) -> None:
        """Train until it is so.

        Raises:
            TimeoutError: it was not so in time.
        """
        latest = time.monotonic() + timeout_s
        while not enough():
            if time.monotonic() > latest:
                raise TimeoutError(f"not in {timeout_s} s; {self.warnings}; {self.last}")
            self.told.append((time.monotonic(), self.learner.advance(0.0, watched=False)))

    def more(self, updates: int) -> None:
        """Train for so many updates of theta+."""
        goal = self.updates + updates
        self.until(lambda: self.updates >= goal)

    @property
    def updates(self) -> int:
        return sum(advance.updates for _, advance in self.told)

    @property
    def agent_steps(self) -> int:
        return sum(advance.agent_steps for _, advance in self.told)

    @property
    def returns(self) -> list[float]:
        return [e.episode_return for _, advance in self.told for e in advance.episodes]

    @property
    def score(self) -> float:
        return float(np.mean(self.returns[-50:]))

    @property
    def warnings(self) -> list[str]:
        return [warning for _, advance in self.told for warning in advance.warnings]

    @property
    def last(self) -> dict[str, float]:
        return self.told[-1][1].internals if self.told else {}

    def series(self, metric: str) -> dict[str, list[float]]:
        """Source -> values."""
        found: dict[str, list[float]] = {}
        for _, advance in self.told:
            for source, of in {"": advance.internals, **advance.of_sources}.items():
                if metric in of:
                    found.setdefault(source, []).append(of[metric])
        return found


@contextmanager
def running(environment: str = "CartPole-v1", **config: Any) -> Iterator[Run]:
    """A run, and nothing left of it afterwards."""
    run = Run(spec_of(environment, **config))
    mine = processes()
    try:
        yield run
    finally:
        run.learner.close()
    _, alive = psutil.wait_procs(mine, timeout=20)
    assert alive == []
