"""GA3C's agents from the learner's side: start, messages, replacement after a kill, stop.

Separate from `agent`, which is what the processes of agents run.
"""

import socket
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from math import ceil

from backend.specs.algorithms.ga3c import Ga3cConfig
from backend.specs.run import RunSpec
from workers.engine.envs.info import add_totals
from workers.engine.methods.base import StepResult, config_of
from workers.engine.methods.ga3c.agent import AgentEnds, run_agents
from workers.engine.methods.ga3c.memory import (
    PREDICTED,
    START,
    STEPS,
    STOP,
    AgentNotice,
    AgentRequest,
    Experiences,
    Queue,
    notify,
)
from workers.engine.processes.child import Child, preload
from workers.engine.processes.child_pool import REPLACED, ChildPool


class AgentPool:
    """All agents of one engine: process p has the agents from p x `agents_per_process` on."""

    def __init__(self, spec: RunSpec, experiences: Experiences, predictions: Queue, trainings: Queue) -> None:
        self._spec = spec
        self._per_process = config_of(spec, Ga3cConfig).agents_per_process
        self._experiences = experiences
        self._predictions = predictions
        self._trainings = trainings
        self._n_agents = 0
        self._generation = 0
        self._generations: dict[int, int] = {}
        """Of each agent."""
        self._entrances: dict[int, socket.socket] = {}
        """Where each process is notified."""
        preload("workers.engine.methods.ga3c.agent")
        self._processes = ChildPool(
            self._start, lambda p: int(experiences.count_AC[self._members(p), STEPS].sum())
        )

    @property
    def pids(self) -> Sequence[int | None]:
        """Process ids of the agents' processes."""
        return self._processes.pids

    def resize(self, n: int) -> None:
        """Start or stop agents until there are n; the others go on."""
        for k in [k for k in self._generations if k >= n]:
            self._notify(k // self._per_process, AgentNotice(k, self._generations.pop(k), STOP))
        processes = ceil(n / self._per_process)
        for p in [p for p in self._entrances if p >= processes]:
            self._entrances.pop(p).close()
        self._n_agents = n
        self._processes.resize(processes)
        for k in range(n):
            if k not in self._generations:  # a place in a process that has others
                self._start_agent(k)

    def is_current(self, request: AgentRequest) -> bool:
        """Whether the agent has not been started anew since this request, or stopped."""
        return self._generations.get(request.agent) == request.generation

    def answer_predictions(self, requests: Sequence[AgentRequest]) -> None:
        """Notify the agents that pi and V of their states are computed."""
        notices = defaultdict[int, list[AgentNotice]](list)
        for request in requests:
            notice = AgentNotice(request.agent, request.generation, PREDICTED)
            notices[request.agent // self._per_process].append(notice)
        for p, together in notices.items():
            self._notify(p, *together)

    def answer_training(self, request: AgentRequest) -> None:
        """Notify the agent that its segment is free again."""
        notice = AgentNotice(request.agent, request.generation, request.segment)
        self._notify(request.agent // self._per_process, notice)

    def receive(self, timeout_s: float, result: StepResult) -> bool:
        """Wait for messages of agents, and add episodes, frames and warnings to `result`.

        Returns:
            Whether there was any.

        Raises:
            ChildFailedError: an agent failed, or its process was killed too often before any of its agents
                took a decision.
        """
        messages = self._processes.receive(timeout_s)
        for _, kind, content in messages:
            match kind:
                case "episode":
                    result.episodes.append(content)
                case "info":
                    add_totals(result.info, content)
                case "frame":
                    result.live_frames.append(content)
                case _:
                    assert kind == REPLACED
                    result.warnings.append(content)
        return bool(messages)

    def _members(self, p: int) -> slice:
        return slice(p * self._per_process, (p + 1) * self._per_process)

    def _start(self, p: int) -> Child:
        """Start a process with all its agents, which begin new episodes if it replaces another."""
        members = range(self._n_agents)[self._members(p)]
        mine, theirs = socket.socketpair()
        if p in self._entrances:
            self._entrances[p].close()
        self._entrances[p] = mine
        ends = AgentEnds(self._experiences, self._predictions.entrance, self._trainings.entrance, theirs)
        of = f"process of agents {members[0]} to {members[-1]}"
        name = f"agent {members[0]}" if len(members) == 1 else of
        with theirs:
            child = Child(run_agents, self._spec, p, ends, name=name)
        for k in members:
            self._start_agent(k)
        return child

    def _start_agent(self, k: int) -> None:
        self._generation = (self._generation + 1) % 2**16
        self._generations[k] = self._generation  # before its first request can arrive
        self._notify(k // self._per_process, AgentNotice(k, self._generation, START))

    def _notify(self, p: int, *notices: AgentNotice) -> None:
        if (entrance := self._entrances.get(p)) is not None:
            with suppress(OSError):  # it has died: `receive` replaces it
                notify(entrance, *notices)
