"""Callboard's methods as a run trains them, and how the cores' time is spent."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import psutil

from backend.specs.algorithms import ALGORITHMS
from backend.specs.algorithms.asynchronous import AsynchronousConfig
from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec, parse_run_spec
from benchmarks.rows import PARTS, RowGenerator, RowProgress
from workers.engine.methods.asynchronous.actor import ActorAlgorithm, ActorContext, ActorFactories
from workers.engine.methods.asynchronous.learner import HogwildLearner
from workers.engine.methods.base import Learner, StepResult
from workers.engine.methods.dqn.dqn import DqnLearner
from workers.engine.methods.ga3c.ga3c import Ga3cLearner
from workers.engine.methods.ga3c.model import Predictor, Trainer
from workers.engine.methods.registry import METHODS
from workers.engine.nn.devices import prepare_torch

CoreSeconds = Callable[[StepResult, float], Mapping[str, float]]
"""Splits the time of one `advance`: part -> seconds summed over all cores."""


def trained(environment: str, *, algorithm: str, preset: str | None = None, **config: Any) -> RowGenerator:
    """Train on the CPU with a preset or the defaults, and this config; reports start at the first update."""
    prepare_torch()
    learner, core_s = _timed(spec_of(environment, algorithm, preset, config))
    with closing(learner):
        while not learner.advance(0.0, watched=False).updates:
            pass
        while True:
            started = time.perf_counter()
            result = learner.advance(0.0, watched=False)
            passed_s = time.perf_counter() - started
            yield RowProgress(result.agent_steps, dict(core_s(result, passed_s)))


def spec_of(environment: str, algorithm: str, preset: str | None, config: dict[str, Any]) -> RunSpec:
    """The measured run: a preset with a changed config, without a stop condition, on the CPU."""
    chosen = {preset.id: preset for preset in ALGORITHMS[algorithm].presets}
    return parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": environment,
            "device": "cpu",
            "stop": {"agent_steps": 10**12},
            "config": (chosen[preset].config if preset else {}) | config,
            "environment_config": chosen[preset].environment_config if preset else {},
        }
    )


def _timed(spec: RunSpec) -> tuple[Learner, CoreSeconds]:
    """The learner of a run, and a function that splits its time into parts."""
    if isinstance(spec.config, AsynchronousConfig):
        factories: ActorFactories = METHODS[spec.algorithm].factories
        timed: ActorFactories = replace(factories, algorithm=partial(_timed_algorithm, factories.algorithm))
        return HogwildLearner(spec, timed), _of_actors
    learner = METHODS[spec.algorithm].learner(spec)
    if isinstance(learner, DqnLearner):
        spent = defaultdict[str, float](float)
        _time(learner.actor.play.env, "step", "environment", spent)
        _time(learner.actor, "choose", "choosing", spent)
        _time(learner, "update", "learning", spent)
        return learner, lambda advance, passed_s: _take(spent)
    if isinstance(spec.config, SynchronousConfig):
        workers = min(spec.config.n_w, spec.config.n_e, len(os.sched_getaffinity(0)))
        return learner, partial(_of_workers, workers)
    return learner, _OfProcesses().since if isinstance(learner, Ga3cLearner) else lambda advance, passed_s: {}


def _of_workers(workers: int, advance: StepResult, passed_s: float) -> dict[str, float]:
    """From PAAC's time metrics."""
    return {part: advance.metrics[f"paac/time_{part}"] * passed_s * workers for part in PARTS}


def _of_actors(advance: StepResult, passed_s: float) -> dict[str, float]:
    """From the metrics of `_timed_algorithm`, means over the updates."""
    return {part: advance.metrics.get(f"time/{part}", 0.0) * advance.updates for part in PARTS}


class _OfProcesses:
    """CPU times of GA3C's agents, predictors and trainers, from the kernel."""

    def __init__(self) -> None:
        self._before = defaultdict[str, float](float)

    def since(self, advance: StepResult, passed_s: float) -> dict[str, float]:
        """Times since the last call."""
        process = psutil.Process()
        now = defaultdict[str, float](float)
        for child in process.children(recursive=True):
            used = child.cpu_times()
            now["environment"] += used.user + used.system
        parts = {
            thread.native_id: "choosing" if isinstance(thread, Predictor) else "learning"
            for thread in threading.enumerate()
            if isinstance(thread, Predictor | Trainer)
        }
        for thread in process.threads():
            if thread.id in parts:
                now[parts[thread.id]] += thread.user_time + thread.system_time
        spent = {part: now[part] - self._before[part] for part in PARTS}
        self._before = now
        return spent


def _timed_algorithm(
    create: Callable[[Any], ActorAlgorithm[Any]], context: ActorContext[Any, Any]
) -> ActorAlgorithm[Any]:
    """An algorithm whose metrics also contain the time of an update's parts."""
    spent = defaultdict[str, float](float)
    _time(context.env, "step", "environment", spent)
    timed_algorithm = create(context)
    _time(timed_algorithm, "choose", "choosing", spent)
    _time(timed_algorithm, "learn", "learning", spent)
    learn = timed_algorithm.learn

    def timed_learn(*args: Any) -> dict[str, float]:
        metrics = learn(*args)
        return metrics | {f"time/{part}": s for part, s in _take(spent).items()}

    timed_algorithm.learn = timed_learn  # type: ignore[method-assign,assignment]
    return timed_algorithm


def _time(owner: Any, name: str, part: str, spent: defaultdict[str, float]) -> None:
    """Wrap a method to count its CPU time on all threads; nothing else runs meanwhile."""
    method = getattr(owner, name)

    def timed(*args: Any) -> Any:
        started = time.process_time()
        result = method(*args)
        spent[part] += time.process_time() - started
        return result

    setattr(owner, name, timed)


def _take(spent: defaultdict[str, float]) -> dict[str, float]:
    taken = {part: spent[part] for part in PARTS}
    spent.clear()
    return taken
