"""Our own methods as a run trains them, and what the cores' time goes to."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import psutil

from backend.specs.algorithms import ALGORITHMS
from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.algorithms import ENGINES, a3c, async_q
from workers.engine.algorithms.dqn import Dqn
from workers.engine.algorithms.ga3c_model import Predictor, Trainer
from workers.engine.algorithms.hogwild import Hogwild
from workers.engine.algorithms.hogwild_actor import Method, MethodMaker, Tools
from workers.engine.bench.made import PARTS, Made, Turns
from workers.engine.devices import prepare_torch
from workers.engine.learner import Advance, Learner

CoreSeconds = Callable[[Advance, float], Mapping[str, float]]
"""What an advance, and its seconds, went to: part -> seconds of all cores together."""

_ASYNCHRONOUS = {
    "a3c": a3c.A3C,
    "n_step_q": async_q.N_STEP_Q,
    "one_step_q": async_q.ONE_STEP_Q,
    "one_step_sarsa": async_q.ONE_STEP_SARSA,
}


def trained(environment: str, *, algorithm: str, preset: str | None = None, **config: Any) -> Turns:
    """Train on the CPU with a preset's settings, or the defaults, and these; from the first update on."""
    prepare_torch()
    learner, core_s = _timed(_spec(environment, algorithm, preset, config))
    with closing(learner):
        while not learner.advance(0.0, watched=False).updates:
            pass
        while True:
            began = time.perf_counter()
            advance = learner.advance(0.0, watched=False)
            passed_s = time.perf_counter() - began
            yield Made(advance.agent_steps, dict(core_s(advance, passed_s)))


def _spec(environment: str, algorithm: str, preset: str | None, config: dict[str, Any]) -> RunSpec:
    chosen = {one.id: one for one in ALGORITHMS[algorithm].presets}
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
    """The learner of a run, and how to tell what its time goes to."""
    if spec.algorithm in _ASYNCHRONOUS:
        maker = _ASYNCHRONOUS[spec.algorithm]
        timed = MethodMaker(
            maker.network, maker.policy, partial(_timed_method, maker.method), maker.target_frames
        )
        return Hogwild(spec, timed), _of_actors
    if spec.algorithm == "dqn":
        dqn = Dqn(spec)
        spent = defaultdict[str, float](float)
        _time(dqn._actor.play.world, "step", "environment", spent)
        _time(dqn._actor, "_choose", "choosing", spent)
        _time(dqn._replay, "sample", "learning", spent)
        _time(dqn._learner, "learn", "learning", spent)
        return dqn, lambda advance, passed_s: _take(spent)
    learner = ENGINES[spec.algorithm].learner(spec)
    if isinstance(spec.config, SynchronousConfig):
        workers = min(spec.config.n_w, spec.config.n_e, len(os.sched_getaffinity(0)))
        return learner, partial(_of_workers, workers)
    return learner, _OfProcesses().since if spec.algorithm == "ga3c" else lambda advance, passed_s: {}


def _of_workers(workers: int, advance: Advance, passed_s: float) -> dict[str, float]:
    """From PAAC's own time usage."""
    return {part: advance.internals[f"paac/time_{part}"] * passed_s * workers for part in PARTS}


def _of_actors(advance: Advance, passed_s: float) -> dict[str, float]:
    """From what `_timed_method` told, means over the updates."""
    return {part: advance.internals.get(f"time/{part}", 0.0) * advance.updates for part in PARTS}


class _OfProcesses:
    """By the kernel's account of GA3C's agents, predictors and trainers."""

    def __init__(self) -> None:
        self._before = defaultdict[str, float](float)

    def since(self, advance: Advance, passed_s: float) -> dict[str, float]:
        """What was added since the last call."""
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
        for one in process.threads():
            if one.id in parts:
                now[parts[one.id]] += one.user_time + one.system_time
        spent = {part: now[part] - self._before[part] for part in PARTS}
        self._before = now
        return spent


def _timed_method(method: Callable[[Tools], Method], tools: Tools) -> Method:
    """A method that tells, with its other metrics, what an update's time went to."""
    spent = defaultdict[str, float](float)
    _time(tools.world, "step", "environment", spent)
    made = method(tools)
    _time(made, "choose", "choosing", spent)
    _time(made, "learn", "learning", spent)
    learn = made.learn

    def told(*given: Any) -> dict[str, float]:
        metrics = learn(*given)
        return metrics | {f"time/{part}": s for part, s in _take(spent).items()}

    made.learn = told  # type: ignore[method-assign,assignment]
    return made


def _time(owner: Any, name: str, part: str, spent: defaultdict[str, float]) -> None:
    """From now on count the processor time of a method, on all threads: nothing else is at work."""
    method = getattr(owner, name)

    def timed(*given: Any) -> Any:
        began = time.process_time()
        answer = method(*given)
        spent[part] += time.process_time() - began
        return answer

    setattr(owner, name, timed)


def _take(spent: defaultdict[str, float]) -> dict[str, float]:
    taken = {part: spent[part] for part in PARTS}
    spent.clear()
    return taken
