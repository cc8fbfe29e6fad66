"""GA3C's agents from the learner's side: start, messages, replacement after a kill, stop.

Separate from `agent`, which is what the process of an agent runs.
"""

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from backend.specs.run import RunSpec
from workers.engine.envs.info import add_totals
from workers.engine.methods.base import StepResult
from workers.engine.methods.ga3c.agent import PREDICTED, AgentEnds, run_agent
from workers.engine.methods.ga3c.memory import STEPS, AgentRequest, Experiences, Queue
from workers.engine.processes.child import Child, preload
from workers.engine.processes.child_pool import REPLACED, ChildPool


class _Answers(NamedTuple):
    """Where the current process of an agent gets its answers."""

    generation: int
    socket: socket.socket


class AgentPool:
    """All agents of one engine."""

    def __init__(self, spec: RunSpec, experiences: Experiences, predictions: Queue, trainings: Queue) -> None:
        self._spec = spec
        self._experiences = experiences
        self._predictions = predictions
        self._trainings = trainings
        self._generation = 0
        self._answers: dict[int, _Answers] = {}
        preload("workers.engine.methods.ga3c.agent")
        self._agents = ChildPool(self._start, lambda k: int(experiences.count_AC[k, STEPS]))

    @property
    def pids(self) -> Sequence[int | None]:
        """Process ids of the agents."""
        return self._agents.pids

    def resize(self, n: int) -> None:
        """Start or stop agents until there are n."""
        for k in [k for k in self._answers if k >= n]:
            self._answers.pop(k).socket.close()
        self._agents.resize(n)

    def is_current(self, request: AgentRequest) -> bool:
        """Whether the process that sent this request is still the agent's."""
        answers = self._answers.get(request.agent)
        return answers is not None and answers.generation == request.generation

    def answer_prediction(self, request: AgentRequest) -> None:
        """Notify the agent that pi and V of its state are computed."""
        self._answer(request, PREDICTED)

    def answer_training(self, request: AgentRequest) -> None:
        """Notify the agent that its segment is free again."""
        self._answer(request, bytes([request.segment]))

    def receive(self, timeout_s: float, result: StepResult) -> bool:
        """Wait for messages of agents, and add episodes, frames and warnings to `result`.

        Returns:
            Whether there was any.

        Raises:
            ChildFailedError: an agent failed, or was killed too often before it took a decision.
        """
        messages = self._agents.receive(timeout_s)
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

    def _start(self, k: int) -> Child:
        self._generation = (self._generation + 1) % 2**16
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if k in self._answers:
            self._answers[k].socket.close()
        # Registered before its first request can arrive.
        self._answers[k] = _Answers(self._generation, mine)
        ends = AgentEnds(self._experiences, self._predictions.entrance, self._trainings.entrance, theirs)
        with theirs:
            return Child(run_agent, self._spec, k, self._generation, ends, name=f"agent {k}")

    def _answer(self, request: AgentRequest, answer: bytes) -> None:
        answers = self._answers.get(request.agent)
        if answers is not None and answers.generation == request.generation:
            with suppress(OSError):
                answers.socket.send(answer)
