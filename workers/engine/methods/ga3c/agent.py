"""GA3C's agents: each acts in one environment and has no network (section 4.1). Needs no torch.

Before each decision an agent requests pi and V of its state from the predictors. After t_max decisions, or
fewer at the end of an episode, it computes the returns and submits them to the trainers. `agents_per_process`
share a process, which steps whichever has a prediction.
"""

import socket
import time
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple, Never, TypeVar

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
    PREDICTED,
    START,
    STEPS,
    STOP,
    AgentNotice,
    AgentRequest,
    Experiences,
    put,
    take_notices,
)
from workers.engine.nn.seeds import ACTION_STREAM
from workers.engine.processes.child import Channel, ChannelClosedError


@dataclass(frozen=True)
class AgentEnds:
    """The ends that a process of agents has of what it shares with predictors and trainers."""

    experiences: Experiences
    predictions: socket.socket
    trainings: socket.socket
    notices: socket.socket


class _Rollout(NamedTuple):
    segment: int
    rewards: list[float]


_T = TypeVar("_T")
_Acting = Generator[AgentRequest | None, int, _T]
"""What an agent does until it has a result. Where it waits, it yields its new request to the predictors, or
None, and is sent the next event that it is notified of."""


def run_agents(channel: Channel, spec: RunSpec, number: int, ends: AgentEnds) -> None:
    """Entry point of the process: act until the engine stops it, or has exited."""
    try:
        AgentProcess(channel, spec, number, ends).run()
    except (BrokenPipeError, ConnectionResetError) as error:
        raise ChannelClosedError from error


class AgentProcess:
    """A process of agents: those it has been notified to start."""

    def __init__(self, channel: Channel, spec: RunSpec, number: int, ends: AgentEnds) -> None:
        """Without agents at first.

        Args:
            channel: where finished episodes and frames go.
            spec: the run.
            number: which process of the run.
            ends: what it shares with predictors and trainers.
        """
        self._channel = channel
        self._spec = spec
        self._ends = ends
        n = config_of(spec, Ga3cConfig).agents_per_process
        self._waited_s_A = ends.experiences.waited_s_A[number * n : (number + 1) * n]
        self._agents: dict[int, Agent] = {}

    def run(self) -> None:
        """Step the agents that have answers, and send their next requests together.

        Raises:
            ChannelClosedError: the engine stops the process.
        """
        while True:
            requests = [request for notice in self._receive() if (request := self._handle(notice))]
            if requests:
                put(self._ends.predictions, *requests)

    def _receive(self) -> list[AgentNotice]:
        """Wait for notices; that counts from the end of a pause on if there was one."""
        started = time.monotonic()
        notices = take_notices(self._ends.notices)
        if not notices:
            raise ChannelClosedError
        began = max(started, float(self._ends.experiences.opened_at_s[0]))
        self._waited_s_A += max(0.0, time.monotonic() - began)
        return notices

    def _handle(self, notice: AgentNotice) -> AgentRequest | None:
        """Let an agent act until it waits; returns its next request to the predictors if it has one."""
        k, generation, event = notice
        if event == START:
            self._agents[k] = agent = Agent(self._channel, self._spec, k, generation, self._ends)
            return next(agent.acting)
        agent_or_none = self._agents.get(k)
        if agent_or_none is None or agent_or_none.generation != generation:
            return None
        if event == STOP:
            self._agents.pop(k).close()
            return None
        return agent_or_none.acting.send(event)


class Agent:
    """One agent, its environment and its loop."""

    def __init__(
        self, channel: Channel, spec: RunSpec, number: int, generation: int, ends: AgentEnds
    ) -> None:
        """Build its environment.

        Args:
            channel: where finished episodes and frames go.
            spec: the run.
            number: which agent of the run.
            generation: which start of this agent.
            ends: what its process shares with predictors and trainers.
        """
        self._config = config_of(spec, Ga3cConfig)
        self._channel = channel
        self._number = number
        self.generation = generation
        self._trainings = ends.trainings
        self._shared = ends.experiences
        self._count_C = self._shared.count_AC[number]
        self._runner = EpisodeRunner(spec, number, recorded=number == RECORDED)
        self._runner.episodes_begun = int(self._count_C[EPISODES_BEGUN])
        seed = np.random.SeedSequence((spec.seed, ACTION_STREAM + number, self._runner.episodes_begun))
        self._rng = np.random.default_rng(seed)
        self._free = deque(range(SEGMENTS))
        self._watched = False
        self._info_sent_at = 0.0
        self.acting = self._act()

    def close(self) -> None:
        """Close its environment."""
        self.acting.close()
        self._runner.close()

    def _act(self) -> _Acting[Never]:
        """Act in episode after episode."""
        self._begin_episode()
        rollout = yield from self._new_rollout()
        full: _Rollout | None = None  # needs the value of the state after its last decision
        while True:
            t = len(rollout.rewards)
            value = yield from self._predict(rollout.segment, t)
            if full is not None:
                self._submit(full, value)
                full = None
            step = self._decide(rollout, t, value)
            if step.episode_over or step.terminated:
                yield from self._end_rollout(rollout, value, step)
                if step.episode_over:
                    self._close_episode()
                rollout = yield from self._new_rollout()
            elif t + 1 == self._config.t_max:
                full, rollout = rollout, (yield from self._new_rollout())

    def _end_rollout(self, rollout: _Rollout, value: float, step: Step) -> _Acting[None]:
        """Submit a rollout whose last decision, in a state of this value, ended it."""
        T = len(rollout.rewards)
        if not T:
            self._free.append(rollout.segment)
        elif step.crashed:
            self._submit(rollout, value)
        elif step.terminated:
            self._submit(rollout, 0.0)
        else:  # truncated
            self._submit(rollout, (yield from self._predict(rollout.segment, T)))

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

    def _predict(self, segment: int, place: int) -> _Acting[float]:
        """Have the predictors compute pi and V of the current state, and return V."""
        me, shared = self._number, self._shared
        shared.observation_ASL[me, segment, place] = self._runner.observation[0]
        event = yield AgentRequest(me, self.generation, segment, place)
        while event != PREDICTED:
            self._free.append(event)
            event = yield None
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
        put(self._trainings, AgentRequest(self._number, self.generation, rollout.segment, len(rewards)))
        if self._runner.has_info and time.monotonic() - self._info_sent_at >= SEND_INTERVAL_S:
            self._send_info()

    def _new_rollout(self) -> _Acting[_Rollout]:
        while not self._free:
            self._free.append((yield None))
        return _Rollout(self._free.popleft(), [])

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
