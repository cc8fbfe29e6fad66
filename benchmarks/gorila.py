"""Speed of Gorila over its numbers of actors, learners and parameter shards."""

import math
import os
import time
from contextlib import closing
from typing import Any

from backend.specs.run import RunSpec, parse_run_spec
from benchmarks.rows import LEARNING_STARTS, REPLAY_CAPACITY

PARTS = ((1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (4, 4, 1), (4, 4, 4))
"""N_act, N_learn and N_param of each measurement; bundled if the first two are equal, else global."""


def gorila(
    environment: str, seconds: float, n_actors: int, n_learners: int, n_shards: int
) -> dict[str, float]:
    """Updates and agent steps per second of learning, with at most one process of a kind per core."""
    from workers.engine.methods.gorila.gorila_dqn import GorilaLearner

    parts = {"n_actors": n_actors, "n_learners": n_learners, "n_shards": n_shards, "n_replay_shards": 1}
    parts["parts_per_process"] = math.ceil(max(n_actors, n_learners, n_shards) / _cores())
    replay = "bundled" if n_actors == n_learners else "global"
    spec = _spec(environment, **parts, replay=replay, pull_interval=4)
    updates, steps = 0, 0
    with closing(GorilaLearner(spec)) as learner:
        while not learner.advance(0.0, watched=False).updates:
            pass
        started = time.perf_counter()
        # On a busy machine the processes may not report within so little time.
        while (spent := time.perf_counter() - started) < seconds or not (updates and steps):
            result = learner.advance(0.0, watched=False)
            updates += result.updates
            steps += result.agent_steps
    return {"updates_per_s": updates / spent, "agent_steps_per_s": steps / spent}


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _spec(environment: str, **config: Any) -> RunSpec:
    quick = {"learning_starts_agent_steps": LEARNING_STARTS, "replay_capacity": REPLAY_CAPACITY}
    return parse_run_spec(
        {
            "algorithm": "gorila_dqn",
            "environment": environment,
            "device": "cpu",
            "stop": {"agent_steps": 10**9},
            "config": quick | config,
        }
    )
