"""A GA3C agent: a process that acts in one environment and has no network (section 4.1). Needs no torch.

Before each decision it requests pi and V of its state from the predictors. After t_max decisions, or fewer
at the end of an episode, it computes the returns and submits them to the trainers.
"""

import socket
import time
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from backend.specs.algorithms.ga3c import SEGMENTS, Ga3cConfig
from backend.specs.run import RunSpec
from workers.engine.envs.base import Step
from workers.engine.envs.info import SEND_INTERVAL_S
from workers.engine.methods.base import RECORDED, clipped, config_of
from workers.engine.methods.episode_runner import EpisodeRunner
from workers.engine.methods.ga3c.memory import (
    EPISODES_BEGUN,
    FRAMES,
    STEPS,
    AgentRequest,
    Experiences,
    put,
)
from workers.engine.nn.seeds import ACTION_STREAM
from workers.engine.processes.child import Channel, ChannelClosedError

PREDICTED = b"p"
"""A predictor's answer. A trainer's is the number of the segment that is free again, as one byte."""


@dataclass(frozen=True)
class AgentEnds:
    """An agent's ends of what it shares with predictors and trainers."""

    experiences: Experiences
    predictions: socket.socket
    trainings: socket.socket
    answers: socket.socket


class _Rollout(NamedTuple):
    segment: int
    rewards: list[float]


def run_agent(channel: Channel, spec: RunSpec, number: int, generation: int, ends: AgentEnds) -> None:
    """Entry point of the process: act until the engine stops it, or has exited."""
    try:
        AgentLoop(channel, spec, number, generation, ends).run()
    except (BrokenPipeError, ConnectionResetError) as error:
        raise ChannelClosedError from error


class AgentLoop:
    """The agent's loop."""

    def __init__(
        self, channel: Channel, spec: RunSpec, number: int, generation: int, ends: AgentEnds
    ) -> None:
        """Build its environment.

        Args:
            channel: where finished episodes and frames go.
            spec: the run.
            number: which agent of the run.
            generation: which process of this agent.
            ends: what it shares with predictors and trainers.
        """
        self._config = config_of(spec, Ga3cConfig)
        self._channel = channel
        self._number = number
        self._generation = generation
        self._ends = ends
        self._shared = ends.experiences
        self._count_C = self._shared.count_AC[number]
        self._runner = EpisodeRunner(spec, number, recorded=number == RECORDED)
        self._runner.episodes_begun = int(self._count_C[EPISODES_BEGUN])
        seed = np.random.SeedSequence((spec.seed, ACTION_STREAM + number, self._runner.episodes_begun))
        self._rng = np.random.default_rng(seed)
        self._free = deque(range(SEGMENTS))
        self._watched = False
        self._info_sent_at = 0.0

    def run(self) -> None:
        """Act in episode after episode.

        Raises:
            ChannelClosedError: the engine stops the agent.
        """
        self._begin_episode()
        rollout = self._new_rollout()
        full: _Rollout | None = None  # needs the value of the state after its last decision
        while True:
            t = len(rollout.rewards)
            value = self._predict(rollout.segment, t)
            if full is not None:
                self._submit(full, value)
                full = None
            step = self._decide(rollout, t, value)
            if step.episode_over or step.terminated:
                self._end_rollout(rollout, value, step)
                if step.episode_over:
                    self._close_episode()
                rollout = self._new_rollout()
            elif t + 1 == self._config.t_max:
                full, rollout = rollout, self._new_rollout()

    def _end_rollout(self, rollout: _Rollout, value: float, step: Step) -> None:
        """Submit a rollout whose last decision, in a state of this value, ended it."""
        T = len(rollout.rewards)
        if not T:
            self._free.append(rollout.segment)
        elif step.crashed:
            self._submit(rollout, value)
        else:
            # A truncated episode is bootstrapped.
            self._submit(rollout, 0.0 if step.terminated else self._predict(rollout.segment, T))

    def _decide(self, rollout: _Rollout, t: int, value: float) -> Step:
        """Take a decision and add its reward to the rollout, unless the environment crashed in it."""
        me, shared = self._number, self._shared
        policy_N = shared.policy_AN[me]
        action = int(np.searchsorted(np.cumsum(policy_N), self._rng.random() * policy_N.sum(), "right"))
        action = min(action, len(policy_N) - 1)
        shared.action_ASL[me, rollout.segment, t] = action
        step = self._runner.step(action, value, policy_N)
        if not step.crashed:
            rollout.rewards.append(clipped(step.reward, self._config.reward_clip))
        self._count_C[STEPS] += 1
        self._count_C[FRAMES] += step.frames
        return step

    def _predict(self, segment: int, place: int) -> float:
        """Have the predictors compute pi and V of the current state, and return V."""
        me, shared = self._number, self._shared
        shared.observation_ASL[me, segment, place] = self._runner.observation[0]
        started = time.monotonic()
        put(self._ends.predictions, AgentRequest(me, self._generation, segment, place))
        while self._answer() != PREDICTED:
            pass
        self._add_waiting(started)
        self._send_live_frame()
        return float(shared.value_A[me])

    def _submit(self, rollout: _Rollout, bootstrap: float) -> None:
        """Compute R <- r + gamma R backwards from `bootstrap`, and submit the rollout to the trainers."""
        rewards = rollout.rewards
        R_L = self._shared.return_ASL[self._number, rollout.segment]
        R = bootstrap
        for t in range(len(rewards) - 1, -1, -1):
            R = rewards[t] + self._config.gamma * R
            R_L[t] = R
        put(self._ends.trainings, AgentRequest(self._number, self._generation, rollout.segment, len(rewards)))
        if self._runner.has_info and time.monotonic() - self._info_sent_at >= SEND_INTERVAL_S:
            self._send_info()

    def _new_rollout(self) -> _Rollout:
        started = time.monotonic()
        while not self._free:
            self._answer()
        self._add_waiting(started)
        return _Rollout(self._free.popleft(), [])

    def _add_waiting(self, started: float) -> None:
        """Add the time since `started`, from the end of a pause on if there was one."""
        shared = self._shared
        began = max(started, float(shared.opened_at_s[0]))
        shared.waited_s_A[self._number] += max(0.0, time.monotonic() - began)

    def _answer(self) -> bytes:
        answer = self._ends.answers.recv(1)
        if not answer:
            raise ChannelClosedError
        if answer != PREDICTED:
            self._free.append(answer[0])
        return answer

    def _begin_episode(self) -> None:
        self._runner.reset()
        self._count_C[EPISODES_BEGUN] = self._runner.episodes_begun

    def _send_info(self) -> None:
        self._info_sent_at = time.monotonic()
        self._channel.send("info", self._runner.take_info())

    def _close_episode(self) -> None:
        self._channel.send("episode", self._runner.finished)
        if self._runner.has_info:
            self._send_info()
        self._begin_episode()

    def _send_live_frame(self) -> None:
        watched = int(self._shared.live_agent[0]) == self._number
        if watched != self._watched:
            self._watched = watched
            self._runner.set_live(watched)
        if watched and (frame := self._runner.take_frame()) is not None:
            self._channel.send("frame", frame)
