"""All processes of a Gorila run, seen from the engine: started, heard, refilled after a death, ended."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from backend.specs.algorithms.gorila import GorilaConfig
from backend.specs.run import RunSpec
from workers.engine.envs import make_world
from workers.engine.gorila.actor import shape_of
from workers.engine.gorila.books import Books
from workers.engine.gorila.cluster import RayCluster
from workers.engine.gorila.hosts import Crew, Order, ParameterHost, Replay, ReplayHost, WorkHost
from workers.engine.gorila.parameters import ParameterServer, Version

RETRY_S = 0.2
"""How long after a process did not answer it is asked again."""
DOWN_TIMEOUT_S = 300.0
"""A process that has not come back for so long will not."""
STORE_BYTES_A_PROCESS = 16 * 2**20


class PartFailedError(RuntimeError):
    """A part ended by an error of its own; the message is its traceback."""


@dataclass(eq=False)
class _Host:
    """A process, as the engine knows it."""

    name: str
    handle: Any
    parts: list[int]
    retry_at: float = 0.0
    down_since: float | None = None


@dataclass(eq=False)
class _Workers(_Host):
    """A process of actors and learners; `parts` are its actors."""

    crew: Crew = field(kw_only=True)
    asked_steps: int = 0


@dataclass(eq=False)
class _Shards(_Host):
    """A process of parameter shards."""

    life: int = 0
    filled: bool = False
    snapshots: dict[int, dict[str, Any]] = field(default_factory=dict)
    snapshot_at: float = 0.0


Heard = Callable[[Any], None]


class Fleet:
    """The processes; a call to one is never waited for alone."""

    def __init__(self, spec: RunSpec, bounds: list[tuple[int, int]], books: Books) -> None:
        """Start them all; `fill` comes next."""
        assert isinstance(spec.config, GorilaConfig)
        self._spec = spec
        self._config = c = spec.config
        self._books = books
        n = c.parts_per_process
        self._pending: dict[Any, tuple[_Host, str, Heard]] = {}
        processes = math.ceil(c.n_actors / n) + math.ceil(c.n_learners / n) + math.ceil(c.n_shards / n)
        largest = max(last - first for first, last in bounds) * 4 * n
        self._cluster = RayCluster(processes * (STORE_BYTES_A_PROCESS + 4 * largest))
        try:
            self._start(bounds)
            self._cluster.guard()
        except BaseException:
            self.close()
            raise

    def _start(self, bounds: list[tuple[int, int]]) -> None:
        from workers.engine.gorila.links import RemoteServer

        c, cluster = self._config, self._cluster
        self._parameters = [
            _Shards(_named("parameter shard", ks), cluster.start(i, ParameterHost), ks)
            for i, ks in enumerate(_groups(c.n_shards, c.parts_per_process))
        ]
        server = RemoteServer([(host.handle, host.parts) for host in self._parameters], bounds)
        self._replays: list[_Host] = []
        spec = self._spec.model_dump(mode="json")
        self._workers = [
            _Workers(name, cluster.start(place, WorkHost, spec), list(crew.actors), crew=crew)
            for place, name, crew in self._crews(server)
        ]

    def _crews(self, server: ParameterServer) -> list[tuple[int, str, Crew]]:
        """Who works in which process; begins processes of replay shards on the way."""
        c = self._config
        groups = _groups(c.n_actors, c.parts_per_process)
        n_replays = c.n_replay_shards if c.replay == "global" else c.n_actors
        capacity = math.ceil(c.replay_capacity / n_replays)
        least = math.ceil(c.learning_starts_agent_steps / n_replays)
        if c.replay == "bundled":
            return [
                (i, _named("bundle", ks), Crew(server, dict.fromkeys(ks), dict.fromkeys(ks), capacity, least))
                for i, ks in enumerate(groups)
            ]
        shards = self._start_replays(n_replays, capacity)
        local = c.replay == "local"

        def replay(k: int) -> Replay | None:
            from workers.engine.gorila.links import RemoteReplay

            return RemoteReplay(shards, home=k % n_replays if local else None)

        def crew(actors: list[int], learners: list[int]) -> Crew:
            acting, learning = ({k: replay(k) for k in ks} for ks in (actors, learners))
            return Crew(server, acting, learning, capacity, least)

        acting = [(i, _named("actor", ks), crew(ks, [])) for i, ks in enumerate(groups)]
        learners = _groups(c.n_learners, c.parts_per_process)
        learning = [(i, _named("learner", ks), crew([], ks)) for i, ks in enumerate(learners)]
        return acting + learning

    def _start_replays(self, n: int, capacity: int) -> list[tuple[Any, int]]:
        world = make_world(self._spec.environment, self._spec.environment_config)
        shape = shape_of(self._spec, world)
        world.close()
        shards: list[tuple[Any, int]] = []
        for i, ks in enumerate(_groups(n, self._config.parts_per_process)):
            host = _Host(
                _named("replay shard", ks),
                self._cluster.start(i, ReplayHost, shape, dict.fromkeys(ks, capacity)),
                ks,
            )
            self._replays.append(host)
            shards += [(host.handle, k) for k in ks]
        return shards

    def fill(self, snapshots: list[dict[str, Any]]) -> None:
        """Give each parameter shard its part, in a new life, and wait until all have it."""
        self.rest()
        for host in self._parameters:
            host.snapshots = {k: snapshots[k] for k in host.parts}
            host.filled = False
        while not all(host.filled for host in self._parameters):
            for host in self._parameters:
                if not host.filled:
                    self._refill(host)
            self._hear(math.inf)

    def work_until(self, until: float, order: Order) -> None:
        """Keep everyone at work until `until`, or until as many decisions are done as ordered."""
        self._config = order.config
        done = self._books.agent_steps + order.agent_steps
        while (now := time.monotonic()) < until and self._books.agent_steps < done:
            self._employ(order, done)
            self._inspect(now)
            self._hear(until)

    def rest(self) -> None:
        """Hear everyone out and give no more orders."""
        while self._pending:
            self._hear(math.inf)

    def rested_snapshots(self) -> list[dict[str, Any]]:
        """Each parameter shard's, while no one works."""
        self.rest()
        for host in self._parameters:
            host.snapshot_at = 0.0
        asked = time.monotonic()
        while any(host.snapshot_at < asked for host in self._parameters):
            self._inspect(time.monotonic(), snapshots=True)
            self._hear(time.monotonic() + RETRY_S)
        self.rest()
        found = {k: its for host in self._parameters for k, its in host.snapshots.items()}
        return [found[k] for k in sorted(found)]

    def close(self) -> None:
        """End every process."""
        self._pending.clear()
        self._cluster.close()

    def _employ(self, order: Order, done: int) -> None:
        """Give an order to everyone who has none; together no more decisions than are left."""
        now = time.monotonic()
        busy = {host for host, _, _ in self._pending.values() if isinstance(host, _Workers)}
        idle = [host for host in self._workers if host not in busy and host.retry_at <= now]
        left = done - self._books.agent_steps - sum(host.asked_steps for host in busy)
        actors = sum(bool(host.parts) for host in idle)
        for host in idle:
            host.asked_steps = 0
            if host.parts:
                host.asked_steps = min(math.ceil(left / actors), 2**31)
                left -= host.asked_steps
                actors -= 1
                if host.asked_steps == 0:
                    continue
            mine = {k: order.episodes_begun.get(k, 0) for k in host.parts}
            told = replace(order, agent_steps=host.asked_steps, episodes_begun=mine)
            self._ask(host, "work", host.handle.work.remote(told, host.crew), partial(self._hear_work, host))

    def _inspect(self, now: float, *, snapshots: bool = False) -> None:
        """Ask shards for their books and, where they are due, snapshots; fill those that were begun anew."""
        asked = {(host, kind) for host, kind, _ in self._pending.values()}
        for host in self._parameters:
            if host.retry_at > now or any(of is host for of, _ in asked):
                continue
            if not host.filled:
                self._refill(host)
            elif snapshots or now - host.snapshot_at >= self._config.snapshot_interval_s:
                self._ask(
                    host,
                    "snapshot",
                    host.handle.snapshot.remote(),
                    partial(self._keep, host, now),
                )
            else:
                self._ask(
                    host,
                    "books",
                    host.handle.report.remote(self._config.learning_rate),
                    partial(self._hear_shards, host),
                )
        for replays in self._replays:
            if replays.retry_at <= now and (replays, "fills") not in asked:
                self._ask(replays, "fills", replays.handle.report.remote(), self._books.hear_fills)

    def _ask(self, host: _Host, kind: str, ref: Any, heard: Heard) -> None:
        self._pending[ref] = (host, kind, heard)

    def _hear(self, until: float) -> None:
        """Wait for the next answers and take them.

        Raises:
            PartFailedError: a part ended by an error of its own.
        """
        import ray
        from ray.exceptions import RayError, RayTaskError

        left = None if until == math.inf else max(until - time.monotonic(), 0.0)
        if not self._pending:
            time.sleep(RETRY_S if left is None else min(left, RETRY_S))
            return
        ready, _ = ray.wait(list(self._pending), num_returns=1, timeout=left)
        for ref in ready:
            host, _, heard = self._pending.pop(ref)
            try:
                heard(ray.get(ref))
                host.down_since = None
            except RayTaskError as error:
                raise PartFailedError(f"{host.name}: {error}") from None
            except RayError as error:
                if "error raised in its creation task" in str(error):
                    raise PartFailedError(f"{host.name}: {error}") from None
                self._lose(host)

    def _lose(self, host: _Host) -> None:
        now = time.monotonic()
        host.retry_at = now + RETRY_S
        if isinstance(host, _Shards):
            host.filled = False
        if host.down_since is None:
            host.down_since = now
            self._books.warn(f"the process of {host.name} died; another takes its place")
        if now - host.down_since > DOWN_TIMEOUT_S:
            raise PartFailedError(f"the process of {host.name} died and has not come back")

    def _hear_work(self, host: _Workers, report: Any) -> None:
        host.asked_steps = 0
        if report.agent_steps == 0 and report.gradients == 0:
            # It had nothing to learn from, or by.
            host.retry_at = time.monotonic() + RETRY_S
        self._books.hear_work(host.parts, report)

    def _hear_shards(self, host: _Shards, report: Any) -> None:
        if report.life != host.life:
            host.filled = False
            return
        self._books.hear_shards(report)
        host.retry_at = time.monotonic() + RETRY_S

    def _keep(self, host: _Shards, at: float, snapshots: dict[int, dict[str, Any]]) -> None:
        if not snapshots:
            host.filled = False
            return
        host.snapshots = snapshots
        host.snapshot_at = at

    def _refill(self, host: _Shards) -> None:
        if any(of is host for of, _, _ in self._pending.values()) or host.retry_at > time.monotonic():
            return
        life = host.life + 1
        filling = host.handle.fill.remote(host.snapshots, self._config, life)
        self._ask(host, "fill", filling, partial(self._filled, host, life))

    def _filled(self, host: _Shards, life: int, _: None) -> None:
        host.life = life
        host.filled = True
        lost = {
            k: self._books.begin_life(k, Version(life, its["updates"])) for k, its in host.snapshots.items()
        }
        if any(lost.values()):
            self._books.warn(f"{host.name} went back to a snapshot; {max(lost.values())} updates are lost")


def _groups(n: int, size: int) -> list[list[int]]:
    return [list(range(first, min(first + size, n))) for first in range(0, n, size)]


def _named(what: str, ks: list[int]) -> str:
    return f"{what} {ks[0]}" if len(ks) == 1 else f"{what}s {ks[0]} to {ks[-1]}"
