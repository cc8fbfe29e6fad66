"""A GA3C agent: a process that plays one environment and has no network (section 4.1). Needs no torch.

Before each decision it asks the predictors for pi and V of its state; of every t_max decisions, or fewer at
an episode's end, it computes the returns and submits them to the trainers.
"""

import pickle
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from backend.specs.algorithms.ga3c import Ga3cConfig
from backend.specs.run import parse_run_spec
from workers.engine.ga3c.memory import (
    EPISODES_BEGUN,
    FRAMES,
    SEGMENTS,
    STEPS,
    Experiences,
    Request,
    put,
)
from workers.engine.lifeline import become_forked_helper
from workers.engine.play import Play

RECORDED = 0
"""The agent whose episodes are recorded and can be watched."""
PREDICTED = b"p"
"""Answer of a predictor. A trainer's is the number of the segment that is free again, as one byte."""
_ACTIONS = 2**30
"""Stream of the random numbers actions are drawn with, apart from every agent's episodes."""


@dataclass(frozen=True)
class Task:
    """What an agent's process is started with."""

    spec: dict[str, Any]
    agent: int
    generation: int
    experiences: Experiences
    predictions: socket.socket
    trainings: socket.socket
    answers: socket.socket
    books: Connection
    """Where finished episodes and pictures go, pickled."""
    temporary: str
    """The engine's folder for the fork server's socket, which an engine that is killed leaves behind."""


class _Rollout(NamedTuple):
    segment: int
    rewards: list[float]


class EngineGone(Exception):
    """The engine closed the agent's channel, or died."""


def run_agent(task: Task) -> None:
    """Entry point of the process: play until the engine ends it, or is gone."""
    become_forked_helper(task.temporary)
    with suppress(EngineGone, BrokenPipeError, ConnectionResetError):
        Agent(task).run()


class Agent:
    """One agent at work."""

    def __init__(self, task: Task) -> None:
        self._task = task
        spec = parse_run_spec(task.spec)
        assert isinstance(spec.config, Ga3cConfig)
        self._config = spec.config
        self._shared = task.experiences
        self._count_C = self._shared.count_AC[task.agent]
        self._play = Play(spec, task.agent, recorded=task.agent == RECORDED)
        self._play.episodes_begun = int(self._count_C[EPISODES_BEGUN])
        seed = np.random.SeedSequence((spec.seed, _ACTIONS + task.agent, self._play.episodes_begun))
        self._rng = np.random.default_rng(seed)
        self._free = deque(range(SEGMENTS))
        self._watched = False

    def run(self) -> None:
        """Play episode after episode.

        Raises:
            EngineGone: the engine wants no more.
        """
        self._begin_episode()
        rollout = self._new_rollout()
        full: _Rollout | None = None  # waits for the value of the state after its last decision
        while True:
            t = len(rollout.rewards)
            value = self._predict(rollout.segment, t)
            if full is not None:
                self._submit(full, value)
                full = None
            ended, terminal = self._decide(rollout, t, value)
            if ended or terminal:
                # Of an episode cut off, what would have followed still has a value.
                bootstrap = 0.0 if terminal else self._predict(rollout.segment, t + 1)
                self._submit(rollout, bootstrap)
                if ended:
                    self._close_episode()
                rollout = self._new_rollout()
            elif t + 1 == self._config.t_max:
                full, rollout = rollout, self._new_rollout()

    def _decide(self, rollout: _Rollout, t: int, value: float) -> tuple[bool, bool]:
        me, shared = self._task.agent, self._shared
        policy_N = shared.policy_AN[me]
        action = int(np.searchsorted(np.cumsum(policy_N), self._rng.random() * policy_N.sum(), "right"))
        action = min(action, len(policy_N) - 1)
        shared.action_ASL[me, rollout.segment, t] = action
        step = self._play.step(action, value, policy_N)
        clip = self._config.reward_clip
        rollout.rewards.append(min(max(step.reward, -clip), clip) if clip else step.reward)
        self._count_C[STEPS] += 1
        self._count_C[FRAMES] += step.frames
        return step.ended, step.terminal

    def _predict(self, segment: int, place: int) -> float:
        """Have pi and V of the present state computed; gives V."""
        task, shared = self._task, self._shared
        shared.observation_ASL[task.agent, segment, place] = self._play.observation[0]
        began = time.monotonic()
        put(task.predictions, Request(task.agent, task.generation, segment, place))
        while self._answer() != PREDICTED:
            pass
        shared.waited_s_A[task.agent] += time.monotonic() - began
        self._look_who_watches()
        return float(shared.value_A[task.agent])

    def _submit(self, rollout: _Rollout, bootstrap: float) -> None:
        """R <- r + gamma R backwards from `bootstrap`; then the trainers' turn."""
        task, rewards = self._task, rollout.rewards
        R_L = self._shared.return_ASL[task.agent, rollout.segment]
        R = bootstrap
        for t in range(len(rewards) - 1, -1, -1):
            R = rewards[t] + self._config.gamma * R
            R_L[t] = R
        put(task.trainings, Request(task.agent, task.generation, rollout.segment, len(rewards)))

    def _new_rollout(self) -> _Rollout:
        began = time.monotonic()
        while not self._free:
            self._answer()
        self._shared.waited_s_A[self._task.agent] += time.monotonic() - began
        return _Rollout(self._free.popleft(), [])

    def _answer(self) -> bytes:
        answer = self._task.answers.recv(1)
        if not answer:
            raise EngineGone
        if answer != PREDICTED:
            self._free.append(answer[0])
        return answer

    def _begin_episode(self) -> None:
        self._play.begin()
        self._count_C[EPISODES_BEGUN] = self._play.episodes_begun

    def _close_episode(self) -> None:
        self._task.books.send_bytes(pickle.dumps(("episode", self._play.finished)))
        self._begin_episode()

    def _look_who_watches(self) -> None:
        watched = int(self._shared.watched[0]) == self._task.agent
        if watched != self._watched:
            self._watched = watched
            self._play.watch(watched)
        if watched and (picture := self._play.take_picture()) is not None:
            self._task.books.send_bytes(pickle.dumps(("picture", picture)))
