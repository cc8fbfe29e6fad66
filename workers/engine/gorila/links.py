"""How actors and learners reach shards in other processes. What cannot be reached is done without."""

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import ray
import torch
from ray.exceptions import RayError, RayTaskError
from torch import Tensor

from workers.engine.gorila.parameters import Pulled, Version
from workers.engine.replay import Batch, Chunk

REACH_TIMEOUT_S = 10.0
"""A shard that takes longer is taken for unreachable."""
TRIES = 3
"""Shards that are asked for a minibatch before a learner lets the others of its process work."""
IN_FLIGHT = 2
"""Gradients on their way to a process of shards before a learner waits: it bounds memory and staleness."""


def _reached(ref: Any) -> Any:
    """The answer; None where whoever was asked is gone.

    Raises:
        RayTaskError: an error of its own.
    """
    try:
        return ray.get(ref, timeout=REACH_TIMEOUT_S)
    except RayTaskError:
        raise
    except RayError:
        return None


class RemoteServer:
    """Parameter shards in other processes; see `workers.engine.gorila.parameters.ParameterServer`."""

    def __init__(self, hosts: list[tuple[Any, list[int]]], bounds: list[tuple[int, int]]) -> None:
        """Reach shards.

        Args:
            hosts: handle of each process, and which shards it has.
            bounds: of each shard's part of theta.
        """
        self._hosts = hosts
        self.bounds = bounds
        self._in_flight: list[deque[Any]] = [deque() for _ in hosts]
        self.lost_pushes = 0
        """Parts of gradients that reached no shard."""
        self.seen: dict[int, Version] = {}
        """Newest version known of each shard."""

    def pull(self, known: Sequence[Version]) -> dict[int, Pulled]:
        """What each shard that can be reached has; all are asked at once."""
        asked = [handle.pull.remote({k: known[k] for k in shards}) for handle, shards in self._hosts]
        found: dict[int, Pulled] = {}
        for ref in asked:
            for k, (version, theta) in (_reached(ref) or {}).items():
                found[k] = Pulled(version, None if theta is None else torch.from_numpy(theta))
        self._see({k: pulled.version for k, pulled in found.items()})
        return found

    def push(self, dtheta: Tensor, versions: Sequence[Version]) -> None:
        """Send each process its shards' parts; waits only where `IN_FLIGHT` are on their way."""
        gradient = dtheta.numpy()
        for (handle, shards), in_flight in zip(self._hosts, self._in_flight, strict=True):
            if len(in_flight) == IN_FLIGHT:
                self._land(*in_flight.popleft())
            parts = {k: (gradient[slice(*self.bounds[k])], versions[k]) for k in shards}
            in_flight.append((handle.push.remote(parts), len(shards)))

    def _land(self, ref: Any, n_shards: int) -> None:
        landed: dict[int, Version] = _reached(ref) or {}
        self.lost_pushes += n_shards - len(landed)
        self._see(landed)

    def _see(self, versions: dict[int, Version]) -> None:
        for k, version in versions.items():
            self.seen[k] = max(version, self.seen.get(k, version))


class RemoteReplay:
    """Replay shards in other processes."""

    def __init__(self, shards: list[Any], *, home: int | None) -> None:
        """Reach shards.

        Args:
            shards: for each, its process's handle and its number there.
            home: the one that is asked first, or written to; None: any.
        """
        self._shards = shards
        self._home = home
        self._asked: tuple[int, Any] | None = None
        self._adding: deque[Any] = deque()
        self._turn = 0
        self.detours = 0
        """Minibatches that came from another shard than the learner's own."""
        self.lost_chunks = 0

    def add(self, chunk: Chunk) -> None:
        """Send a chunk to the home shard, or to each in turn."""
        k = self._turn % len(self._shards) if self._home is None else self._home
        self._turn += 1
        if len(self._adding) == IN_FLIGHT and _reached(self._adding.popleft()) is None:
            self.lost_chunks += 1
        handle, number = self._shards[k]
        self._adding.append(handle.add.remote(number, chunk))

    def sample(self, B: int, least: int) -> Batch | None:
        """A minibatch, asked for when the last one came; None where none was found.

        Args:
            B: its size.
            least: decisions that a shard must hold.
        """
        k, ref = self._asked or self._ask(self._first(), B, least)
        self._asked = None
        for _ in range(TRIES):
            batch: Batch | None = _reached(ref)
            if batch is not None:
                self.detours += k != self._home and self._home is not None
                self._asked = self._ask(self._first(), B, least)
                return batch
            k, ref = self._ask(random.randrange(len(self._shards)), B, least)  # noqa: S311
        return None

    def _first(self) -> int:
        return random.randrange(len(self._shards)) if self._home is None else self._home  # noqa: S311

    def _ask(self, k: int, B: int, least: int) -> tuple[int, Any]:
        handle, number = self._shards[k]
        return k, handle.sample.remote(number, B, least)
