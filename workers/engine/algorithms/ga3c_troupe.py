"""GA3C's agents seen from the engine: started, heard, replaced when killed, ended."""

import pickle
import socket
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.util import get_temp_dir

from backend.specs.run import RunSpec
from workers.engine.ga3c.agent import PREDICTED, Task, run_agent
from workers.engine.ga3c.memory import STEPS, Experiences, Queue, Request
from workers.engine.helpers import Helper, fork_server
from workers.engine.learner import Advance


@dataclass(slots=True)
class _Agent:
    helper: Helper
    generation: int
    answers: socket.socket
    books: Connection
    steps_at_start: int


class Troupe:
    """All agents of one engine."""

    def __init__(self, spec: RunSpec, experiences: Experiences, predictions: Queue, trainings: Queue) -> None:
        self._spec = spec.model_dump(mode="json")
        self._experiences = experiences
        self._predictions = predictions
        self._trainings = trainings
        self._context = fork_server("workers.engine.ga3c.agent")
        self._agents: dict[int, _Agent] = {}
        self._generation = 0

    def set(self, n: int) -> None:
        """Start or end agents until there are n."""
        ending = [self._agents.pop(k) for k in list(self._agents) if k >= n]
        for agent in ending:
            self._let_go(agent)
        for agent in ending:
            agent.helper.reap()
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
            HelperFailedError: an agent was not killed, but ended, having told why in the engine's standard
                error; or none of those before it came to a decision.
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
            get_temp_dir(),
        )
        steps = int(self._experiences.count_AC[k, STEPS])
        process = self._context.Process(target=run_agent, args=(task,), name=f"agent {k}")
        # Known before its first request comes.
        self._agents[k] = _Agent(Helper(process, fruitless_deaths), self._generation, answers, books, steps)
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

    def _replace(self, k: int, heard: Advance) -> None:
        agent = self._agents.pop(k)
        self._let_go(agent)
        fruitless = agent.steps_at_start == int(self._experiences.count_AC[k, STEPS])
        warning, deaths = agent.helper.mourn(fruitless=fruitless)
        heard.warnings.append(warning)
        self._start(k, deaths)
