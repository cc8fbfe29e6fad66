"""Gorila's parameter server: theta+, split disjointly over shards that each apply gradients by themselves.

A shard's version counts the updates it has applied, and its lives: one that comes back from a snapshot counts
on from there in its next life, so that no number ever names two sets of parameters.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from backend.specs.algorithms.replayed import ReplayedQConfig
from workers.engine.optimizers import AdaGrad, CentredRMSProp


class Version(NamedTuple):
    """Of one shard's parameters."""

    life: int
    updates: int


NONE = Version(-1, 0)
"""Older than every version."""


class Pulled(NamedTuple):
    """A shard's parameters, or none where those of the asked-for version are the newest."""

    version: Version
    theta: Tensor | None


def bounds(n_parameters: int, n_shards: int) -> list[tuple[int, int]]:
    """First and last index of each shard's part of theta, as even as can be."""
    cuts = [round(k * n_parameters / n_shards) for k in range(n_shards + 1)]
    return list(pairwise(cuts))


def join(snapshots: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All shards' snapshots as that of one."""
    return {
        "theta": torch.cat([its["theta"] for its in snapshots]),
        "statistics": {
            name: torch.cat([its["statistics"][name] for its in snapshots])
            for name in snapshots[0]["statistics"]
        },
        "updates": max(its["updates"] for its in snapshots),
    }


def split(snapshot: dict[str, Any], bounds: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """A snapshot of all parameters as copies of each shard's.

    Raises:
        ValueError: it is of another network.
    """
    if len(snapshot["theta"]) != bounds[-1][1]:
        raise ValueError("the checkpoint is of another network")
    return [
        {
            "theta": snapshot["theta"][first:last].clone(),
            "statistics": {
                name: vector[first:last].clone() for name, vector in snapshot["statistics"].items()
            },
            "updates": snapshot["updates"],
        }
        for first, last in bounds
    ]


@dataclass(slots=True)
class ShardBooks:
    """What a shard did since its last report."""

    updates: int = 0
    discarded: int = 0
    pulls: int = 0
    push_bytes: int = 0
    pull_bytes: int = 0
    staleness: list[int] = field(default_factory=list)
    """Of each gradient that came, applied or not: updates the shard had applied since its parameters."""


class ParameterShard:
    """Part of theta+ and of the optimizer's memory."""

    def __init__(
        self, theta: Tensor, config: ReplayedQConfig, *, max_staleness: int | None = None, life: int = 0
    ) -> None:
        """Own `theta` from here on.

        Args:
            theta: its part of the parameters, (p,).
            config: the optimizer and its settings.
            max_staleness: gradients by parameters that are more updates old are discarded; None: none are.
            life: which one this is, from 0.
        """
        self.theta = theta
        self.max_staleness = max_staleness
        self.version = Version(life, 0)
        self.books = ShardBooks()
        self.learning_rate = config.learning_rate
        self.optimizer: CentredRMSProp | AdaGrad
        if config.optimizer == "adagrad":
            self.optimizer = AdaGrad(theta, eps=config.rmsprop_eps)
        else:
            self.optimizer = CentredRMSProp(theta, decay=config.rmsprop_decay, eps=config.rmsprop_eps)

    def push(self, dtheta: Tensor, version: Version) -> Version:
        """Apply a gradient, or discard one that is too old, or of an earlier life.

        Args:
            dtheta: the loss's gradient by this part, (p,).
            version: of the parameters it was computed by.
        """
        books, mine = self.books, self.version
        books.push_bytes += dtheta.nbytes
        staleness = mine.updates - version.updates
        books.staleness.append(max(staleness, 0))
        too_old = self.max_staleness is not None and staleness > self.max_staleness
        if too_old or version.life != mine.life:
            books.discarded += 1
            return mine
        self.optimizer.step(dtheta, self.learning_rate)
        books.updates += 1
        self.version = Version(mine.life, mine.updates + 1)
        return self.version

    def pull(self, known: Version) -> Pulled:
        """The parameters, unless `known` is their version."""
        self.books.pulls += 1
        if known == self.version:
            return Pulled(self.version, None)
        self.books.pull_bytes += self.theta.nbytes
        return Pulled(self.version, self.theta)

    def snapshot(self) -> dict[str, Any]:
        """Parameters, the optimizer's memory and version, as copies."""
        return {
            "theta": self.theta.clone(),
            "statistics": {name: tensor.clone() for name, tensor in self.optimizer.statistics().items()},
            "updates": self.version.updates,
        }

    def restore(self, snapshot: dict[str, Any], *, life: int) -> None:
        """Begin another life from `snapshot`; an optimizer of another kind begins anew.

        Raises:
            ValueError: the snapshot is of another part.
        """
        if snapshot["theta"].shape != self.theta.shape:
            raise ValueError("the snapshot is of another network")
        self.theta.copy_(snapshot["theta"])
        for name, tensor in self.optimizer.statistics().items():
            if name in snapshot["statistics"]:
                tensor.copy_(snapshot["statistics"][name])
        self.version = Version(life, snapshot["updates"])

    def take_books(self) -> ShardBooks:
        """Hand over the books."""
        taken, self.books = self.books, ShardBooks()
        return taken


class ParameterServer(Protocol):
    """All shards, as actors and learners see them."""

    bounds: list[tuple[int, int]]
    """Of each shard's part of theta."""

    def pull(self, known: Sequence[Version]) -> dict[int, Pulled]:
        """What each shard that can be reached has, given the versions already known."""

    def push(self, dtheta: Tensor, versions: Sequence[Version]) -> None:
        """Send each shard its part of a gradient and the version of the parameters it was computed by."""


class LocalServer:
    """Shards in this process, each in a thread of its own."""

    def __init__(self, shards: list[ParameterShard]) -> None:
        self.shards = shards
        self._threads = ThreadPoolExecutor(len(shards), initializer=torch.set_num_threads, initargs=(1,))
        lengths = torch.tensor([0, *(len(shard.theta) for shard in shards)]).cumsum(0).tolist()
        self.bounds = list(pairwise(lengths))

    def pull(self, known: Sequence[Version]) -> dict[int, Pulled]:
        """What each shard has."""
        return {
            k: shard.pull(version) for k, (shard, version) in enumerate(zip(self.shards, known, strict=True))
        }

    def push(self, dtheta: Tensor, versions: Sequence[Version]) -> None:
        """Each shard has applied its part when this returns."""
        (mine, *others) = zip(self.shards, versions, self.bounds, strict=True)

        def apply(part: tuple[ParameterShard, Version, tuple[int, int]]) -> None:
            shard, version, (first, last) = part
            shard.push(dtheta[first:last], version)

        applied = self._threads.map(apply, others)
        apply(mine)
        list(applied)
