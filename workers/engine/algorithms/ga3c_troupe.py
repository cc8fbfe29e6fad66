"""GA3C's agents seen from the engine: started, heard, replaced when killed, ended."""

import pickle
import socket
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess

from backend.specs.run import RunSpec
from workers.engine.ga3c.agent import PREDICTED, Task, run_agent
from workers.engine.ga3c.memory import STEPS, Experiences, Queue, Request
from workers.engine.learner import Advance

END_TIMEOUT_S = 10.0
MAX_FRUITLESS_DEATHS = 3
"""An agent that is killed so often in a row before its first decision will not do better."""
_PRELOAD = [
    "__main__",
    "workers.engine.ga3c.agent",
    "workers.engine.envs.atari",
    "workers.engine.envs.classic",
]
_FORKSERVER_DIED = 255


class AgentFailedError(RuntimeError):
    """An agent ended by itself; its own message is in the engine's standard error."""


@dataclass(slots=True)
class _Agent:
    process: ForkServerProcess
    generation: int
    answers: socket.socket
    books: Connection
    steps_at_start: int
    fruitless_deaths: int


class Troupe:
    """All agents of one engine."""

    def __init__(self, spec: RunSpec, experiences: Experiences, predictions: Queue, trainings: Queue) -> None:
        self._spec = spec.model_dump(mode="json")
        self._experiences = experiences
        self._predictions = predictions
        self._trainings = trainings
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(_PRELOAD)
        self._agents: dict[int, _Agent] = {}
        self._generation = 0

    def set(self, n: int) -> None:
        """Start or end agents until there are n."""
        ending = [self._agents.pop(k) for k in list(self._agents) if k >= n]
        for agent in ending:
            self._let_go(agent)
        for agent in ending:
            self._reap(agent)
        for k in range(n):
            if k not in self._agents:
                self._start(k)

    def present(self, request: Request) -> bool:
        """Whether the process that made this request is still at work."""
        agent = self._agents.get(request.agent)
        return agent is not None and agent.generation == request.generation

    def answer_prediction(self, request: Request) -> None:
        """Wake the agent that asked; one that has died is replaced when that is heard."""
        self._answer(request, PREDICTED)

    def answer_training(self, request: Request) -> None:
        """Give the agent its segment back."""
        self._answer(request, bytes([request.segment]))

    def listen(self, timeout_s: float, heard: Advance) -> None:
        """Wait for episodes, pictures and deaths, and put them into `heard`.

        Raises:
            AgentFailedError: an agent was not killed, but ended.
        """
        channels = {agent.books: k for k, agent in self._agents.items()}
        for channel in wait(list(channels), timeout_s):
            k = channels[channel]  # type: ignore[index]
            try:
                kind, content = pickle.loads(self._agents[k].books.recv_bytes())  # noqa: S301  # our own child's
            except (EOFError, OSError):
                self._replace(k, heard)
                continue
            if kind == "episode":
                heard.episodes.append(content)
            else:
                heard.pictures.append(content)

    def _start(self, k: int, fruitless_deaths: int = 0) -> None:
        self._generation = (self._generation + 1) % 2**16
        answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        books, their_books = self._context.Pipe(duplex=False)
        task = Task(
            self._spec,
            k,
            self._generation,
            self._experiences,
            self._predictions.entrance,
            self._trainings.entrance,
            theirs,
            their_books,
        )
        steps = int(self._experiences.count_AC[k, STEPS])
        process = self._context.Process(target=run_agent, args=(task,), name=f"agent {k}")
        # Known before its first request comes.
        self._agents[k] = _Agent(process, self._generation, answers, books, steps, fruitless_deaths)
        process.start()
        theirs.close()
        their_books.close()

    def _answer(self, request: Request, answer: bytes) -> None:
        agent = self._agents.get(request.agent)
        if agent is not None and agent.generation == request.generation:
            with suppress(OSError):
                agent.answers.send(answer)

    def _let_go(self, agent: _Agent) -> None:
        agent.answers.close()
        agent.books.close()

    def _reap(self, agent: _Agent) -> None:
        agent.process.join(END_TIMEOUT_S)
        if agent.process.exitcode is None:
            agent.process.kill()
            agent.process.join()

    def _replace(self, k: int, heard: Advance) -> None:
        agent = self._agents.pop(k)
        self._let_go(agent)
        self._reap(agent)
        code = agent.process.exitcode
        if code is None or 0 <= code < _FORKSERVER_DIED:
            raise AgentFailedError(f"agent {k} ended with exit status {code}")
        how = f"was killed by signal {-code}" if code < 0 else "died with its fork server"
        fruitless = agent.steps_at_start == int(self._experiences.count_AC[k, STEPS])
        deaths = agent.fruitless_deaths + 1 if fruitless else 0
        if deaths >= MAX_FRUITLESS_DEATHS:
            raise AgentFailedError(f"agent {k} {how}, as {deaths - 1} before it, before its first decision")
        heard.warnings.append(f"agent {k} {how}; another takes its place")
        self._start(k, deaths)
