"""How methods use a GPU, with the CPU in its place: the same updates, and a switch for every graph."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.methods.base import Learner
from workers.engine.methods.dqn.dqn import DqnLearner
from workers.engine.methods.ga3c.ga3c import Ga3cLearner
from workers.engine.methods.ga3c.memory import AgentRequest, Experiences, ExperienceShape, Queue, put
from workers.engine.methods.ga3c.model import Model, Predictor, Stats, Submission, Trainer
from workers.engine.methods.paac.learner import PaacLearner
from workers.engine.methods.registry import METHODS
from workers.engine.nn.devices import Acceleration, acceleration_on
from workers.engine.nn.graphs import Graphs
from workers.engine.nn.networks import actor_critic

CONFIGS: dict[str, dict[str, Any]] = {
    "paac": {"n_e": 4, "n_w": 1},
    "dqn": {"learning_starts_agent_steps": 8, "replay_capacity": 100, "exploration_anneal_agent_steps": 1},
    "ga3c": {"n_actors": 1, "n_predictors": 1, "n_trainers": 1, "adjustment_interval_s": 0.0},
}
CREATE: dict[str, Callable[[RunSpec, Acceleration | None], Learner]] = {
    "paac": lambda spec, how: PaacLearner(spec, METHODS["paac"].factories, acceleration=how),
    "dqn": lambda spec, how: DqnLearner(spec, acceleration=how),
    "ga3c": lambda spec, how: Ga3cLearner(spec, acceleration=how),
}


def spec_of(algorithm: str, environment: str = "CartPole-v1") -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": environment,
            "device": "cpu",
            "stop": {"agent_steps": 10**6},
            "config": CONFIGS[algorithm],
        }
    )


@pytest.mark.service
@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize("algorithm", CONFIGS)
def test_switch_of_graphs_reaches_every_function_of_a_method(
    monkeypatch: pytest.MonkeyPatch, algorithm: str, graphs: bool
) -> None:
    created: list[bool] = []
    create = Graphs.__init__

    def recorded(self: Graphs, *args: Any, enabled: bool = True) -> None:
        created.append(enabled)
        create(self, *args, enabled=enabled)

    monkeypatch.setattr(Graphs, "__init__", recorded)
    with closing(CREATE[algorithm](spec_of(algorithm), Acceleration(graphs=graphs))) as learner:
        for _ in range(4):
            learner.advance(0.0, watched=False)
    assert created == [graphs] * {"paac": 1, "dqn": 2, "ga3c": 2}[algorithm]


def test_gpu_is_used_by_default_and_as_requested() -> None:
    gpu, cpu, switched = torch.device("cuda"), torch.device("cpu"), Acceleration(graphs=False)
    assert acceleration_on(gpu, None) == Acceleration()
    assert acceleration_on(cpu, None) is None
    assert acceleration_on(gpu, switched) == acceleration_on(cpu, switched) == switched


def test_dqn_trains_as_on_a_cpu_bit_for_bit() -> None:
    """Acting from the same memory each time and gradients of whole minibatches; CartPole, in which Q acts."""

    def trained(acceleration: Acceleration | None) -> tuple[list[Any], torch.Tensor]:
        with closing(DqnLearner(spec_of("dqn"), acceleration=acceleration)) as dqn:
            results = [dqn.advance(0.0, watched=False) for _ in range(60)]
            episodes = [(e.seed, e.episode_return) for result in results for e in result.episodes]
            assert sum(result.updates for result in results) > 50
            assert len(episodes) > 1
            return [episodes, [result.metrics for result in results]], dqn.theta.clone()

    plain, theta = trained(None)
    assert torch.equal(trained(Acceleration())[1], theta)
    episodes, metrics = trained(Acceleration(graphs=False))[0]
    assert episodes == plain[0]
    for mine, expected in zip(metrics, plain[1], strict=True):
        assert mine == pytest.approx(expected, rel=1e-5)


class NoAgents:
    """Agents that wait for nothing."""

    def is_current(self, request: AgentRequest) -> bool:
        return True

    def answer_predictions(self, requests: Sequence[AgentRequest]) -> None: ...
    def answer_training(self, request: AgentRequest) -> None: ...


@contextmanager
def ga3c(acceleration: Acceleration | None) -> Iterator[tuple[Model, Experiences, Queue, Predictor, Trainer]]:
    """A predictor and a trainer of the network `nips`, with memory for 16 agents."""
    config = parse_run_spec(
        {"algorithm": "ga3c", "environment": "Catch-v0", "stop": {"agent_steps": 1}, "config": {}}
    ).config
    torch.manual_seed(1)
    shape = ExperienceShape(16, 5, 3, (84, 84, 4), "uint8")
    model = Model(actor_critic("nips", (84, 84, 4), 3), torch.device("cpu"), config, acceleration)  # type: ignore[arg-type]
    queue, other = Queue(), Queue()
    with closing(queue), closing(other), closing(Experiences(shape)) as experiences:
        shared = (model, experiences, NoAgents(), Stats())
        yield model, experiences, queue, Predictor(queue, *shared), Trainer(other, *shared)


def test_ga3c_predicts_and_trains_as_on_a_cpu() -> None:
    """Passes over as many states as there are, and over those filled up to the next size."""
    rng = np.random.default_rng(0)
    states = rng.integers(0, 256, (16, 84, 84, 4), np.uint8)
    submission = Submission(
        states,
        rng.integers(0, 3, 16, np.int32),
        rng.normal(size=16).astype(np.float32),
        np.zeros(16, np.int64),
    )
    computed = []
    for acceleration in (None, Acceleration(), Acceleration(graphs=False)):
        with ga3c(acceleration) as (model, experiences, queue, predictor, trainer):
            begin, predicted = model.theta.detach().clone(), []
            for n in (3, 9):
                experiences.observation_ASL[:n, 0, 0] = states[:n]
                for agent in range(n):
                    put(queue.entrance, AgentRequest(agent, generation=0, segment=0, place=0))
                predictor.work()
                predicted += [experiences.policy_AN[:n].copy(), experiences.value_A[:n].copy()]
                trainer.train([Submission._make(column[:n] for column in submission)])
            change = model.theta.detach() - begin
        assert change.abs().max() > 1e-4
        computed.append((change, predicted))
    (plain, expected), (by_graphs, with_graphs), (without, without_graphs) = computed
    assert torch.equal(by_graphs, without)
    torch.testing.assert_close(without, plain, rtol=1e-3, atol=1e-6)
    for mine, other, reference in zip(with_graphs, without_graphs, expected, strict=True):
        np.testing.assert_array_equal(mine, other)
        np.testing.assert_allclose(mine, reference, rtol=1e-4, atol=1e-6)
