"""Processes that hold Gorila's parameter shards and replay shards; each answers one call at a time.

They do not import Ray, which runs them. A process that dies is restarted with the same arguments: parameters
are then restored from the engine's snapshots, replay shards start empty.
"""

import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backend.specs.algorithms.gorila import GorilaConfig
from workers.engine.methods.gorila.parameters import ParameterShard, ShardStats, Version
from workers.engine.nn.devices import prepare_torch
from workers.engine.nn.replay import Batch, FrameShape, ReplayChunk, ReplayMemory
from workers.engine.nn.seeds import MINIBATCH_STREAM
from workers.engine.processes.child import become_child


def prepare_process() -> None:
    """Prepare a new process of a Gorila run; call it first."""
    become_child(os.getppid())
    prepare_torch()
    # Arrays from Ray's object store are read-only, and are only read.
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


@dataclass(frozen=True)
class ShardReport:
    """What a process of parameter shards did since its last report."""

    incarnation: int | None
    """None: the process has been restarted and waits for snapshots."""
    versions: dict[int, Version]
    stats: dict[int, ShardStats]


class ParameterShardProcess:
    """Some parameter shards."""

    def __init__(self) -> None:
        prepare_process()
        self._shards: dict[int, ParameterShard] = {}
        self._incarnation: int | None = None

    def restore(self, snapshots: dict[int, dict[str, Any]], config: GorilaConfig, incarnation: int) -> None:
        """Replace all shards by these snapshots."""
        self._shards = {
            k: ParameterShard(
                torch.zeros_like(snapshot["theta"]), config, max_staleness=config.max_gradient_staleness
            )
            for k, snapshot in snapshots.items()
        }
        for k, shard in self._shards.items():
            shard.restore(snapshots[k], incarnation=incarnation)
        self._incarnation = incarnation

    def push(self, parts: dict[int, tuple[NDArray[np.float32], Version]]) -> dict[int, Version]:
        """Apply or discard parts of a gradient; returns the versions of the shards that are here."""
        return {
            k: self._shards[k].push(torch.from_numpy(dtheta), version)
            for k, (dtheta, version) in parts.items()
            if k in self._shards
        }

    def pull(self, known: dict[int, Version]) -> dict[int, tuple[Version, NDArray[np.float32] | None]]:
        """The parameters of the shards that are here, given the versions that the caller has."""
        pulled: dict[int, tuple[Version, NDArray[np.float32] | None]] = {}
        for k in known.keys() & self._shards.keys():
            version, theta = self._shards[k].pull(known[k])
            # Ray sends arrays without pickling; it would pickle tensors.
            pulled[k] = (version, None if theta is None else theta.numpy())
        return pulled

    def report(self, learning_rate: float) -> ShardReport:
        """Set the learning rate; returns what was done since the last report."""
        for shard in self._shards.values():
            shard.learning_rate = learning_rate
        return ShardReport(
            self._incarnation,
            {k: shard.version for k, shard in self._shards.items()},
            {k: shard.take_stats() for k, shard in self._shards.items()},
        )

    def snapshot(self) -> dict[int, dict[str, Any]]:
        """A snapshot of each shard."""
        return {k: shard.snapshot() for k, shard in self._shards.items()}


class ReplayShardProcess:
    """Some replay shards."""

    def __init__(self, shape: FrameShape, capacities: dict[int, int], run_seed: int) -> None:
        """Create empty shards.

        Args:
            shape: shape of the transitions' observations.
            capacities: number of a shard -> its capacity.
            run_seed: seeds the minibatches.
        """
        prepare_process()
        self._shards = {k: ReplayMemory(shape, capacity) for k, capacity in capacities.items()}
        self._rng = np.random.default_rng(
            np.random.SeedSequence((run_seed, MINIBATCH_STREAM + min(capacities)))
        )

    def add(self, k: int, chunk: ReplayChunk) -> bool:
        """Add a chunk to shard k; returns True as the acknowledgement."""
        self._shards[k].add(chunk)
        return True

    def sample(self, k: int, B: int, min_transitions: int) -> Batch | None:
        """A minibatch of shard k; None until it holds `min_transitions`."""
        shard = self._shards[k]
        return shard.sample(B, self._rng) if shard.holds(min_transitions) else None

    def report(self) -> dict[int, float]:
        """The fill of each shard."""
        return {k: shard.fill for k, shard in self._shards.items()}
