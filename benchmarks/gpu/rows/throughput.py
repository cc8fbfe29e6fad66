"""The emulators alone, and methods as runs train them."""

import gc
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.rows.learners import create_learner, measure, spec_of
from workers.engine.envs.base import Box
from workers.engine.envs.vector import VectorEnv
from workers.engine.nn.devices import Acceleration, prepare_torch
from workers.engine.nn.seeds import EpisodeSeeds

_METRICS = ("paac/time_", "speed/", "ga3c/", "loss/entropy")
"""Metrics, by how their names begin, whose means are results."""


def train(
    *,
    algorithm: str,
    environment: str,
    device: str,
    config: dict[str, Any],
    warm_up_s: float,
    measured_s: float,
    graphs: bool = True,
    groups: int = 2,
) -> Iterator[dict[str, Any]]:
    """A method as a run trains it, from its first update on."""
    prepare_torch()
    if device == "cuda":  # another row may have come before in this process
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    learner = create_learner(
        spec_of(algorithm, environment, device, config), Acceleration(graphs=graphs, groups=groups)
    )
    sums = defaultdict[str, float](float)
    metric_s = defaultdict[str, float](float)
    updates = 0

    def step() -> int:
        nonlocal updates
        began = time.perf_counter()
        result = learner.advance(0.0, watched=False)
        passed_s = time.perf_counter() - began
        updates += result.updates
        for name, value in result.metrics.items():
            if name.startswith(_METRICS):
                sums[name] += value * passed_s
                metric_s[name] += passed_s
        return result.agent_steps

    with closing(learner):
        while not learner.advance(0.0, watched=False).updates:
            pass
        start_s = time.perf_counter() - started
        measure(step, warm_up_s, 0.0)
        sums.clear()
        metric_s.clear()
        updates = 0
        record = measure(step, 0.0, measured_s)
        record["start_s"] = round(start_s, 2)
        record["updates_per_s"] = updates / record["measured_s"]
        record["metrics"] = {name: total / metric_s[name] for name, total in sums.items()}
        if device == "cuda":
            record["torch_memory_bytes"] = torch.cuda.max_memory_reserved()
    yield record


def emulators(
    *, kind: str, environment: str, processes: int, warm_up_s: float, measured_s: float, n_e: int = 1
) -> Iterator[dict[str, Any]]:
    """Random play, with the whole preprocessing and no network.

    Args:
        kind: `processes`: without synchronisation, an environment each. `vector_env`: as PAAC steps
            its environments. `ale_vector`: ale-py's own, on threads.
        environment: an Atari game.
        processes: or threads, that step the environments.
        warm_up_s: see `measure`.
        measured_s: see `measure`.
        n_e: environments, if there is not one a process.
    """
    if kind == "vector_env":
        yield _vector_env(environment, n_e, processes, warm_up_s, measured_s)
        return
    from benchmarks import emulators as bench

    if kind == "processes":
        generator = bench.scalar(environment, processes=processes)
    else:
        generator = bench.vector(environment, n_e=n_e, threads=processes)
    with closing(generator):
        next(generator)
        yield measure(lambda: next(generator).agent_steps, warm_up_s, measured_s)


def _vector_env(
    environment: str, n_e: int, processes: int, warm_up_s: float, measured_s: float
) -> dict[str, Any]:
    spec = spec_of("paac", environment, "cpu", {"n_e": n_e, "n_w": min(processes, 64)})
    seeds = EpisodeSeeds(spec.seed, range(n_e))
    env = VectorEnv(spec, environments=n_e, processes=processes, slots=1, next_seed=seeds.next)
    assert not isinstance(env.action_space, Box)
    n_actions, rng = env.action_space.n, np.random.default_rng(0)
    with closing(env):
        env.reset()

        def step() -> int:
            env.step(rng.integers(n_actions, size=n_e), 0)
            return n_e

        return measure(step, warm_up_s, measured_s)
