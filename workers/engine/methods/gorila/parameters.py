"""Gorila's parameter server: theta+, split into disjoint shards that apply gradients independently.

A shard's version has two counts: the updates that it has applied, and its incarnation. A shard restored from
a snapshot continues to count updates from there in its next incarnation, so one version never names two sets
of parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from backend.specs.algorithms.replayed import ReplayedQConfig
from workers.engine.methods.base import check_network
from workers.engine.methods.dqn.learner import create_optimizer


class Version(NamedTuple):
    """Version of one shard's parameters."""

    incarnation: int
    updates: int


NO_VERSION = Version(-1, 0)
"""Older than every version."""


class Pulled(NamedTuple):
    """A shard's parameters; None if the caller already has this version."""

    version: Version
    theta: Tensor | None


def shard_bounds(n_parameters: int, n_shards: int) -> list[tuple[int, int]]:
    """First index of each shard's part of theta, and the one after its last; the parts differ by at most one
    in length."""
    cuts = [round(k * n_parameters / n_shards) for k in range(n_shards + 1)]
    return list(pairwise(cuts))


def join_snapshots(snapshots: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join the snapshots of all shards to one of all parameters."""
    return {
        "theta": torch.cat([snapshot["theta"] for snapshot in snapshots]),
        "statistics": {
            name: torch.cat([snapshot["statistics"][name] for snapshot in snapshots])
            for name in snapshots[0]["statistics"]
        },
        "updates": max(snapshot["updates"] for snapshot in snapshots),
    }


def split_snapshot(snapshot: dict[str, Any], bounds: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """Split a snapshot of all parameters into copies for each shard.

    Raises:
        ValueError: it is of another network.
    """
    check_network(len(snapshot["theta"]), bounds[-1][1])
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
class ShardStats:
    """What a shard did since its last report."""

    updates: int = 0
    discarded: int = 0
    pulls: int = 0
    push_bytes: int = 0
    pull_bytes: int = 0
    staleness: list[int] = field(default_factory=list)
    """For each gradient received: updates applied since the parameters that it was computed with."""


class ParameterShard:
    """A part of theta+ and its optimizer."""

    def __init__(
        self,
        theta: Tensor,
        config: ReplayedQConfig,
        *,
        max_staleness: int | None = None,
        incarnation: int = 0,
    ) -> None:
        """Take ownership of `theta`.

        Args:
            theta: the shard's part of the parameters, (p,).
            config: the optimizer and its settings.
            max_staleness: gradients that are staler are discarded; None: none are.
            incarnation: how often the shard has been restored.
        """
        self.theta = theta
        self.max_staleness = max_staleness
        self.version = Version(incarnation, 0)
        self.stats = ShardStats()
        self.learning_rate = config.learning_rate
        self.optimizer = create_optimizer(theta, config)

    def push(self, dtheta: Tensor, version: Version) -> Version:
        """Apply a gradient, or discard one that is too stale or of an earlier incarnation.

        Args:
            dtheta: the gradient of the loss by this part, (p,).
            version: version of the parameters that the gradient was computed with.
        """
        stats, current = self.stats, self.version
        stats.push_bytes += dtheta.nbytes
        staleness = current.updates - version.updates
        stats.staleness.append(max(staleness, 0))
        too_stale = self.max_staleness is not None and staleness > self.max_staleness
        if too_stale or version.incarnation != current.incarnation:
            stats.discarded += 1
            return current
        self.optimizer.step(dtheta, self.learning_rate)
        stats.updates += 1
        self.version = Version(current.incarnation, current.updates + 1)
        return self.version

    def pull(self, known: Version) -> Pulled:
        """The parameters, unless `known` is their version."""
        self.stats.pulls += 1
        if known == self.version:
            return Pulled(self.version, None)
        self.stats.pull_bytes += self.theta.nbytes
        return Pulled(self.version, self.theta)

    def snapshot(self) -> dict[str, Any]:
        """Copies of parameters and optimizer statistics, and the count of updates."""
        return {
            "theta": self.theta.clone(),
            "statistics": {name: tensor.clone() for name, tensor in self.optimizer.statistics().items()},
            "updates": self.version.updates,
        }

    def restore(self, snapshot: dict[str, Any], *, incarnation: int) -> None:
        """Begin another incarnation from `snapshot`; of another optimizer's statistics, those of the same
        names are taken.

        Raises:
            ValueError: the snapshot is of another part.
        """
        if snapshot["theta"].shape != self.theta.shape:
            raise ValueError("the snapshot is of another network")
        self.theta.copy_(snapshot["theta"])
        for name, tensor in self.optimizer.statistics().items():
            if name in snapshot["statistics"]:
                tensor.copy_(snapshot["statistics"][name])
        self.version = Version(incarnation, snapshot["updates"])

    def take_stats(self) -> ShardStats:
        """Statistics since the last call."""
        taken, self.stats = self.stats, ShardStats()
        return taken


class ParameterServer(Protocol):
    """All shards, as actors and learners use them."""

    bounds: list[tuple[int, int]]
    """First and last index of each shard's part of theta."""

    def pull(self, known: Sequence[Version]) -> dict[int, Pulled]:
        """The parameters of each reachable shard, given the versions that the caller has."""

    def push(self, dtheta: Tensor, versions: Sequence[Version]) -> None:
        """Send each shard its part of a gradient and the version of the parameters it was computed with."""
