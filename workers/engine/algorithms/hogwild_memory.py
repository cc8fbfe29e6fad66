"""What asynchronous actor-learners share: parameters, optimizer statistics and counts, without locks.

Updates by several processes at once may overwrite parts of each other: Hogwild! (Recht et al. 2011).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.asynchronous import MAX_ACTORS, AsynchronousConfig
from workers.engine.memory import SharedCounts, SharedVectors
from workers.engine.optimizers import MomentumSGD, Optimizer, RMSProp, SharedAdam

_SHARED_ROWS = 5
"""theta, theta_minus, two statistics of the optimizer, and a row whose first number counts its updates."""

AGENT_STEPS, FRAMES, UPDATES, EPISODES_BEGUN = range(4)
"""Columns of an actor's counts."""


class Vectors:
    """Views of the vectors that all actors share, each (P,) float32."""

    theta: Tensor
    theta_minus: Tensor
    """The target network, of methods that have one."""

    def __init__(self, memory: SharedVectors) -> None:
        rows = memory.vectors()
        self.theta, self.theta_minus, self._first, self._second, count = rows[:_SHARED_ROWS]
        self._count = count[0]
        self._own = rows[_SHARED_ROWS:]

    def optimizer(self, config: AsynchronousConfig, actor: int) -> Optimizer:
        """The optimizer of one actor over the shared theta."""
        match config.optimizer:
            case "shared_adam":
                return SharedAdam(self.theta, m=self._first, v=self._second, n=self._count, actor=actor)
            case "momentum_sgd":
                return MomentumSGD(self.theta, momentum=config.momentum, m=self._own[actor])
            case "rmsprop":
                g = self._own[actor]
            case _:
                g = self._first
        return RMSProp(self.theta, decay=config.rmsprop_decay, eps=config.rmsprop_eps, g=g, actor=actor)

    def statistics(self, config: AsynchronousConfig) -> dict[str, Tensor]:
        """What the optimizers remember, by names that tell the kind."""
        if config.optimizer == "shared_adam":
            return {"adam_m": self._first, "adam_v": self._second, "adam_n": self._count}
        if config.optimizer == "shared_rmsprop":
            return {"g": self._first}
        return {f"{config.optimizer}_{k}": self._own[k] for k in range(config.n_actors)}


@dataclass(frozen=True)
class Memory:
    """Handed to each actor's process."""

    vectors: SharedVectors
    counts: SharedCounts

    @classmethod
    def make(cls, n_parameters: int) -> "Memory":
        """New memory, all zeros."""
        return cls(SharedVectors(_SHARED_ROWS + MAX_ACTORS, n_parameters), SharedCounts(MAX_ACTORS + 1, 4))

    def close(self) -> None:
        """Close the files; views stay."""
        self.vectors.close()
        self.counts.close()


class Counts:
    """How far the run is. Each actor writes only its own row; sums are over the rows and what went before."""

    def __init__(self, memory: SharedCounts) -> None:
        self._rows = memory.counts()

    def of(self, actor: int) -> NDArray[np.int64]:
        """An actor's own row, to be added to."""
        row: NDArray[np.int64] = self._rows[1 + actor]
        return row

    def total(self, column: int) -> int:
        """Over all actors and earlier attempts: T of the paper, where the column is `AGENT_STEPS`."""
        return int(self._rows[:, column].sum())

    def go_on_from(self, totals: dict[int, int]) -> None:
        """Make `totals` the sums; no actor may be at work."""
        self._rows[:] = 0
        for column, value in totals.items():
            self._rows[0, column] = value
