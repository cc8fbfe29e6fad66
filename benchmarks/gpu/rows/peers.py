"""Stable-Baselines3 with RL Zoo's hyperparameters, on the device of Callboard's rows."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from benchmarks import sb3
from benchmarks.gpu.rows.learners import measure


def train(
    *, algorithm: str, environment: str, device: str, warm_up_s: float, measured_s: float
) -> Iterator[dict[str, Any]]:
    """Its A2C or DQN, once it learns."""
    if algorithm == "a2c":
        generator = sb3.a2c(environment, subprocesses=True, device=device)
    else:
        generator = sb3.dqn(environment, device=device)
    with closing(generator):
        next(generator)
        yield measure(lambda: next(generator).agent_steps, warm_up_s, measured_s)
