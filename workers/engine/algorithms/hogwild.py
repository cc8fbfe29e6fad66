"""The engine's side of the asynchronous methods: starts, hears and replaces actor-learners."""

import pickle
import time
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.util import get_temp_dir
from typing import Any

import torch

from backend.specs.algorithms import AlgorithmConfig
from backend.specs.algorithms.asynchronous import AsynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.algorithms.hogwild_actor import RECORDED, ActorReport, MethodMaker, Task, run_actor
from workers.engine.algorithms.hogwild_memory import (
    AGENT_STEPS,
    FRAMES,
    UPDATES,
    Counts,
    Memory,
    Vectors,
)
from workers.engine.envs import make_world
from workers.engine.helpers import Helper, HelperFailedError, fork_server
from workers.engine.learner import Advance, Policy
from workers.engine.optimizers import FlatParameters
from workers.engine.schedules import linear

ADVANCE_S = 0.2
"""How long the training loop leaves the actors to themselves before it looks for stops and changes."""


@dataclass(slots=True)
class _Actor:
    """One actor-learner's process."""

    helper: Helper
    channel: Connection
    updates_at_start: int
    paused: bool = False
    state: dict[str, Any] | None = None
    """As it was when it paused."""


@dataclass(slots=True)
class _Heard:
    """What the actors have said since the last `advance`."""

    advance: Advance = field(default_factory=lambda: Advance(0, 0, 0))
    sums: dict[str, float] = field(default_factory=dict)
    updates: int = 0


class Hogwild:
    """Actor-learners on one theta in shared memory; see `workers.engine.learner.Learner`.

    Actors run between the calls of `advance` too; `policy` and `state` pause them until the next `advance`.
    """

    device = "cpu"

    def __init__(self, spec: RunSpec, maker: MethodMaker) -> None:
        assert isinstance(spec.config, AsynchronousConfig)
        self._spec = spec
        self.config = spec.config
        self._maker = maker
        world = make_world(spec.environment, spec.environment_config)
        self.action_names = world.action_names
        torch.manual_seed(spec.seed)
        self.network = maker.network(spec, world)
        world.close()
        initial = FlatParameters(self.network).theta
        self._memory = Memory.make(len(initial))
        self._vectors = Vectors(self._memory.vectors)
        self._vectors.theta.copy_(initial)
        self._vectors.theta_minus.copy_(initial)
        FlatParameters(self.network, theta=self._vectors.theta)
        self._counts = Counts(self._memory.counts)
        self._told = {AGENT_STEPS: 0, FRAMES: 0, UPDATES: 0}
        self._heard = _Heard()
        self._watched = False
        self._running = False
        self._context = fork_server("workers.engine.algorithms", "workers.engine.kernels")
        self._actors: dict[int, _Actor] = {}
        try:
            for k in range(self.config.n_actors):
                self._start(k)
            self._pause()
        except BaseException:
            self.close()
            raise

    def advance(self, progress: float, *, watched: bool) -> Advance:
        """Let the actors play and learn for a moment; tell what they did."""
        if watched != self._watched:
            self._watched = watched
            self._tell(RECORDED, "watch", watched)
        self._running = True
        for k, actor in self._actors.items():
            if actor.paused:
                actor.paused = False
                self._tell(k, "go")
        until = time.monotonic() + ADVANCE_S
        while (left := until - time.monotonic()) > 0 and not self._done():
            self._listen(left)
        if self._done():
            self._pause()
        return self._take(progress)

    def change(self, config: AlgorithmConfig) -> None:
        """Go on with other settings; actors are started or ended where their number changes."""
        assert isinstance(config, AsynchronousConfig)
        self.config = config
        self._spec = self._spec.model_copy(update={"config": config})
        for k in list(self._actors):
            if k >= config.n_actors:
                self._end(self._actors.pop(k))
            else:
                self._tell(k, "change", config)
        for k in range(config.n_actors):
            if k not in self._actors:
                self._start(k)

    def policy(self, seed: int) -> Policy:
        """The present policy, which rests until the next `advance`."""
        self._pause()
        return self._maker.policy(self._spec, self.network, torch.device("cpu"), seed)

    def state(self) -> dict[str, Any]:
        """Parameters, statistics, counts, and where each actor is."""
        self._pause()
        return {
            "theta": self._vectors.theta.clone(),
            "theta_minus": self._vectors.theta_minus.clone(),
            "statistics": {
                name: tensor.clone() for name, tensor in self._vectors.statistics(self.config).items()
            },
            "counts": dict(self._told),
            "actors": [self._actors[k].state for k in sorted(self._actors)],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`; each actor goes on with the episode it was in.

        Raises:
            ValueError: the state is of another network.
        """
        if state["theta"].shape != self._vectors.theta.shape:
            raise ValueError("the checkpoint is of another network")
        self._vectors.theta.copy_(state["theta"])
        self._vectors.theta_minus.copy_(state["theta_minus"])
        for name, tensor in self._vectors.statistics(self.config).items():
            if name in state["statistics"]:
                tensor.copy_(state["statistics"][name])
        self._told = dict(state["counts"])
        self._counts.go_on_from(self._told)
        kept = state["actors"]
        for k, actor in self._actors.items():
            if k < len(kept):
                actor.paused = False
                self._tell(k, "restore", kept[k])
        self._await_paused()

    def close(self) -> None:
        """End every actor."""
        for actor in self._actors.values():
            actor.channel.close()
        for actor in self._actors.values():
            actor.helper.reap()
        self._actors.clear()
        self._memory.close()

    def _start(self, k: int, fruitless_deaths: int = 0) -> None:
        mine, theirs = self._context.Pipe()
        spec = self._spec.model_dump(mode="json")
        task = Task(spec, k, self._maker, self._memory, theirs, get_temp_dir())
        process = self._context.Process(target=run_actor, args=(task,), name=f"actor {k}")
        process.start()
        theirs.close()
        updates = int(self._counts.of(k)[UPDATES])
        self._actors[k] = _Actor(Helper(process, fruitless_deaths), mine, updates)
        if k == RECORDED and self._watched:
            self._tell(k, "watch", True)

    def _end(self, actor: _Actor) -> None:
        actor.channel.close()
        actor.helper.reap()

    def _tell(self, k: int, request: str, argument: Any = None) -> None:
        # One that is dead is replaced when its end is heard.
        with suppress(OSError):
            self._actors[k].channel.send_bytes(pickle.dumps((request, argument)))

    def _pause(self) -> None:
        self._running = False
        for k, actor in self._actors.items():
            if not actor.paused:
                self._tell(k, "pause")
        self._await_paused()

    def _await_paused(self) -> None:
        while not all(actor.paused for actor in self._actors.values()):
            self._listen(None)

    def _done(self) -> bool:
        bound = self._spec.stop.agent_steps
        return bound is not None and self._counts.total(AGENT_STEPS) >= bound

    def _listen(self, timeout_s: float | None) -> None:
        """Wait for the next messages and take them."""
        channels = {actor.channel: k for k, actor in self._actors.items()}
        for channel in wait(list(channels), timeout_s):
            k = channels[channel]  # type: ignore[index]
            try:
                kind, content = pickle.loads(self._actors[k].channel.recv_bytes())  # noqa: S301
            except (EOFError, OSError):
                self._replace(k)
                continue
            match kind:
                case "report":
                    self._hear(k, content)
                case "paused":
                    self._actors[k].paused = not self._running
                    self._actors[k].state = content
                    if self._running:
                        self._tell(k, "go")
                case "failed":
                    raise HelperFailedError(content)

    def _replace(self, k: int) -> None:
        """Start another actor in place of one that was killed.

        Raises:
            HelperFailedError: it was not killed, but ended; or none of those before it came to learn.
        """
        actor = self._actors.pop(k)
        fruitless = actor.updates_at_start == int(self._counts.of(k)[UPDATES])
        try:
            warning, deaths = actor.helper.mourn(fruitless=fruitless)
        finally:
            actor.channel.close()
        self._heard.advance.warnings.append(warning)
        self._start(k, deaths)

    def _hear(self, k: int, report: ActorReport) -> None:
        heard = self._heard
        heard.advance.episodes += report.episodes
        heard.advance.pictures += report.pictures
        heard.updates += report.updates
        for metric, total in report.sums.items():
            heard.sums[metric] = heard.sums.get(metric, 0.0) + total
        if report.epsilon is not None:
            heard.advance.of_sources.setdefault(f"actor {k}", {})["exploration/epsilon"] = report.epsilon

    def _take(self, progress: float) -> Advance:
        heard, self._heard = self._heard, _Heard()
        advance = heard.advance
        now = {column: self._counts.total(column) for column in self._told}
        made = {column: now[column] - self._told[column] for column in now}
        self._told = now
        advance.agent_steps = made[AGENT_STEPS]
        advance.frames = made[FRAMES]
        advance.updates = made[UPDATES]
        advance.internals = {metric: total / heard.updates for metric, total in heard.sums.items()}
        rate = self.config.learning_rate
        if self.config.learning_rate_schedule == "linear":
            rate = linear(rate, progress)
        advance.internals["optim/learning_rate"] = rate
        return advance
