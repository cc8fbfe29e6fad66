"""Does GA3C's walk find what one would set by hand (Babaeizadeh et al. 2017, sections 4.3 and 5.1)?

Trainings a second (TPS) of a small grid of N_A, N_P and N_T; then of a walk that begins with one of each;
then of the grid's best once more, for a machine may have grown slower or faster meanwhile.
"""

import time
from dataclasses import dataclass
from typing import NamedTuple

from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.algorithms.ga3c import Ga3c
from workers.engine.ga3c.adjustment import UNSETTLED, Setting

AGENTS = (1, 2, 4, 8, 16, 32)
THREADS = ((1, 1), (2, 1), (1, 2), (2, 2))
"""N_P and N_T: the paper's best ratios, 1:2, 1:1 and 2:1."""
REACHED = 0.25
"""Share of the walk, its end, whose TPS counts as what it came to."""


class Measured(NamedTuple):
    """A stretch of time under one setting."""

    began_s: float
    seconds: float
    setting: Setting
    tps: float


@dataclass(frozen=True)
class Found:
    """What one bench saw."""

    grid: list[Measured]
    again: Measured
    """The best of the grid, measured once more after the walk."""
    walk: list[Measured]

    @property
    def best(self) -> Measured:
        """The fastest of the grid."""
        return max(self.grid, key=lambda one: one.tps)

    @property
    def best_tps(self) -> float:
        """Mean of both times that the fastest was measured."""
        return (self.best.tps + self.again.tps) / 2

    @property
    def reached_tps(self) -> float:
        """TPS at the walk's end, with all that it tried there."""
        end_s = self.walk[-1].began_s + self.walk[-1].seconds
        last = [one for one in self.walk if one.began_s >= end_s * (1 - REACHED)] or self.walk[-1:]
        return sum(one.tps * one.seconds for one in last) / sum(one.seconds for one in last)


def measure(environment: str, *, grid_s: float, walk_s: float, interval_s: float) -> Found:
    """Run the grid, the walk and the grid's best again.

    Args:
        environment: an id of the catalogue.
        grid_s: for each setting of the grid, of which the first quarter is not counted.
        walk_s: for the walk.
        interval_s: between two changes of the walk.

    Raises:
        InvalidSpec: there is no such world, or none that GA3C can learn.
    """
    settings = [Setting(n, *threads) for n in AGENTS for threads in THREADS]
    grid = _held(environment, settings, grid_s)
    walk = _walk(environment, walk_s, interval_s)
    best = max(grid, key=lambda one: one.tps)
    [again] = _held(environment, [best.setting], grid_s)
    return Found(grid, again, walk)


def _spec(environment: str, setting: Setting, interval_s: float) -> RunSpec:
    config = setting._asdict() | {"adjustment_interval_s": interval_s}
    request = {
        "algorithm": "ga3c",
        "environment": environment,
        "stop": {"agent_steps": 10**12},
        "config": config,
    }
    return parse_run_spec(request)


def _held(environment: str, settings: list[Setting], seconds: float) -> list[Measured]:
    """TPS under each of these settings, one after the other."""
    learner = Ga3c(_spec(environment, settings[0], 0.0))
    found = []
    began = time.monotonic()
    try:
        for setting in settings:
            learner.change(learner.config.model_copy(update=setting._asdict()))
            _tps(learner, seconds * UNSETTLED)
            counted_s = seconds * (1 - UNSETTLED)
            began_s = time.monotonic() - began
            found.append(Measured(began_s, counted_s, setting, _tps(learner, counted_s)))
    finally:
        learner.close()
    return found


def _tps(learner: Ga3c, seconds: float) -> float:
    began, updates = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        updates += learner.advance(0.0, watched=False).updates
    return updates / passed


def _walk(environment: str, seconds: float, interval_s: float) -> list[Measured]:
    """TPS of each interval of the walk from one of each."""
    learner = Ga3c(_spec(environment, Setting(1, 1, 1), interval_s))
    found: list[Measured] = []
    began = since = time.monotonic()
    setting, updates = Setting(1, 1, 1), 0
    try:
        while time.monotonic() - began < seconds:
            advance = learner.advance(0.0, watched=False)
            updates += advance.updates
            now = time.monotonic()
            if learner.setting != setting:
                found.append(Measured(since - began, now - since, setting, updates / (now - since)))
                setting, updates, since = learner.setting, 0, time.monotonic()
    finally:
        learner.close()
    return found or [Measured(0.0, now - began, setting, updates / (now - began))]
