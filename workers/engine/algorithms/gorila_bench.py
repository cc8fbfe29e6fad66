"""How fast Gorila is over its numbers of parts, and DQN beside Stable-Baselines3's, replaying as much."""

import math
import os
import statistics
import time
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import torch

from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.algorithms.dqn import Dqn
from workers.engine.devices import prepare_torch

PARTS = ((1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (4, 4, 1), (4, 4, 4))
"""N_act, N_learn and N_param of each measurement; bundled where the first two are alike, else global."""
ROUNDS = 3
BEGIN = 1_000
"""Decisions before the first update."""
_REPLAY = 20_000


def gorila(
    environment: str, seconds: float, n_actors: int, n_learners: int, n_shards: int
) -> dict[str, float]:
    """Updates and agent steps a second while it learns, with no more processes of a kind than cores."""
    from workers.engine.algorithms.gorila import Gorila

    parts = {"n_actors": n_actors, "n_learners": n_learners, "n_shards": n_shards, "n_replay_shards": 1}
    parts["parts_per_process"] = math.ceil(max(n_actors, n_learners, n_shards) / _cores())
    replay = "bundled" if n_actors == n_learners else "global"
    spec = _spec("gorila_dqn", environment, **parts, replay=replay, pull_interval=4)
    updates, steps = 0, 0
    with closing(Gorila(spec)) as learner:
        while not learner.advance(0.0, watched=False).updates:
            pass
        began = time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds:
            advance = learner.advance(0.0, watched=False)
            updates += advance.updates
            steps += advance.agent_steps
    return {"updates_per_s": updates / spent, "agent_steps_per_s": steps / spent}


def dqn_beside_sb3(environment: str, seconds: float) -> dict[str, float]:
    """Agent steps a second of ours and, where Stable-Baselines3 is installed, of its: medians of turns."""
    turns: dict[str, Callable[[float], float]] = {"callboard": _ours(environment)}
    with suppress(ImportError):
        turns["stable_baselines3"] = _theirs(environment)
    found: dict[str, list[float]] = {name: [] for name in turns}
    threads = torch.get_num_threads()
    for _ in range(ROUNDS):
        for name, turn in turns.items():
            found[name].append(turn(seconds))
            torch.set_num_threads(threads)
    return {name: statistics.median(rates) for name, rates in found.items()}


def _ours(environment: str) -> Callable[[float], float]:
    learner = Dqn(_spec("dqn", environment, network="nature"))

    def advance() -> int:
        return learner.advance(0.0, watched=False).agent_steps

    def turn(seconds: float) -> float:
        prepare_torch()
        return _rate(advance, seconds)

    _begin(advance)
    return turn


def _theirs(environment: str) -> Callable[[float], float]:
    import gymnasium
    from stable_baselines3 import DQN

    def make() -> Any:
        env: gymnasium.Env[Any, Any] = gymnasium.make(environment, frameskip=1, repeat_action_probability=0)
        return gymnasium.wrappers.FrameStackObservation(gymnasium.wrappers.AtariPreprocessing(env), 4)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their advice on memory
        model = DQN(
            "CnnPolicy",
            make(),
            buffer_size=_REPLAY,
            learning_starts=BEGIN,
            batch_size=32,
            train_freq=4,
            gradient_steps=1,
            device="cpu",
        )
    steps = 200

    def advance() -> int:
        model.learn(steps, reset_num_timesteps=False)
        return steps

    def turn(seconds: float) -> float:
        # As it comes: its network on every core.
        torch.set_num_threads(_cores())
        return _rate(advance, seconds)

    _begin(advance)
    return turn


def _begin(advance: Callable[[], int]) -> None:
    done = 0
    while done < BEGIN + 200:
        done += advance()


def _rate(advance: Callable[[], int], seconds: float) -> float:
    steps, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds:
        steps += advance()
    return steps / spent


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _spec(algorithm: str, environment: str, **config: Any) -> RunSpec:
    quick = {"learning_starts_agent_steps": BEGIN, "replay_capacity": _REPLAY}
    return parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": environment,
            "device": "cpu",
            "stop": {"agent_steps": 10**9},
            "config": quick | config,
        }
    )
