"""One asynchronous actor-learner: a single-threaded process that acts and learns by itself.

The loop is that of Algorithms 1, S1 and S2 of Mnih et al. 2016, which differ in their `ActorAlgorithm`.
"""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.specs.algorithms.asynchronous import AsynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.envs.base import Action, Env
from workers.engine.envs.info import Totals
from workers.engine.methods.asynchronous.memory import (
    AGENT_STEPS,
    EPISODES_BEGUN,
    FRAMES,
    UPDATES,
    Counts,
    Memory,
    Vectors,
)
from workers.engine.methods.base import (
    RECORDED,
    AlgorithmFactories,
    ConfigT,
    ConfigT_contra,
    EpisodeEnd,
    MethodContext,
    NetworkT,
    Samples,
    clipped,
    gradient_norms,
)
from workers.engine.methods.episode_runner import EpisodeRunner
from workers.engine.nn.devices import prepare_torch
from workers.engine.nn.optimizers import FlatParameters, clip_grad_norm_
from workers.engine.nn.schedules import learning_rate
from workers.engine.nn.seeds import ACTION_STREAM, restore_rng, rng_state
from workers.engine.processes.child import Channel

REPORT_INTERVAL_S = 0.2


class Decision(NamedTuple):
    """An action, and what the network computed for it."""

    action: Action
    value: float
    """V, or max Q."""
    policy_A: NDArray[Any]
    """pi or Q of every action; mu of a continuous one."""


class ActorAlgorithm(Protocol[ConfigT_contra]):
    """An asynchronous method; it acts and learns by theta', copied from theta before `begin_update`."""

    def change(self, config: ConfigT_contra) -> None:
        """Continue with this config; only live fields differ."""

    @property
    def epsilon(self) -> float | None:
        """The probability of a random action, if the method explores epsilon-greedily."""

    def begin_update(self) -> None:
        """Begin an update's decisions."""

    def choose(self, observation: NDArray[Any]) -> Decision:
        """Choose an action in the current state, (1, …)."""

    def drop_last(self) -> None:
        """Drop the last decision, in which the environment crashed; the state in which it was chosen is then
        `next_observation` of `learn`."""

    def learn(self, reward_T: list[float], next_observation: NDArray[Any] | None) -> dict[str, float]:
        """Add the gradient of this update's decisions to dtheta.

        Args:
            reward_T: the reward of each decision, clipped; at least one.
            next_observation: the state after the last decision, (1, …); None if that is terminal.

        Returns:
            Metric -> value.
        """

    def begin_episode(self) -> None:
        """The next state is the first of an episode."""

    def state(self) -> dict[str, Any]:
        """Tensors and plain values from which `restore` continues."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue in the middle of an episode."""


@dataclass(frozen=True)
class ActorContext(MethodContext[ConfigT, NetworkT]):
    """What an asynchronous algorithm is created from, in an actor's process."""

    rng: np.random.Generator
    counts: Counts
    env: Env


ActorFactories = AlgorithmFactories[Any, Any, Any, ActorAlgorithm[Any]]


MAX_DECISIONS = 100


@dataclass(slots=True)
class ActorReport:
    """What an actor did since its last report."""

    episodes: list[EpisodeEnd] = field(default_factory=list)
    updates: int = 0
    sums: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Metric -> sum over the updates."""
    epsilon: float | None = None
    info: Totals = field(default_factory=dict)
    live_frames: list[bytes] = field(default_factory=list)
    decisions: list[tuple[Action, float]] = field(default_factory=list)
    """The first `MAX_DECISIONS` actions, and V or max Q of their states."""
    gradient_norms: Samples = field(default_factory=dict)
    """Of the last update, by layer."""


def run_actor(
    channel: Channel, spec: RunSpec, number: int, factories: ActorFactories, memory: Memory
) -> None:
    """Entry point of the process: act and learn until the learner closes the channel."""
    prepare_torch()
    ActorLearner(channel, spec, number, factories, memory).run()


class ActorLearner:
    """The actor-learner's loop."""

    def __init__(
        self, channel: Channel, spec: RunSpec, number: int, factories: ActorFactories, memory: Memory
    ) -> None:
        self._config: AsynchronousConfig = factories.config_of(spec)
        self._seed = spec.seed
        self._max_agent_steps = spec.stop.agent_steps
        self._annealed_over = spec.annealed_over_agent_steps
        self._target_frames = factories.target_frames
        self._channel = channel
        self._vectors = Vectors(memory)
        self._counts = Counts(memory.counts)
        self._mine = self._counts.of(number)
        self._copied_at_frames = memory.copied_at_frames
        self._runner = EpisodeRunner(spec, number, recorded=number == RECORDED)
        network = factories.network(self._config, self._runner.env)
        self._network = network
        self._flat = FlatParameters(network)
        self._optimizer = self._vectors.optimizer(self._config, number)
        self._number = number
        self._rng = self._first_rng()
        self._algorithm = factories.algorithm(
            ActorContext(
                self._config,
                network,
                self._vectors.theta_minus,
                self._rng,
                self._counts,
                self._runner.env,
            )
        )
        self.report = ActorReport()
        self._reported_at = time.monotonic()
        self._begin_episode()

    def run(self) -> NoReturn:
        """Start paused, then update until stopped."""
        self._pause()
        while True:
            if self._is_done():
                self._send_report()
                self._handle_message()
                continue
            while self._channel.poll():
                self._handle_message()
            self.update()
            if time.monotonic() - self._reported_at >= REPORT_INTERVAL_S:
                self._send_report()

    def _is_done(self) -> bool:
        return self._max_agent_steps is not None and self._counts.total(AGENT_STEPS) >= self._max_agent_steps

    def update(self) -> None:
        """Act for up to t_max decisions or to the end of the episode, then update theta once.

        There is no update if the environment crashed in the first decision.
        """
        c, runner = self._config, self._runner
        self._flat.theta.copy_(self._vectors.theta)
        self._algorithm.begin_update()
        reward_T: list[float] = []
        frames = 0
        while True:
            action, value, policy_A = self._algorithm.choose(runner.observation)
            if len(self.report.decisions) < MAX_DECISIONS:
                self.report.decisions.append((action, value))
            step = runner.step(action, value, policy_A)
            frames += step.frames
            if step.crashed:
                self._algorithm.drop_last()
                break
            reward_T.append(clipped(step.reward, c.reward_clip))
            if step.terminated or step.episode_over or len(reward_T) == c.t_max:
                break
        # With t_max = 0, whole episodes, a truncated one ends without a bootstrap too (supplement, section
        # 9); a crash is no end of an episode.
        is_terminal = not step.crashed and (step.terminated or c.t_max == 0)
        if reward_T:
            self._learn(reward_T, None if is_terminal else runner.observation)
        self._count(len(reward_T) + step.crashed, frames)
        if runner.finished is not None:
            self.report.episodes.append(runner.finished)
            self._begin_episode()
        if (frame := runner.take_frame()) is not None:
            self.report.live_frames.append(frame)
            self._send_report()

    def _learn(self, reward_T: list[float], next_observation: NDArray[Any] | None) -> None:
        """Apply the gradient of this update's decisions to theta; arguments as of `ActorAlgorithm.learn`."""
        flat, sums = self._flat, self.report.sums
        flat.dtheta.zero_()
        for metric, value in self._algorithm.learn(reward_T, next_observation).items():
            sums[metric] += value
        sums["optim/grad_norm"] += clip_grad_norm_(flat.dtheta, self._config.max_grad_norm).item()
        self._optimizer.step(flat.dtheta, self._learning_rate())
        self._mine[UPDATES] += 1
        self.report.updates += 1

    def _count(self, agent_steps: int, frames: int) -> None:
        """T <- T + t, in agent steps and in frames; theta_minus <- theta when the frames of all actors have
        passed a multiple of I_target."""
        self._mine[AGENT_STEPS] += agent_steps
        self._mine[FRAMES] += frames
        interval = self._target_frames(self._config)
        if interval:
            # Checked after its frames are added: of two actors that add at once, the later one sees both.
            T, copied_at_frames = self._counts.total(FRAMES), self._copied_at_frames
            if T // interval > copied_at_frames[0] // interval:
                copied_at_frames[0] = T
                self._vectors.theta_minus.copy_(self._vectors.theta)

    def _learning_rate(self) -> float:
        c = self._config
        if self._annealed_over is None:
            return c.learning_rate
        progress = self._counts.total(AGENT_STEPS) / self._annealed_over
        return learning_rate(c.learning_rate, c.learning_rate_schedule, progress)

    def _begin_episode(self) -> None:
        self._runner.reset()
        self._mine[EPISODES_BEGUN] = self._runner.episodes_begun
        self._algorithm.begin_episode()

    def _handle_message(self) -> None:
        """Handle one message of the learner.

        Raises:
            ChannelClosedError: the learner wants no more.
        """
        request, argument = self._channel.receive()
        match request:
            case "pause":
                self._pause()
            case "change":
                self._config = argument
                self._algorithm.change(argument)
            case "watch":
                self._runner.set_live(argument)

    def _pause(self) -> None:
        self._send_report()
        self._channel.send("paused", self._state())
        while True:
            request, argument = self._channel.receive()
            match request:
                case "go":
                    return
                case "change":
                    self._config = argument
                    self._algorithm.change(argument)
                case "restore":
                    self._restore(argument)
                    self._channel.send("paused", self._state())
                case "watch":
                    self._runner.set_live(argument)

    def _state(self) -> dict[str, Any]:
        rng = rng_state(self._rng, self._seed)
        return {"rng": rng, "play": self._runner.state(), "method": self._algorithm.state()}

    def _first_rng(self) -> np.random.Generator:
        """Continue with seeds that were not used, by a dead actor before this one, for example."""
        self._runner.episodes_begun = begun = int(self._mine[EPISODES_BEGUN])
        seed = np.random.SeedSequence((self._seed, ACTION_STREAM + self._number, begun))
        return np.random.default_rng(seed)

    def _restore(self, state: dict[str, Any] | None) -> None:
        if state is None:
            self._rng.bit_generator.state = self._first_rng().bit_generator.state
            self._begin_episode()
            return
        restore_rng(self._rng, state["rng"], self._seed)
        if self._runner.restore(state["play"]):
            self._mine[EPISODES_BEGUN] = self._runner.episodes_begun
            self._algorithm.restore(state["method"])
        else:
            self._begin_episode()

    def _send_report(self) -> None:
        self.report.epsilon = self._algorithm.epsilon
        self.report.info = self._runner.take_info()
        if self.report.updates:
            self.report.gradient_norms = gradient_norms(self._network)
        self._channel.send("report", self.report)
        self.report = ActorReport()
        self._reported_at = time.monotonic()
