"""The learner of the asynchronous methods: starts, replaces and stops actor-learners, sums their reports."""

import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backend.specs.algorithms.asynchronous import AsynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.envs import make_env
from workers.engine.envs.info import add_totals
from workers.engine.methods.asynchronous.actor import ActorFactories, ActorReport, run_actor
from workers.engine.methods.asynchronous.memory import (
    AGENT_STEPS,
    FRAMES,
    UPDATES,
    Counts,
    Memory,
    Vectors,
)
from workers.engine.methods.base import (
    ADVANCE_S,
    RECORDED,
    Method,
    MetricsGate,
    Policy,
    Samples,
    StepResult,
    check_finite,
    check_network,
)
from workers.engine.methods.random_play import RandomPlay, centre
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.nn.schedules import learning_rate
from workers.engine.processes.child import ChannelClosedError, Child, preload
from workers.engine.processes.child_pool import REPLACED, ChildPool
from workers.engine.processes.phases import COMPILING, enter_phase

MAX_PARTS = 200
"""Reports of actors whose samples are kept until they are asked for."""


@dataclass(slots=True)
class _Reports:
    """Sums of the actors' reports since the last `advance` or `settle`."""

    result: StepResult = field(default_factory=lambda: StepResult(0, 0, 0))
    sums: dict[str, float] = field(default_factory=dict)
    updates: int = 0


class HogwildLearner:
    """Actor-learners on one theta in shared memory; see `workers.engine.methods.base.Learner`.

    Actors run between the calls of `advance` too; `settle`, `policy` and `state` pause them until the next
    `advance`.
    """

    device = "cpu"
    n_rollout_workers: int | None = None

    def __init__(self, spec: RunSpec, factories: ActorFactories, *, restored: bool = False) -> None:
        self._spec = spec
        self.config: AsynchronousConfig = factories.config_of(spec)
        self._factories = factories
        env = make_env(spec.environment, spec.environment_config)
        self.action_names = env.action_names
        torch.manual_seed(spec.seed)
        self.network = factories.network(self.config, env)
        env.close()
        initial = FlatParameters(self.network).theta
        self._memory = Memory(len(initial))
        self.vectors = Vectors(self._memory)
        self.vectors.initialise(self.config)
        self.vectors.theta.copy_(initial)
        self.vectors.theta_minus.copy_(initial)
        FlatParameters(self.network, theta=self.vectors.theta)
        self.counts = Counts(self._memory.counts)
        self._counted = {AGENT_STEPS: 0, FRAMES: 0, UPDATES: 0}
        self._gate = MetricsGate()
        self._reports = _Reports()
        self._samples: dict[str, deque[NDArray[Any]]] = {}
        self._watched = False
        self._running = False
        self._paused: dict[int, dict[str, Any]] = {}
        """Actor -> its state as it paused."""
        preload("workers.engine.methods.registry", "workers.engine.nn.kernels")
        enter_phase(f"importing packages and {COMPILING}")  # by the fork server, for all actors
        self._actors = ChildPool(self._start, lambda k: int(self.counts.of(k)[UPDATES]))
        try:
            self._actors.resize(self.config.n_actors)
            self._pause()
            self.random_play: RandomPlay = centre(self.network, spec, restored=restored)
            self.vectors.theta_minus.copy_(self.vectors.theta)
        except BaseException:
            self.close()
            raise

    def advance(self, progress: float, *, watched: bool) -> StepResult:
        """Let the actors act and learn for `ADVANCE_S`, and return their results."""
        if watched != self._watched:
            self._watched = watched
            self._actors.send(RECORDED, "watch", watched)
        self._running = True
        for k in self._paused:
            self._actors.send(k, "go")
        self._paused.clear()
        until = time.monotonic() + ADVANCE_S
        while (left := until - time.monotonic()) > 0 and not self._done():
            self._receive(left)
        if self._done():
            self._pause()
        return self._take(progress)

    def samples(self) -> Samples:
        """Some of the actors' latest actions with V or max Q, and the gradients of their last updates."""
        samples, self._samples = self._samples, {}
        return {name: np.concatenate(parts) for name, parts in samples.items()}

    def settle(self, progress: float) -> StepResult:
        """Pause the actors, and return their results since the last `advance`."""
        self._pause()
        return self._take(progress)

    def change(self, config: AsynchronousConfig) -> None:
        """Continue with this config; actors are started or stopped if their number changes."""
        self.config = config
        self.vectors.initialise(config)
        self._spec = self._spec.model_copy(update={"config": config})
        kept = [k for k in self._actors.numbers if k < config.n_actors]
        self._paused = {k: state for k, state in self._paused.items() if k in kept}
        for k in kept:
            self._actors.send(k, "change", config)
        self._actors.resize(config.n_actors)

    def policy(self, seed: int) -> Policy:
        """The current policy, which does not change until the next `advance`."""
        self._pause()
        check_finite(self.vectors.theta)
        return self._factories.policy(self.network, torch.device("cpu"), seed)

    def state(self) -> dict[str, Any]:
        """Parameters, statistics, counts, and the state of each actor."""
        self._pause()
        check_finite(self.vectors.theta)
        return {
            "theta": self.vectors.theta.clone(),
            "theta_minus": self.vectors.theta_minus.clone(),
            "statistics": {
                name: tensor.clone() for name, tensor in self.vectors.statistics(self.config).items()
            },
            "counts": dict(self._counted),
            "actors": [self._paused[k] for k in self._actors.numbers],
            "episodes_begun": self.counts.episodes_begun(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`: each actor continues its episode, and one that did not run then begins its
        next one.

        Raises:
            ValueError: the state is of another network.
        """
        check_network(len(state["theta"]), len(self.vectors.theta))
        self.vectors.theta.copy_(state["theta"])
        self.vectors.theta_minus.copy_(state["theta_minus"])
        for name, tensor in self.vectors.statistics(self.config).items():
            if name in state["statistics"]:
                tensor.copy_(state["statistics"][name])
        self._counted = dict(state["counts"])
        self.counts.restore(self._counted, state["episodes_begun"])
        self._memory.copied_at_frames[0] = self._counted[FRAMES]
        self._gate = MetricsGate()
        kept = dict(enumerate(state["actors"]))
        self._paused.clear()
        for k in self._actors.numbers:
            self._actors.send(k, "restore", kept.get(k))
        self._await_paused()

    def close(self) -> None:
        """Stop every actor."""
        self._actors.resize(0)
        self._memory.close()

    def _start(self, k: int) -> Child:
        actor = Child(run_actor, self._spec, k, self._factories, self._memory, name=f"actor {k}")
        if k == RECORDED and self._watched:
            with suppress(ChannelClosedError):  # one that is dead is replaced
                actor.channel.send("watch", True)
        return actor

    def _pause(self) -> None:
        self._running = False
        for k in self._actors.numbers:
            if k not in self._paused:
                self._actors.send(k, "pause")
        self._await_paused()

    def _await_paused(self) -> None:
        while len(self._paused) < len(self._actors.numbers):
            self._receive(None)

    def _done(self) -> bool:
        bound = self._spec.stop.agent_steps
        return bound is not None and self.counts.total(AGENT_STEPS) >= bound

    def _receive(self, timeout_s: float | None) -> None:
        """Wait for the next messages and handle them."""
        for k, kind, content in self._actors.receive(timeout_s):
            match kind:
                case "report":
                    self._add_report(k, content)
                case "paused" if self._running:
                    self._actors.send(k, "go")
                case "paused":
                    self._paused[k] = content
                case _:
                    assert kind == REPLACED
                    self._paused.pop(k, None)
                    self._reports.result.warnings.append(content)

    def _add_report(self, k: int, report: ActorReport) -> None:
        reports = self._reports
        reports.result.episodes += report.episodes
        reports.result.live_frames += report.live_frames
        add_totals(reports.result.info, report.info)
        reports.updates += report.updates
        samples: Samples = {name: norm[None] for name, norm in report.gradient_norms.items()}
        if report.decisions:
            actions, values = zip(*report.decisions, strict=True)
            samples |= {"policy/actions": np.ravel(actions), "policy/values": np.array(values)}
        for name, part in samples.items():
            self._samples.setdefault(name, deque(maxlen=MAX_PARTS)).append(part)
        for metric, total in report.sums.items():
            reports.sums[metric] = reports.sums.get(metric, 0.0) + total
        if report.epsilon is not None:
            reports.result.metrics_by_source.setdefault(f"actor {k}", {})["exploration/epsilon"] = (
                report.epsilon
            )

    def _take(self, progress: float) -> StepResult:
        reports, self._reports = self._reports, _Reports()
        result = reports.result
        counts = {column: self.counts.total(column) for column in self._counted}
        since = {column: count - self._counted[column] for column, count in counts.items()}
        self._counted = counts
        result.agent_steps = since[AGENT_STEPS]
        result.frames = since[FRAMES]
        result.updates = since[UPDATES]
        result.metrics = {metric: total / reports.updates for metric, total in reports.sums.items()}
        c = self.config
        result.metrics["optim/learning_rate"] = learning_rate(
            c.learning_rate, c.learning_rate_schedule, progress
        )
        return self._gate.pass_on(result)


def asynchronous_method(factories: ActorFactories) -> Method:
    """The `METHOD` of an algorithm whose actor-learners update one theta without locks."""
    return Method(
        partial(HogwildLearner, factories=factories), factories.network, factories.policy, factories
    )
