"""How actors and learners reach shards in other processes through Ray; unreachable shards are left out."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import ray
import torch
from ray.exceptions import RayError, RayTaskError
from torch import Tensor

from workers.engine.methods.gorila.parameters import Pulled, Version
from workers.engine.nn.replay import Batch, ReplayChunk

REPLY_TIMEOUT_S = 30.0
"""A shard that takes longer counts as unreachable; on a busy machine one may take many seconds."""
TRIES = 3
"""Shards that a learner asks for a minibatch before it gives its turn to the others of its process."""
IN_FLIGHT = 2
"""Unacknowledged calls to a process of shards before the caller waits: it bounds memory and staleness."""


def _reply(ref: Any) -> Any:
    """The reply to a call; None if the process has exited or takes too long.

    Raises:
        RayTaskError: the called method raised an error.
    """
    try:
        return ray.get(ref, timeout=REPLY_TIMEOUT_S)
    except RayTaskError:
        raise
    except RayError:
        return None


class RemoteParameterServer:
    """Parameter shards in other processes; see `workers.engine.methods.gorila.parameters.ParameterServer`."""

    def __init__(self, processes: list[tuple[Any, list[int]]], bounds: list[tuple[int, int]]) -> None:
        """Use running processes.

        Args:
            processes: the handle and the shards of each.
            bounds: bounds of each shard's part of theta.
        """
        self._processes = processes
        self.bounds = bounds
        self._in_flight: list[deque[Any]] = [deque() for _ in processes]
        self.lost_pushes = 0
        """Parts of gradients that reached no shard."""
        self.newest: dict[int, Version] = {}
        """Newest known version of each shard."""

    def pull(self, known: Sequence[Version]) -> dict[int, Pulled]:
        """The parameters of each reachable shard; all are requested at the same time."""
        refs = [handle.pull.remote({k: known[k] for k in shards}) for handle, shards in self._processes]
        pulled: dict[int, Pulled] = {}
        for ref in refs:
            for k, (version, theta) in (_reply(ref) or {}).items():
                pulled[k] = Pulled(version, None if theta is None else torch.from_numpy(theta))
        self._note_versions({k: shard.version for k, shard in pulled.items()})
        return pulled

    def push(self, dtheta: Tensor, versions: Sequence[Version]) -> None:
        """Send each process the parts of its shards; waits only while `IN_FLIGHT` are unacknowledged."""
        gradient = dtheta.numpy()
        for (handle, shards), in_flight in zip(self._processes, self._in_flight, strict=True):
            if len(in_flight) == IN_FLIGHT:
                self._acknowledge(*in_flight.popleft())
            parts = {k: (gradient[slice(*self.bounds[k])], versions[k]) for k in shards}
            in_flight.append((handle.push.remote(parts), len(shards)))

    def _acknowledge(self, ref: Any, n_shards: int) -> None:
        versions: dict[int, Version] = _reply(ref) or {}
        self.lost_pushes += n_shards - len(versions)
        self._note_versions(versions)

    def _note_versions(self, versions: dict[int, Version]) -> None:
        for k, version in versions.items():
            self.newest[k] = max(version, self.newest.get(k, version))


class RemoteReplay:
    """Replay shards in other processes; see `workers.engine.methods.gorila.worker.Replay`."""

    def __init__(self, shards: list[Any], *, home: int | None, rng: np.random.Generator) -> None:
        """Use shards of running processes.

        Args:
            shards: for each shard, the handle of its process and its number there.
            home: the shard that is read first, or written to; None: any.
            rng: chooses the other shards.
        """
        self._rng = rng
        self._shards = shards
        self._home = home
        self._requested: tuple[int, Any] | None = None
        self._adding: deque[Any] = deque()
        self._turn = 0
        self.detours = 0
        """Minibatches that came from another shard than the home shard."""
        self.lost_chunks = 0

    def add(self, chunk: ReplayChunk) -> None:
        """Send a chunk to the home shard, or to the shards in turn."""
        k = self._turn % len(self._shards) if self._home is None else self._home
        self._turn += 1
        if len(self._adding) == IN_FLIGHT and _reply(self._adding.popleft()) is None:
            self.lost_chunks += 1
        handle, number = self._shards[k]
        self._adding.append(handle.add.remote(number, chunk))

    def sample(self, B: int, min_transitions: int) -> Batch | None:
        """A minibatch, requested when the one before was returned; None if no requested shard has one.

        Args:
            B: size of the minibatch.
            min_transitions: the transitions that a shard must hold at least.
        """
        k, ref = self._requested or self._request(self._first(), B, min_transitions)
        self._requested = None
        for _ in range(TRIES):
            batch: Batch | None = _reply(ref)
            if batch is not None:
                self.detours += k != self._home and self._home is not None
                self._requested = self._request(self._first(), B, min_transitions)
                return batch
            k, ref = self._request(self._any(), B, min_transitions)
        return None

    def _first(self) -> int:
        return self._any() if self._home is None else self._home

    def _any(self) -> int:
        return int(self._rng.integers(len(self._shards)))

    def _request(self, k: int, B: int, min_transitions: int) -> tuple[int, Any]:
        handle, number = self._shards[k]
        return k, handle.sample.remote(number, B, min_transitions)
