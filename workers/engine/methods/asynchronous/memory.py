"""What asynchronous actor-learners share: parameters, optimizer statistics and counts, without locks.

Simultaneous updates may overwrite parts of each other: Hogwild! (Recht et al. 2011).
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.asynchronous import MAX_ACTORS, AsynchronousConfig
from workers.engine.nn.optimizers import Adam, MomentumSGD, Optimizer, RMSProp
from workers.engine.processes.shared_memory import SharedArrays

_SHARED_ROWS = 5
"""theta, theta_minus, two statistics of the optimizer, and a row whose first number counts its updates."""

AGENT_STEPS, FRAMES, UPDATES, EPISODES_BEGUN = range(4)
"""Columns of an actor's counts."""


class Memory(SharedArrays):
    """What actor-learners share, for `Vectors` and `Counts`; passed to each actor's process."""

    vectors: NDArray[np.float32]
    counts: NDArray[np.int64]
    copied_at_frames: NDArray[np.int64]
    """Frames of all actors when theta was last copied to theta_minus; one element."""

    def __init__(self, n_parameters: int) -> None:
        super().__init__(
            {
                "vectors": ((_SHARED_ROWS + MAX_ACTORS, n_parameters), "float32"),
                "counts": ((1 + MAX_ACTORS, 4), "int64"),
                "copied_at_frames": ((1,), "int64"),
            }
        )


class Vectors:
    """Views of the vectors that all actors share, each (P,) float32."""

    theta: Tensor
    theta_minus: Tensor
    """Parameters of the target network."""

    def __init__(self, memory: Memory) -> None:
        rows = list(torch.from_numpy(memory.vectors))
        self.theta, self.theta_minus, self._first, self._second, count = rows[:_SHARED_ROWS]
        self._count = count[0]
        self._own = rows[_SHARED_ROWS:]
        self._n_initialised = 0

    def initialise(self, config: AsynchronousConfig) -> None:
        """Set each g of RMSProp that the actors use to its initial value, unless it was set before."""
        if config.optimizer == "shared_rmsprop" and not self._n_initialised:
            self._first.fill_(config.rmsprop_initial_g)
        elif config.optimizer == "rmsprop":
            for g in self._own[self._n_initialised : config.n_actors]:
                g.fill_(config.rmsprop_initial_g)
        self._n_initialised = max(self._n_initialised, config.n_actors)

    def optimizer(self, config: AsynchronousConfig, actor: int) -> Optimizer:
        """The optimizer of one actor over the shared theta."""
        match config.optimizer:
            case "shared_adam":
                return Adam(self.theta, m=self._first, v=self._second, n=self._count, actor=actor)
            case "momentum_sgd":
                return MomentumSGD(self.theta, momentum=config.momentum, m=self._own[actor])
            case "rmsprop":
                g = self._own[actor]
            case _:
                g = self._first
        return RMSProp(self.theta, decay=config.rmsprop_decay, eps=config.rmsprop_eps, g=g, actor=actor)

    def statistics(self, config: AsynchronousConfig) -> dict[str, Tensor]:
        """The optimizers' statistics, by names that depend on the kind of optimizer."""
        if config.optimizer == "shared_adam":
            return {"adam_m": self._first, "adam_v": self._second, "adam_n": self._count}
        if config.optimizer == "shared_rmsprop":
            return {"g": self._first}
        return {f"{config.optimizer}_{k}": self._own[k] for k in range(config.n_actors)}


class Counts:
    """Progress of the run. Each actor writes only its own row; totals include earlier attempts."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        """`counts`: (1 + actors, 4), the first row for earlier attempts."""
        self._rows = counts

    def of(self, actor: int) -> NDArray[np.int64]:
        """The row of an actor, which it adds to."""
        row: NDArray[np.int64] = self._rows[1 + actor]
        return row

    def total(self, column: int) -> int:
        """Sum over all actors and earlier attempts; of `AGENT_STEPS`, the paper's T."""
        return int(self._rows[:, column].sum())

    def episodes_begun(self) -> list[int]:
        """How many episodes each actor has begun, those that do not run now included."""
        return [int(n) for n in self._rows[1:, EPISODES_BEGUN]]

    def restore(self, totals: dict[int, int], episodes_begun: Sequence[int]) -> None:
        """Set the totals, and the episodes that each actor has begun, while every actor is paused."""
        self._rows[:] = 0
        self._rows[1:, EPISODES_BEGUN] = episodes_begun
        for column, value in totals.items():
            self._rows[0, column] = value
