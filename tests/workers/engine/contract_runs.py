"""What the contract tests share: a small run of any algorithm, and what this process has left behind."""

import gc
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.processes.child import Channel

SMALL = {
    "network": "mlp",
    "n_e": 2,
    "n_w": 1,
    "n_actors": 2,
    "n_learners": 2,
    "n_shards": 2,
    "parts_per_process": 2,
    "learner_threads": 1,
    "min_training_batch": 1,
    "replay_capacity": 5_000,
    "learning_starts_agent_steps": 100,
    "evaluation_episodes": 2,
    "checkpoint_interval_s": 1.0,
}
"""Settings of a small run, for the algorithms that have them; others keep their defaults."""
STAYING = ("multiprocessing.forkserver", "multiprocessing.resource_tracker")
"""Processes of Python that serve all runs of this process."""
BROWSER = ("chrom", "playwright")
"""Of other tests in this process; a browser starts and ends processes when it likes."""


def small(algorithm: str, environment: str, **request: Any) -> RunSpec:
    fields = ALGORITHMS[algorithm].config.model_fields
    config = {name: value for name, value in SMALL.items() if name in fields}
    known = ENVIRONMENTS.get(environment)
    if known is not None and known.observation == "pixels" and "network" in fields:
        config["network"] = "nips"
    return parse_run_spec(
        {"algorithm": algorithm, "environment": environment, "device": "cpu", "stop": {"wall_time_s": 1_000}}
        | request
        | {"config": config | request.get("config", {})}
    )


def nothing(channel: Channel) -> None:
    """What the first child of the fork server does."""


def leftovers() -> set[str]:
    """Child processes, shared memory and folders that this process has, by their names."""
    gc.collect()
    left = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            line = " ".join(process.cmdline())
            if any(name in line for name in BROWSER):
                continue
            if process.ppid() != os.getpid() or not any(name in line for name in STAYING):
                left.add(f"process {process.pid}: {line}")
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "/memfd:callboard" in line or "/dev/shm/" in line:
            left.add(f"shared memory {line.split()[0]}")
    left |= {f"folder {path}" for path in Path("/tmp").glob(f"callboard-ray-{os.getpid()}-*")}
    return left
