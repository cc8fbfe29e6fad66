"""The learners of the benchmark's rows, and the measurement of what they do."""

import time
from collections.abc import Callable
from typing import Any

from backend.specs.algorithms.dqn import DqnConfig
from backend.specs.algorithms.ga3c import Ga3cConfig
from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec, parse_run_spec
from benchmarks.gpu.gpu_meter import GpuMeter
from workers.engine.methods.base import Learner
from workers.engine.methods.dqn.dqn import DqnLearner
from workers.engine.methods.ga3c.ga3c import Ga3cLearner
from workers.engine.methods.paac.learner import PaacLearner
from workers.engine.methods.registry import METHODS
from workers.engine.nn.devices import Acceleration


def spec_of(algorithm: str, environment: str, device: str, config: dict[str, Any]) -> RunSpec:
    """A run without a limit that matters, seed 0."""
    return parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": environment,
            "device": device,
            "stop": {"agent_steps": 10**12},
            "config": config,
        }
    )


def create_learner(spec: RunSpec, acceleration: Acceleration | None = None) -> Learner:
    """The learner of a run.

    Args:
        spec: the run.
        acceleration: how a method that trains on GPUs uses its device, the CPU too; None: the defaults.
    """
    method = METHODS[spec.algorithm]
    if acceleration is not None:
        match spec.config:
            case SynchronousConfig():
                return PaacLearner(spec, method.factories, acceleration=acceleration)
            case Ga3cConfig():
                return Ga3cLearner(spec, acceleration=acceleration)
            case DqnConfig():
                return DqnLearner(spec, acceleration=acceleration)
    return method.learner(spec)


def update(learner: Learner, updates: int) -> None:
    """Train for at least this many updates."""
    while updates > 0:
        updates -= learner.advance(0.0, watched=False).updates


def measure(step: Callable[[], float], warm_up_s: float, measured_s: float) -> dict[str, Any]:
    """Agent steps per second of a program, and how busy the machine is meanwhile.

    Args:
        step: does some work and returns its agent steps; called repeatedly.
        warm_up_s: not counted.
        measured_s: counted.
    """
    started = time.perf_counter()
    while time.perf_counter() - started < warm_up_s:
        step()
    agent_steps = 0.0
    with GpuMeter() as meter:
        started = time.perf_counter()
        while (passed_s := time.perf_counter() - started) < measured_s:
            agent_steps += step()
    return {"agent_steps_per_s": agent_steps / passed_s, "measured_s": round(passed_s, 2), **meter.usage()}
