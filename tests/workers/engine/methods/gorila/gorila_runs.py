"""What the tests of Gorila's processes share."""

import gc
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import psutil
import torch

from backend.specs.run import RunSpec, parse_run_spec
from tests.support.waiting import PATIENCE_S, Patience
from workers.engine.methods.base import StepResult
from workers.engine.methods.gorila.gorila_dqn import GorilaLearner
from workers.engine.methods.gorila.parameters import ParameterShard, Pulled, Version

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


RAY = ("ray::", "/ray/", "callboard-ray-")
"""One of these is in the command line of each of Ray's processes."""


def processes(kind: str = "", *, under: int | None = None) -> list[psutil.Process]:
    """Ray's processes under this one, or that of a pid; of hosts of one kind, where one is named."""
    members = []
    for process in psutil.Process(under).children(recursive=True):
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if line.startswith(f"ray::{kind}") if kind else any(mark in line for mark in RAY):
            members.append(process)
    return members


class LocalParameterServer:
    """A `ParameterServer` whose shards are in this process."""

    lost_pushes = 0

    def __init__(self, shards: list[ParameterShard]) -> None:
        self.shards = shards
        self.newest: dict[int, Version] = {}
        lengths = torch.tensor([0, *(len(shard.theta) for shard in shards)]).cumsum(0).tolist()
        self.bounds = list(pairwise(lengths))

    def pull(self, known: Sequence[Version]) -> dict[int, Pulled]:
        return {
            k: shard.pull(version) for k, (shard, version) in enumerate(zip(self.shards, known, strict=True))
        }

    def push(self, dtheta: torch.Tensor, versions: Sequence[Version]) -> None:
        for shard, version, (first, last) in zip(self.shards, versions, self.bounds, strict=True):
            shard.push(dtheta[first:last], version)


class Run:
    """A run that is trained by hand."""

    def __init__(self, spec: RunSpec) -> None:
        self.learner = GorilaLearner(spec)
        self.results: list[tuple[float, StepResult]] = []

    def until(self, enough: Callable[[], bool], timeout_s: float = 1_200.0) -> None:
        """Train until it is so.

        Raises:
            AssertionError: it was not so in time.
        """
        patience = Patience(timeout_s, detail=lambda: f"{self.warnings}; {self.last}")
        while patience.lasts() and not enough():
            self.results.append((time.monotonic(), self.learner.advance(0.0, watched=False)))

    def more(self, updates: int) -> None:
        """Train for so many updates of theta+."""
        goal = self.updates + updates
        self.until(lambda: self.updates >= goal)

    @property
    def updates(self) -> int:
        return sum(advance.updates for _, advance in self.results)

    @property
    def agent_steps(self) -> int:
        return sum(advance.agent_steps for _, advance in self.results)

    @property
    def returns(self) -> list[float]:
        return [e.episode_return for _, advance in self.results for e in advance.episodes]

    @property
    def score(self) -> float:
        return float(np.mean(self.returns[-50:]))

    @property
    def warnings(self) -> list[str]:
        return [warning for _, advance in self.results for warning in advance.warnings]

    def reported_at(self, metric: str) -> dict[str, list[float]]:
        """Source -> when it was reported."""
        times: dict[str, list[float]] = {}
        for at, advance in self.results:
            for source, of in advance.metrics_by_source.items():
                if metric in of:
                    times.setdefault(source, []).append(at)
        return times

    @property
    def last(self) -> dict[str, float]:
        return self.results[-1][1].metrics if self.results else {}

    def series(self, metric: str) -> dict[str, list[float]]:
        """Source -> values."""
        values: dict[str, list[float]] = {}
        for _, advance in self.results:
            for source, of in {"": advance.metrics, **advance.metrics_by_source}.items():
                if metric in of:
                    values.setdefault(source, []).append(of[metric])
        return values


@contextmanager
def running(environment: str = "CartPole-v1", **config: Any) -> Iterator[Run]:
    """A run, and nothing left of it afterwards."""
    run = Run(spec_of(environment, **config))
    mine = processes()
    try:
        yield run
    finally:
        run.learner.close()
    _, alive = psutil.wait_procs(mine, timeout=PATIENCE_S)
    assert alive == []
    collect_processes()


def collect_processes() -> None:
    """Collect the `Popen` objects that Ray drops when it ends.

    It does not wait for its processes: the warnings that they still run would fail a later test.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
