"""The processes of Gorila: each hosts parts of one kind, and answers one call at a time.

They know nothing of Ray; what they are given to reach each other by does. One that dies is begun anew with
the same arguments: parameters then come back from the engine's snapshot, replay is empty, actors and learners
take theirs from the shards.
"""

import os
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from backend.specs.algorithms.gorila import GorilaConfig
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.devices import prepare_torch
from workers.engine.envs import make_world
from workers.engine.gorila.actor import RECORDED, Actor, shape_of
from workers.engine.gorila.learner import Learner
from workers.engine.gorila.parameters import ParameterServer, ParameterShard, ShardBooks, Version
from workers.engine.gorila.replica import Replica
from workers.engine.learner import EpisodeEnd
from workers.engine.lifeline import become_helper
from workers.engine.replay import Batch, Chunk, ReplayShard, Shape
from workers.engine.schedules import annealed

CHUNK = 32
"""Decisions that an actor sends to a replay shard at once."""


def _settle() -> None:
    become_helper(os.getppid())
    prepare_torch()
    # What comes through the object store can be read only, which is all that is done with it.
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


@dataclass(frozen=True)
class ShardReport:
    """What a process of parameter shards did since it was last asked."""

    life: int | None
    """None: it has just been begun, and waits for its shards."""
    versions: dict[int, Version]
    books: dict[int, ShardBooks]


class ParameterHost:
    """Some parameter shards."""

    def __init__(self) -> None:
        _settle()
        self._shards: dict[int, ParameterShard] = {}
        self._life: int | None = None

    def fill(self, snapshots: dict[int, dict[str, Any]], config: GorilaConfig, life: int) -> None:
        """Begin a life with these shards."""
        self._shards = {
            k: ParameterShard(
                torch.zeros_like(its["theta"]), config, max_staleness=config.max_gradient_staleness
            )
            for k, its in snapshots.items()
        }
        for k, shard in self._shards.items():
            shard.restore(snapshots[k], life=life)
        self._life = life

    def push(self, parts: dict[int, tuple[NDArray[np.float32], Version]]) -> dict[int, Version]:
        """Apply parts of a gradient, or discard them; the versions of the shards that are here."""
        return {
            k: self._shards[k].push(torch.from_numpy(dtheta), version)
            for k, (dtheta, version) in parts.items()
            if k in self._shards
        }

    def pull(self, known: dict[int, Version]) -> dict[int, tuple[Version, NDArray[np.float32] | None]]:
        """What the shards that are here have, given the versions known."""
        found: dict[int, tuple[Version, NDArray[np.float32] | None]] = {}
        for k in known.keys() & self._shards.keys():
            version, theta = self._shards[k].pull(known[k])
            # Arrays travel without being pickled; tensors would not.
            found[k] = (version, None if theta is None else theta.numpy())
        return found

    def report(self, learning_rate: float) -> ShardReport:
        """Tell what was done; go on with this learning rate."""
        for shard in self._shards.values():
            shard.learning_rate = learning_rate
        return ShardReport(
            self._life,
            {k: shard.version for k, shard in self._shards.items()},
            {k: shard.take_books() for k, shard in self._shards.items()},
        )

    def snapshot(self) -> dict[int, dict[str, Any]]:
        """Each shard's."""
        return {k: shard.snapshot() for k, shard in self._shards.items()}


class ReplayHost:
    """Some replay shards."""

    def __init__(self, shape: Shape, capacities: dict[int, int]) -> None:
        _settle()
        self._shards = {k: ReplayShard(shape, capacity) for k, capacity in capacities.items()}
        self._rng = np.random.default_rng()

    def add(self, k: int, chunk: Chunk) -> bool:
        """Write a chunk into shard k; True, which one who is gone cannot say."""
        self._shards[k].add(chunk)
        return True

    def sample(self, k: int, B: int, least: int) -> Batch | None:
        """A minibatch of shard k, once it holds so many decisions."""
        shard = self._shards[k]
        return shard.sample(B, self._rng) if shard.holds(least) else None

    def report(self) -> dict[int, float]:
        """How full each shard is."""
        return {k: shard.fill for k, shard in self._shards.items()}


class Replay(Protocol):
    """Shards of a replay memory, as an actor or a learner of another process sees them."""

    detours: int
    lost_chunks: int

    def add(self, chunk: Chunk) -> None:
        """Store a chunk."""

    def sample(self, B: int, least: int) -> Batch | None:
        """A minibatch from a shard that holds at least so many decisions, if there is one."""


@dataclass(frozen=True)
class Order:
    """How long and how a process of actors and learners shall work."""

    config: GorilaConfig
    seconds: float
    agent_steps: int
    """At most so many decisions."""
    watched: bool
    episodes_begun: dict[int, int]
    """By each actor, as the engine knows; for a process that takes a dead one's place."""


@dataclass
class WorkReport:
    """What a process of actors and learners did on an order."""

    agent_steps: int = 0
    frames: int = 0
    gradients: int = 0
    """Sent or discarded as outliers."""
    outliers: int = 0
    lost_pushes: int = 0
    detours: int = 0
    lost_chunks: int = 0
    episodes: list[EpisodeEnd] = field(default_factory=list)
    pictures: list[bytes] = field(default_factory=list)
    sums: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Metric -> sum over the learners' minibatches."""
    epsilon: float | None = None
    updates_seen: int = 0
    """Global updates that its theta has behind it."""
    versions: dict[int, Version] = field(default_factory=dict)
    """Newest known of each parameter shard."""
    episodes_begun: dict[int, int] = field(default_factory=dict)
    fills: dict[int, float] = field(default_factory=dict)
    """Of bundled replay shards."""


@dataclass(frozen=True)
class Crew:
    """Which actors and learners a process has, and the replay each one uses; None: its bundle's own."""

    server: ParameterServer
    actors: dict[int, Replay | None]
    learners: dict[int, Replay | None]
    capacity: int
    """Of a bundle's own replay shard."""
    least: int
    """Decisions that a replay shard must hold before it is learned from."""


class WorkHost:
    """Some actors, learners or bundles of both, which take turns."""

    def __init__(self, spec: dict[str, Any]) -> None:
        _settle()
        self._spec: RunSpec = parse_run_spec(spec)
        assert isinstance(self._spec.config, GorilaConfig)
        self._config = self._spec.config
        self._crew: Crew | None = None
        self._rng = np.random.default_rng()
        self._turns = 0

    def work(self, order: Order, crew: Crew) -> WorkReport:
        """Act and learn as ordered; less where there is nothing to learn from or by yet.

        Args:
            order: how long.
            crew: who works here, the same each time; it comes with the order because Ray, which begins a
                process anew with the arguments of its constructor, wants no handles among these.
        """
        if self._crew is None:
            self._crew = crew
            self._begin(crew)
        self._take(order)
        report = WorkReport()
        until = time.monotonic() + order.seconds
        if not self._replica.ready:
            self._replica.pull()
        while self._replica.ready and time.monotonic() < until:
            if self._actors and report.agent_steps >= order.agent_steps:
                break
            acted = self._act(order, report)
            if not self._learn(report) and not acted:
                break
        return self._close(report)

    def _begin(self, crew: Crew) -> None:
        world = make_world(self._spec.environment, self._spec.environment_config)
        self._server: Any = crew.server
        self._replica = Replica(
            self._config.network,
            world.observation_shape,
            len(world.action_names),
            crew.server,
            torch.device("cpu"),
        )
        shape = shape_of(self._spec, world)
        world.close()
        self._acting, self._learning = crew.actors, crew.learners
        self._least = crew.least
        self._bundled = {
            k: ReplayShard(shape, crew.capacity) for k, its in crew.actors.items() if its is None
        }
        self._learners = {k: Learner(self._replica, self._config) for k in crew.learners}
        self._actors: dict[int, Actor] = {}

    def _take(self, order: Order) -> None:
        self._config = order.config
        for k in self._acting:
            if k not in self._actors:
                whole = self._acting[k] is not None
                begun = order.episodes_begun.get(k, 0)
                self._actors[k] = Actor(self._spec, k, self._replica, whole=whole, episodes_begun=begun)
        for learner in self._learners.values():
            learner.config = order.config
            learner.outlier_deviations = order.config.outlier_deviations
        if RECORDED in self._actors:
            self._actors[RECORDED].play.watch(order.watched)

    def _act(self, order: Order, report: WorkReport) -> bool:
        """Each actor's decisions between two updates; a single one each where they are not bundled."""
        c = self._config
        rounds = c.agent_steps_per_update if self._bundled else 1
        for _ in range(rounds if self._actors else 0):
            if self._turns % c.pull_interval == 0:
                self._replica.pull()
            self._turns += 1
            epsilon = annealed(1.0, c.exploration_eps, self._replica.updates, c.exploration_anneal_updates)
            for k, actor in self._actors.items():
                if report.agent_steps >= order.agent_steps:
                    return True
                finished = actor.act(epsilon)
                report.agent_steps += 1
                report.frames += actor.frames
                report.epsilon = epsilon
                if finished is not None:
                    report.episodes.append(finished)
                self._store(k, actor)
        return bool(self._actors)

    def _store(self, k: int, actor: Actor) -> None:
        replay = self._acting[k]
        if replay is None:
            self._bundled[k].add(actor.trajectory.take())
        elif len(actor.trajectory) >= CHUNK + actor.shape.stack:
            replay.add(actor.trajectory.take())

    def _learn(self, report: WorkReport) -> bool:
        """One minibatch a learner, where there is one."""
        c, learned = self._config, False
        for k, learner in self._learners.items():
            if not self._actors:
                if self._turns % c.pull_interval == 0:
                    self._replica.pull()
                self._turns += 1
            batch = self._batch(k)
            if batch is None:
                continue
            learned = True
            self._replica.sync_target(c.target_update_updates)
            for metric, value in learner.learn(batch).items():
                report.sums[metric] += value
            report.gradients += 1
        return learned

    def _batch(self, k: int) -> Batch | None:
        B, least = self._config.batch_size, self._least
        replay = self._learning[k]
        if replay is not None:
            return replay.sample(B, least)
        own = self._bundled[k]
        return own.sample(B, self._rng) if own.holds(least) else None

    def _close(self, report: WorkReport) -> WorkReport:
        if RECORDED in self._actors and (picture := self._actors[RECORDED].play.take_picture()) is not None:
            report.pictures.append(picture)
        for learner in self._learners.values():
            report.outliers += learner.outliers
            learner.outliers = 0
        for replay in {id(r): r for r in (*self._acting.values(), *self._learning.values())}.values():
            if replay is not None:
                report.detours += replay.detours
                report.lost_chunks += replay.lost_chunks
                replay.detours = replay.lost_chunks = 0
        report.lost_pushes = self._server.lost_pushes
        self._server.lost_pushes = 0
        report.versions = dict(self._server.seen)
        report.updates_seen = self._replica.updates
        report.episodes_begun = {k: actor.play.episodes_begun for k, actor in self._actors.items()}
        report.fills = {k: shard.fill for k, shard in self._bundled.items()}
        return report
