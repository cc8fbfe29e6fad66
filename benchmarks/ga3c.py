"""GA3C's dynamic adjustment compared with the best setting of a grid (Babaeizadeh et al. 2017, 4.3 and 5.1).

Measures trainings per second (TPS) over a small grid of N_A, N_P and N_T; then during a dynamic adjustment
that starts with one of each; then of the grid's best again, as the machine's speed may have changed.
"""

import time
from dataclasses import dataclass
from typing import NamedTuple

from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.methods.ga3c.adjustment import UNSETTLED, ThreadCounts
from workers.engine.methods.ga3c.ga3c import Ga3cLearner

AGENTS = (1, 2, 4, 8, 16, 32)
THREADS = ((1, 1), (2, 1), (1, 2), (2, 2))
"""N_P and N_T: the paper's best ratios, 1:2, 1:1 and 2:1."""
REACHED = 0.25
"""Fraction of the adjustment, at its end, whose TPS is its result."""


class Measurement(NamedTuple):
    """TPS over some time under one setting."""

    began_s: float
    seconds: float
    setting: ThreadCounts
    tps: float


@dataclass(frozen=True)
class AdjustmentResult:
    """Measurements of the grid and of the adjustment."""

    grid: list[Measurement]
    again: Measurement
    """The best of the grid, measured again after the adjustment."""
    walk: list[Measurement]

    @property
    def best(self) -> Measurement:
        """The fastest of the grid."""
        return max(self.grid, key=lambda measurement: measurement.tps)

    @property
    def best_tps(self) -> float:
        """Mean of both measurements of the fastest setting."""
        return (self.best.tps + self.again.tps) / 2

    @property
    def reached_tps(self) -> float:
        """Mean TPS at the end of the adjustment."""
        end_s = self.walk[-1].began_s + self.walk[-1].seconds
        last = [
            measurement for measurement in self.walk if measurement.began_s >= end_s * (1 - REACHED)
        ] or self.walk[-1:]
        return sum(measurement.tps * measurement.seconds for measurement in last) / sum(
            measurement.seconds for measurement in last
        )


def measure(environment: str, *, grid_s: float, walk_s: float, interval_s: float) -> AdjustmentResult:
    """Measure the grid, the adjustment and the grid's best again.

    Args:
        environment: id in the catalogue.
        grid_s: seconds for each setting of the grid; the first quarter is not counted.
        walk_s: seconds for the adjustment.
        interval_s: between two changes of the adjustment.

    Raises:
        InvalidSpec: GA3C does not support this environment, or it does not exist.
    """
    settings = [ThreadCounts(n, *threads) for n in AGENTS for threads in THREADS]
    grid = _measure_settings(environment, settings, grid_s)
    walk = _measure_adjustment(environment, walk_s, interval_s)
    best = max(grid, key=lambda measurement: measurement.tps)
    [again] = _measure_settings(environment, [best.setting], grid_s)
    return AdjustmentResult(grid, again, walk)


def _spec(environment: str, setting: ThreadCounts, interval_s: float) -> RunSpec:
    config = setting._asdict() | {"adjustment_interval_s": interval_s}
    request = {
        "algorithm": "ga3c",
        "environment": environment,
        "stop": {"agent_steps": 10**12},
        "config": config,
    }
    return parse_run_spec(request)


def _measure_settings(environment: str, settings: list[ThreadCounts], seconds: float) -> list[Measurement]:
    """Measure each of these settings in turn."""
    learner = Ga3cLearner(_spec(environment, settings[0], 0.0))
    measurements = []
    started = time.monotonic()
    try:
        for setting in settings:
            learner.change(learner.config.model_copy(update=setting._asdict()))
            _tps(learner, seconds * UNSETTLED)
            counted_s = seconds * (1 - UNSETTLED)
            began_s = time.monotonic() - started
            measurements.append(Measurement(began_s, counted_s, setting, _tps(learner, counted_s)))
    finally:
        learner.close()
    return measurements


def _tps(learner: Ga3cLearner, seconds: float) -> float:
    started, updates = time.monotonic(), 0
    while (passed := time.monotonic() - started) < seconds or not updates:
        updates += learner.advance(0.0, watched=False).updates
    return updates / passed


def _measure_adjustment(environment: str, seconds: float, interval_s: float) -> list[Measurement]:
    """Measure each interval of a dynamic adjustment that starts with one of each."""
    learner = Ga3cLearner(_spec(environment, ThreadCounts(1, 1, 1), interval_s))
    measurements: list[Measurement] = []
    started = since = time.monotonic()
    setting, updates = ThreadCounts(1, 1, 1), 0
    try:
        while time.monotonic() - started < seconds:
            result = learner.advance(0.0, watched=False)
            updates += result.updates
            now = time.monotonic()
            if learner.thread_counts != setting:
                measurements.append(
                    Measurement(since - started, now - since, setting, updates / (now - since))
                )
                setting, updates, since = learner.thread_counts, 0, time.monotonic()
    finally:
        learner.close()
    return measurements or [Measurement(0.0, now - started, setting, updates / (now - started))]
