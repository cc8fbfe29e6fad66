"""Agents that share a process: the test answers them in place of predictors and trainers."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from backend.specs.run import parse_run_spec
from tests.support.scripted_environment import EVERY_END, N_ACTIONS, Script, Scripted
from tests.support.waiting import Patience
from tests.workers.engine.methods.ga3c.ga3c_runs import thread_agents
from workers.engine.envs.shared import NOT_WATCHED
from workers.engine.methods.base import EpisodeEnd, StepResult
from workers.engine.methods.ga3c.agent_pool import AgentPool
from workers.engine.methods.ga3c.memory import (
    EPISODES_BEGUN,
    STEPS,
    AgentRequest,
    Experiences,
    ExperienceShape,
    Queue,
    places,
)

N_AGENTS = 5
T_MAX = 3


class Answering:
    """A pool of agents, whose requests it answers in random order and numbers."""

    def __init__(self, spec: Any) -> None:
        shape = ExperienceShape(N_AGENTS, T_MAX, N_ACTIONS, (4,), "float32")
        self.experiences, self.predictions, self.trainings = Experiences(shape), Queue(), Queue()
        self.experiences.live_agent[0] = NOT_WATCHED
        self.pool = AgentPool(spec, self.experiences, self.predictions, self.trainings)
        self.submitted = defaultdict[int, list[list[Any]]](list)
        """Observations, actions and returns of each agent's submissions."""
        self.episodes: list[EpisodeEnd] = []
        self.old: list[AgentRequest] = []
        """Requests of agents that have been stopped."""
        self._waiting: list[AgentRequest] = []
        self._rng = np.random.default_rng(0)

    def until(self, enough: Callable[[], bool]) -> None:
        """Answer until there is enough."""
        patience = Patience()
        while patience.lasts() and not enough():
            self._receive()
            self._rng.shuffle(self._waiting)
            n = self._rng.integers(len(self._waiting) + 1)
            answered, self._waiting = self._waiting[:n], self._waiting[n:]
            self._predict(answered)

    def pause(self, n_agents: int) -> None:
        """Answer nothing until so many agents wait for an answer, and receive what they have sent before."""
        patience = Patience()
        while patience.lasts() and sum(map(self.pool.is_current, self._waiting)) < n_agents:
            self._receive()
        self._receive()

    def _receive(self) -> None:
        result = StepResult(0, 0, 0)
        self.pool.receive(0.001, result)
        self.episodes += result.episodes
        self._train()
        if len(self.predictions):
            self._waiting += self.predictions.take(N_AGENTS)

    def close(self) -> None:
        for part in (self.predictions, self.trainings):
            part.close()
        self.pool.resize(0)
        self.experiences.close()

    def _predict(self, requests: list[AgentRequest]) -> None:
        self.old += [request for request in requests if not self.pool.is_current(request)]
        current = [request for request in requests if self.pool.is_current(request)]
        shared = self.experiences
        for k, observation in zip(
            [request.agent for request in current], shared.observation_ASL[places(current)], strict=True
        ):
            shared.policy_AN[k] = np.exp(observation) / np.exp(observation).sum()
            shared.value_A[k] = observation.sum()
        self.pool.answer_predictions(requests)  # to those that are stopped too, which must ignore it

    def _train(self) -> None:
        for request in self.trainings.take(100) if len(self.trainings) else []:
            if self.pool.is_current(request):
                at = (request.agent, request.segment, slice(request.place))
                arrays = ("observation_ASL", "action_ASL", "return_ASL")
                columns = [getattr(self.experiences, name)[at].tolist() for name in arrays]
                self.submitted[request.agent].append(columns)
            self.pool.answer_training(request)


@contextmanager
def answering(
    script: Script, monkeypatch: pytest.MonkeyPatch, agents_per_process: int
) -> Iterator[Answering]:
    """Agents whose environments each play the whole script."""

    def begin(self: Scripted, render_mode: str) -> None:
        initialise(self, render_mode)
        self.outcomes = cycle(EVERY_END)  # type: ignore[misc]

    initialise = Scripted.__init__
    config = {"agents_per_process": agents_per_process, "t_max": T_MAX, "gamma": 0.9}
    request = {"algorithm": "ga3c", "stop": {"agent_steps": 10**9}, "config": config}
    with thread_agents(monkeypatch), monkeypatch.context() as patch:
        patch.setattr(Scripted, "__init__", begin)
        answers = Answering(parse_run_spec(script(EVERY_END) | request))
        try:
            yield answers
        finally:
            answers.close()


def test_agents_of_one_process_act_as_agents_of_their_own_processes(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    enough = 2 * len(EVERY_END)
    layouts = []
    for agents_per_process in (1, 2, N_AGENTS):
        with answering(script, monkeypatch, agents_per_process) as answers:
            answers.pool.resize(N_AGENTS)
            assert len(answers.pool.pids) == -(-N_AGENTS // agents_per_process)
            answers.until(lambda: all(len(answers.submitted[k]) >= enough for k in range(N_AGENTS)))
            of_agents = {}
            for k in range(N_AGENTS):
                ended = [episode for episode in answers.episodes if episode.source == f"actor {k}"]
                episodes = [(e.seed, e.episode_return, e.length_steps, e.crashed) for e in ended[:10]]
                assert len(episodes) == 10
                of_agents[k] = (answers.submitted[k][:enough], episodes)
            layouts.append(of_agents)
    own, *shared = layouts
    assert all(layout == own for layout in shared)
    assert len({str(experiences) for experiences in own.values()}) == N_AGENTS


def test_agent_stops_and_starts_in_a_process_whose_others_go_on(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(script, monkeypatch, 3) as answers:
        counts = answers.experiences.count_AC
        answers.pool.resize(3)
        answers.until(lambda: bool((counts[:3, STEPS] >= 3).all()))
        pids, begun = answers.pool.pids, counts[2, EPISODES_BEGUN]
        ended = len(answers.episodes)
        answers.pool.resize(2)
        answers.until(lambda: bool(answers.old))
        stopped = counts[2].copy()
        before = counts[0, STEPS]
        answers.until(lambda: counts[0, STEPS] >= before + 2 * len(EVERY_END))
        assert (counts[2] == stopped).all()
        answers.pool.resize(3)
        answers.until(lambda: counts[2, STEPS] >= stopped[STEPS] + len(EVERY_END))
        assert counts[2, EPISODES_BEGUN] > begun
        assert answers.pool.pids == pids
        answers.pause(3)
        seeds = {k: [e.seed for e in answers.episodes if e.source == f"actor {k}"] for k in range(3)}
        assert ended < len(answers.episodes)
        for k in (0, 1):  # none was interrupted
            assert counts[k, EPISODES_BEGUN] - len(seeds[k]) == 1
        assert len(seeds[2]) == len(set(seeds[2]))
