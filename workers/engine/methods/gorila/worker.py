"""Processes of Gorila's actors and learners; a bundle is an actor, a learner and their own replay memory.

They do not import Ray, which runs them, and reach shards through a `ParameterServer` and `Replay`s. A process
that dies is restarted with the same arguments; its actors begin new episodes, its learners pull theta.
"""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from backend.specs.algorithms.gorila import GorilaConfig
from backend.specs.run import RunSpec
from workers.engine.envs import make_env
from workers.engine.envs.info import Totals, add_totals
from workers.engine.methods.base import RECORDED, EpisodeEnd, config_of
from workers.engine.methods.dqn.actor import DqnActor, frame_shape
from workers.engine.methods.gorila.learner import GradientWorker, Replica
from workers.engine.methods.gorila.parameters import ParameterServer, Version
from workers.engine.methods.gorila.shards import prepare_process
from workers.engine.nn.replay import Batch, ReplayChunk, ReplayMemory
from workers.engine.nn.schedules import annealed
from workers.engine.nn.seeds import MINIBATCH_STREAM

CHUNK_STEPS = 32
"""Decisions that an actor sends to a replay shard in one chunk."""


class Replay(Protocol):
    """Replay shards in other processes, as one actor or learner uses them."""

    detours: int
    lost_chunks: int

    def add(self, chunk: ReplayChunk) -> None:
        """Store a chunk."""

    def sample(self, B: int, min_transitions: int) -> Batch | None:
        """A minibatch from a shard that holds at least `min_transitions`, if there is one."""


@dataclass(frozen=True)
class WorkRequest:
    """For how long a process of actors and learners works, and with what settings."""

    config: GorilaConfig
    seconds: float
    agent_steps: int
    """Maximum; a process of learners ignores it."""
    watched: bool
    episodes_begun: dict[int, int]
    """Episodes begun by each actor, as the engine knows; for a process that replaces a dead one."""


@dataclass
class WorkReport:
    """What a process of actors and learners did on one request."""

    agent_steps: int = 0
    frames: int = 0
    gradients: int = 0
    """Number of gradients pushed, or discarded as outliers."""
    outliers: int = 0
    lost_pushes: int = 0
    detours: int = 0
    lost_chunks: int = 0
    decisions: list[tuple[int, float]] = field(default_factory=list)
    """The latest actions of its actors, and max Q of their states."""
    episodes: list[EpisodeEnd] = field(default_factory=list)
    live_frames: list[bytes] = field(default_factory=list)
    sums: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Metric -> sum over the learners' minibatches."""
    epsilon: float | None = None
    replica_updates: int = 0
    """Updates of theta+ that its theta contains."""
    versions: dict[int, Version] = field(default_factory=dict)
    """Newest known version of each parameter shard."""
    episodes_begun: dict[int, int] = field(default_factory=dict)
    fills: dict[int, float] = field(default_factory=dict)
    """Fill of each bundle's replay memory."""
    info: Totals = field(default_factory=dict)
    """Scalars of a custom environment's `info`."""


@dataclass(frozen=True)
class WorkerAssignment:
    """The actors and learners of a process, each with its replay; None: its bundle's own memory."""

    server: ParameterServer
    actors: dict[int, Replay | None]
    learners: dict[int, Replay | None]
    capacity: int
    """Capacity of a bundle's replay memory."""
    min_transitions: int
    """Transitions that a replay shard must hold before learners sample from it."""


class WorkerProcess:
    """Some actors, learners or bundles, which take turns."""

    def __init__(self, spec: RunSpec) -> None:
        prepare_process()
        self._spec = spec
        self._config = config_of(self._spec, GorilaConfig)
        self._assignment: WorkerAssignment | None = None
        self._turns = 0

    def work(self, request: WorkRequest, assignment: WorkerAssignment) -> WorkReport:
        """Act and learn; returns early when there is nothing to learn from, or no theta, yet.

        Args:
            request: for how long the worker works.
            assignment: what the worker is, the same each time. It comes with the request because Ray restarts
                a process with the arguments of its constructor, and these must not contain handles.
        """
        if self._assignment is None:
            self._assignment = assignment
            self._start(assignment)
        self._apply(request)
        report = WorkReport()
        until = time.monotonic() + request.seconds
        if not self._replica.ready:
            self._replica.pull()
        while self._replica.ready and time.monotonic() < until:
            if self._actors and report.agent_steps >= request.agent_steps:
                break
            acted = self._act(request, report)
            if not self._learn(report) and not acted:
                break
        return self._complete(report)

    def _start(self, assignment: WorkerAssignment) -> None:
        env = make_env(self._spec.environment, self._spec.environment_config)
        self._server: Any = assignment.server
        self._replica = Replica(
            self._config,
            env.observation_shape,
            len(env.action_names),
            assignment.server,
            torch.device("cpu"),
        )
        shape = frame_shape(self._spec, env)
        env.close()
        self._actor_replays, self._learner_replays = assignment.actors, assignment.learners
        self._min_transitions = assignment.min_transitions
        self._memories = {
            k: ReplayMemory(shape, assignment.capacity)
            for k, replay in assignment.actors.items()
            if replay is None
        }
        self._learners = {k: GradientWorker(self._replica) for k in assignment.learners}
        # A process that replaces a dead one, or of a resumed run, draws other minibatches.
        first = min(assignment.learners, default=0)
        self._rng = np.random.default_rng(
            np.random.SeedSequence((self._spec.seed, MINIBATCH_STREAM + first, self._replica.updates))
        )
        self._actors: dict[int, DqnActor] = {}

    def _apply(self, request: WorkRequest) -> None:
        """Apply the request's settings; the first time, create the actors."""
        self._config = self._replica.config = request.config
        for k, replay in self._actor_replays.items():
            if k not in self._actors:
                self._actors[k] = DqnActor(
                    self._spec,
                    k,
                    self._replica.network,
                    independent_chunks=replay is not None,
                    episodes_begun=request.episodes_begun.get(k, 0),
                )
        if RECORDED in self._actors:
            self._actors[RECORDED].play.set_live(request.watched)

    def _act(self, request: WorkRequest, report: WorkReport) -> bool:
        """Let each actor take a decision, in bundles `agent_steps_per_update`; return whether any did."""
        c = self._config
        rounds = c.agent_steps_per_update if self._memories else 1
        for _ in range(rounds if self._actors else 0):
            self._pull_when_due()
            epsilon = annealed(1.0, c.exploration_eps, self._replica.updates, c.exploration_anneal_updates)
            for k, actor in self._actors.items():
                if report.agent_steps >= request.agent_steps:
                    return True
                finished = actor.act(epsilon)
                report.agent_steps += 1
                report.frames += actor.frames
                report.epsilon = epsilon
                if finished is not None:
                    report.episodes.append(finished)
                self._store(k, actor)
        return bool(self._actors)

    def _pull_when_due(self) -> None:
        if self._turns % self._config.pull_interval == 0:
            self._replica.pull()
        self._turns += 1

    def _store(self, k: int, actor: DqnActor) -> None:
        replay = self._actor_replays[k]
        if replay is None:
            self._memories[k].add(actor.trajectory.take_chunk())
        elif len(actor.trajectory) >= CHUNK_STEPS + actor.shape.stack:
            replay.add(actor.trajectory.take_chunk())

    def _learn(self, report: WorkReport) -> bool:
        """Train each learner on a minibatch, if it gets one; return whether any did."""
        learned = False
        for k, learner in self._learners.items():
            if not self._actors:
                self._pull_when_due()
            batch = self._sample(k)
            if batch is None:
                continue
            learned = True
            self._replica.sync_target(self._replica.updates)
            for metric, value in learner.learn(batch, self._config.outlier_deviations).items():
                report.sums[metric] += value
            report.gradients += 1
        return learned

    def _sample(self, k: int) -> Batch | None:
        B = self._config.batch_size
        replay = self._learner_replays[k]
        if replay is not None:
            return replay.sample(B, self._min_transitions)
        memory = self._memories[k]
        return memory.sample(B, self._rng) if memory.holds(self._min_transitions) else None

    def _complete(self, report: WorkReport) -> WorkReport:
        """Add what the parts counted, and reset their counts."""
        if RECORDED in self._actors and (frame := self._actors[RECORDED].play.take_frame()) is not None:
            report.live_frames.append(frame)
        for actor in self._actors.values():
            add_totals(report.info, actor.play.take_info())
            report.decisions += actor.recent
            actor.recent.clear()
        for learner in self._learners.values():
            report.outliers += learner.outliers
            learner.outliers = 0
        replays = (*self._actor_replays.values(), *self._learner_replays.values())
        for replay in {id(replay): replay for replay in replays if replay is not None}.values():
            report.detours += replay.detours
            report.lost_chunks += replay.lost_chunks
            replay.detours = replay.lost_chunks = 0
        report.lost_pushes = self._server.lost_pushes
        self._server.lost_pushes = 0
        report.versions = dict(self._server.newest)
        report.replica_updates = self._replica.updates
        report.episodes_begun = {k: actor.play.episodes_begun for k, actor in self._actors.items()}
        report.fills = {k: memory.fill for k, memory in self._memories.items()}
        return report
