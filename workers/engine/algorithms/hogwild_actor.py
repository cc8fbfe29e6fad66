"""One asynchronous actor-learner: a single-threaded process that plays and learns by itself.

The loop is that of Algorithms 1, S1 and S2 of Mnih et al. 2016; what differs between them is a `Method`.
"""

import pickle
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from backend.specs.algorithms.asynchronous import AsynchronousConfig
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.algorithms.hogwild_memory import (
    AGENT_STEPS,
    EPISODES_BEGUN,
    FRAMES,
    UPDATES,
    Counts,
    Memory,
    Vectors,
)
from workers.engine.devices import prepare_torch
from workers.engine.envs.base import Action, World
from workers.engine.learner import EpisodeEnd, Policy
from workers.engine.lifeline import become_forked_helper
from workers.engine.optimizers import FlatParameters, clip_grad_norm_
from workers.engine.play import Play
from workers.engine.schedules import linear
from workers.engine.seeds import restore_rng, rng_state

REPORT_INTERVAL_S = 0.2
RECORDED = 0
"""The actor whose episodes are recorded and can be watched."""
_ACTIONS = 2**30
"""Stream of the random numbers actions are drawn with, apart from every actor's episodes."""


class Choice(NamedTuple):
    """An action and what made it: V or max Q, and pi or Q of every action."""

    action: Action
    value: float
    policy_A: NDArray[Any]


class Method(Protocol):
    """What makes one asynchronous method itself. It acts and learns by theta', which `begin` finds fresh."""

    @property
    def epsilon(self) -> float | None:
        """Share of random actions, where the method has one."""

    def begin(self) -> None:
        """Begin an update's decisions."""

    def choose(self, observation: NDArray[Any]) -> Choice:
        """Choose an action in the present state, (1, …)."""

    def learn(self, reward_T: list[float], after: NDArray[Any] | None) -> dict[str, float]:
        """Add the gradient of this update's decisions to dtheta.

        Args:
            reward_T: what each decision earned, clipped.
            after: the state after the last one, (1, …); None where that one was terminal.

        Returns:
            Metric -> value.
        """

    def begin_episode(self) -> None:
        """The next state is an episode's first."""

    def change(self, config: AsynchronousConfig) -> None:
        """Go on with other settings."""

    def state(self) -> dict[str, Any]:
        """What `restore` goes on from: tensors and plain values."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on in the middle of an episode."""


@dataclass(frozen=True)
class Tools:
    """What a method is built from, in an actor's process."""

    config: Any
    network: Any
    """Its parameters are theta', the actor's own copy."""
    theta_minus: Tensor
    rng: np.random.Generator
    counts: Counts
    world: World


def _no_target_network(config: Any) -> int:
    return 0


@dataclass(frozen=True)
class MethodMaker:
    """One asynchronous method's parts; functions of modules, so that they can be named to other processes."""

    network: Callable[[RunSpec, World], nn.Module]
    """Builds the network of a run."""
    policy: Callable[[RunSpec, Any, torch.device, int], Policy]
    """How such a network acts when it is evaluated, given a seed."""
    method: Callable[[Tools], Method]
    """The method in an actor."""
    target_frames: Callable[[Any], int] = _no_target_network
    """I_target in emulator frames, given the settings; 0 without a target network."""


@dataclass(frozen=True)
class Task:
    """What an actor's process is started with."""

    spec: dict[str, Any]
    actor: int
    maker: MethodMaker
    memory: Memory
    channel: Connection
    temporary: str = ""
    """The engine's folder for the fork server's socket, which an engine that is killed leaves behind."""


@dataclass(slots=True)
class ActorReport:
    """What an actor did since its last report."""

    episodes: list[EpisodeEnd] = field(default_factory=list)
    updates: int = 0
    sums: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Metric -> sum over the updates."""
    epsilon: float | None = None
    pictures: list[bytes] = field(default_factory=list)


def run_actor(task: Task) -> None:
    """Entry point of the process: act and learn until the engine closes the channel, or is gone."""
    become_forked_helper(task.temporary)
    prepare_torch()
    try:
        Actor(task).run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception:
        task.channel.send_bytes(pickle.dumps(("failed", traceback.format_exc())))


class Actor:
    """The actor-learner's loop."""

    def __init__(self, task: Task) -> None:
        spec = parse_run_spec(task.spec)
        assert isinstance(spec.config, AsynchronousConfig)
        self._config = spec.config
        self._seed = spec.seed
        self._bound = spec.stop.agent_steps
        self._maker = task.maker
        self._channel = task.channel
        self._vectors = Vectors(task.memory.vectors)
        self._counts = Counts(task.memory.counts)
        self._mine = self._counts.of(task.actor)
        self._play = Play(spec, task.actor, recorded=task.actor == RECORDED)
        network = task.maker.network(spec, self._play.world)
        self._flat = FlatParameters(network)
        self._optimizer = self._vectors.optimizer(self._config, task.actor)
        # One that takes a dead actor's place goes on with seeds that were not used.
        self._play.episodes_begun = int(self._mine[EPISODES_BEGUN])
        seed = np.random.SeedSequence((spec.seed, _ACTIONS + task.actor, self._play.episodes_begun))
        self._rng = np.random.default_rng(seed)
        self._method = task.maker.method(
            Tools(
                self._config,
                network,
                self._vectors.theta_minus,
                self._rng,
                self._counts,
                self._play.world,
            )
        )
        self._report = ActorReport()
        self._reported_at = time.monotonic()
        self._begin_episode()

    def run(self) -> NoReturn:
        """Pause first; then update after update."""
        self._pause()
        while True:
            if self._is_done():
                self._send_report()
                self._attend()
                continue
            while self._channel.poll():
                self._attend()
            self._update()
            if time.monotonic() - self._reported_at >= REPORT_INTERVAL_S:
                self._send_report()

    def _is_done(self) -> bool:
        return self._bound is not None and self._counts.total(AGENT_STEPS) >= self._bound

    def _update(self) -> None:
        """Act for up to t_max decisions or to the episode's end; one asynchronous update of theta."""
        c, play, flat = self._config, self._play, self._flat
        flat.theta.copy_(self._vectors.theta)
        flat.dtheta.zero_()
        self._method.begin()
        reward_T: list[float] = []
        frames = 0
        while True:
            action, value, policy_A = self._method.choose(play.observation)
            step = play.step(action, value, policy_A)
            frames += step.frames
            reward_T.append(
                min(max(step.reward, -c.reward_clip), c.reward_clip) if c.reward_clip else step.reward
            )
            if step.terminal or step.ended or len(reward_T) == c.t_max:
                break
        # Whole episodes are not bootstrapped, however they end (supplement, section 9).
        ends = step.terminal or c.t_max == 0
        metrics = self._method.learn(reward_T, None if ends else play.observation)
        norm = clip_grad_norm_(flat.dtheta, c.max_grad_norm)
        self._optimizer.step(flat.dtheta, self._learning_rate())
        self._count(len(reward_T), frames)
        sums = self._report.sums
        for metric, value in metrics.items():
            sums[metric] += value
        sums["optim/grad_norm"] += norm.item()
        self._report.updates += 1
        if play.finished is not None:
            self._report.episodes.append(play.finished)
            self._begin_episode()
        if (picture := play.take_picture()) is not None:
            self._report.pictures.append(picture)
            self._send_report()

    def _count(self, agent_steps: int, frames: int) -> None:
        """T <- T + t; the actor that carries T over a multiple of I_target copies theta_minus <- theta."""
        every = self._maker.target_frames(self._config)
        before = self._counts.total(FRAMES) if every else 0
        self._mine[AGENT_STEPS] += agent_steps
        self._mine[FRAMES] += frames
        self._mine[UPDATES] += 1
        if every and (before + frames) // every > before // every:
            self._vectors.theta_minus.copy_(self._vectors.theta)

    def _learning_rate(self) -> float:
        c = self._config
        if c.learning_rate_schedule == "constant" or self._bound is None:
            return c.learning_rate
        return linear(c.learning_rate, self._counts.total(AGENT_STEPS) / self._bound)

    def _begin_episode(self) -> None:
        self._play.begin()
        self._mine[EPISODES_BEGUN] = self._play.episodes_begun
        self._method.begin_episode()

    def _attend(self) -> None:
        """Answer one message of the engine.

        Raises:
            EOFError: the engine wants no more.
        """
        request, argument = pickle.loads(self._channel.recv_bytes())  # noqa: S301  # from the engine
        match request:
            case "pause":
                self._pause()
            case "change":
                self._config = argument
                self._method.change(argument)
            case "watch":
                self._play.watch(argument)

    def _pause(self) -> None:
        self._send_report()
        self._send("paused", self._state())
        while True:
            request, argument = pickle.loads(self._channel.recv_bytes())  # noqa: S301  # from the engine
            match request:
                case "go":
                    return
                case "change":
                    self._config = argument
                    self._method.change(argument)
                case "restore":
                    self._restore(argument)
                    self._send("paused", self._state())
                case "watch":
                    self._play.watch(argument)

    def _state(self) -> dict[str, Any]:
        rng = rng_state(self._rng, self._seed)
        return {"rng": rng, "play": self._play.state(), "method": self._method.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        restore_rng(self._rng, state["rng"], self._seed)
        if self._play.restore(state["play"]):
            self._mine[EPISODES_BEGUN] = self._play.episodes_begun
            self._method.restore(state["method"])
        else:
            self._begin_episode()

    def _send_report(self) -> None:
        self._report.epsilon = self._method.epsilon
        self._send("report", self._report)
        self._report = ActorReport()
        self._reported_at = time.monotonic()

    def _send(self, kind: str, content: Any) -> None:
        # Plain pickles: a Connection's own would pass tensors as files from process to process.
        self._channel.send_bytes(pickle.dumps((kind, content)))
