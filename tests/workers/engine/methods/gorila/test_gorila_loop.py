"""Gorila's loop against Nair et al. 2015, Algorithm 1 and section 4.2.

Every process of a run is an object in this one, and Ray's calls return at once: actor, learner and shards
take turns, and the test sees each minibatch. It repeats the run in float64: targets by theta_minus, gradient,
AdaGrad, discarded gradients.
"""

import math
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from ray.exceptions import ActorDiedError, RayTaskError
from torch import Tensor

from backend.specs.events import CheckpointSavedEvent
from backend.specs.run import parse_run_spec
from tests.support.engine_process import logged
from tests.support.scripted_environment import N_ACTIONS, Outcome, Script, Scripted
from tests.support.waiting import Patience
from workers.engine.methods.base import DivergedError, StepResult
from workers.engine.methods.dqn.learner import DqnNetworks
from workers.engine.methods.gorila import process_group, shards, worker
from workers.engine.methods.gorila.gorila_dqn import GorilaLearner
from workers.engine.methods.gorila.learner import Replica
from workers.engine.nn.networks import action_values
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.nn.replay import Batch
from workers.engine.processes.phases import listening
from workers.engine.training import checkpoint
from workers.engine.training.control import Control
from workers.engine.training.loop import Training

CONFIG: dict[str, Any] = {
    "n_actors": 1,
    "n_learners": 1,
    "n_shards": 2,
    "parts_per_process": 2,
    "network": "mlp",
    "optimizer": "adagrad",
    "learning_rate": 0.05,
    "rmsprop_eps": 0.01,
    "gamma": 0.9,
    "reward_clip": 1.0,
    "batch_size": 4,
    "replay_capacity": 10_000,
    "learning_starts_agent_steps": 10,
    "agent_steps_per_update": 2,
    "target_update_updates": 5,
    "pull_interval": 1,
    "max_gradient_staleness": 100,
    "outlier_deviations": 0.0,
    "evaluation_episodes": 0,
}
OUTCOMES = [Outcome(5.0), Outcome(-0.3), Outcome(0.7, "terminated"), Outcome(-8.0), Outcome(0.4, "truncated")]


class Cluster:
    """Stands in for `RayCluster`."""

    def __init__(self, store_bytes: int) -> None: ...
    def check_servers(self) -> None: ...
    def close(self) -> None: ...

    def start(self, place: int, process: type, *arguments: Any) -> "Handle":
        return Handle(process(*arguments))


class Handle:
    """Of an object in this process; a call's reply is there at once."""

    def __init__(self, process: Any) -> None:
        self._process = process

    def __getattr__(self, method: str) -> Any:
        call = bool if method == "__ray_ready__" else getattr(self._process, method)
        return SimpleNamespace(remote=lambda *arguments: Reply(call(*arguments)))


@dataclass(eq=False)
class Reply:
    value: Any


@dataclass
class Gradient:
    """A gradient that the learner computed."""

    after_decisions: int
    batch: Batch
    theta: Tensor
    dtheta: Tensor
    loss: float


@dataclass
class Seen:
    gradients: list[Gradient] = field(default_factory=list)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Run Gorila without Ray, and record its gradients."""
    so_far = Seen()

    def recorded(replica: Replica, batch: Batch) -> dict[str, float]:
        theta = replica.theta.clone()
        metrics = DqnNetworks.compute_gradient(replica, batch)
        so_far.gradients.append(
            Gradient(len(Scripted.decisions), batch, theta, replica.dtheta.clone(), metrics["loss/td"])
        )
        return metrics

    monkeypatch.setattr(Replica, "compute_gradient", recorded)
    monkeypatch.setattr(process_group, "RayCluster", Cluster)
    monkeypatch.setattr("ray.get", lambda reply, timeout=None: reply.value)
    monkeypatch.setattr("ray.wait", lambda replies, num_returns, timeout=None: (replies[:1], replies[1:]))
    for module in (worker, shards):  # it is for a process of its own
        monkeypatch.setattr(module, "prepare_process", lambda: None)
    return so_far


def gorila(script: Script, outcomes: list[Outcome], agent_steps: int, **config: Any) -> GorilaLearner:
    request = {"algorithm": "gorila_dqn", "seed": 1, "stop": {"agent_steps": agent_steps}}
    return GorilaLearner(parse_run_spec(script(outcomes) | request | {"config": CONFIG | config}))


def play(learner: GorilaLearner, agent_steps: int) -> None:
    patience = Patience()
    while patience.lasts() and len(Scripted.decisions) < agent_steps:
        learner.advance(0.0, watched=False)


class AdaGrad:
    """theta+ in float64."""

    def __init__(self, learner: GorilaLearner) -> None:
        self.learning_rate = learner.config.learning_rate
        self.network = deepcopy(learner.network).double()
        self.theta = FlatParameters(self.network).theta
        self.G = torch.zeros_like(self.theta)

    def step(self, dtheta: Tensor) -> None:
        self.G += dtheta**2
        self.theta.sub_(self.learning_rate * dtheta / (self.G + CONFIG["rmsprop_eps"]).sqrt())


def equation_2(network: Any, target: Any, batch: Batch) -> Tensor:
    """A loss with DQN's gradient, the error clipped to ±1."""
    states, after = (torch.from_numpy(array).double() for array in (batch.state_B, batch.next_state_B))
    total = torch.zeros(())
    for i in range(len(batch.action_B)):
        y = float(batch.reward_B[i])
        if not batch.terminated_B[i]:
            y += CONFIG["gamma"] * float(target(after[i : i + 1]).detach().max())
        q = network(states[i : i + 1])[0, int(batch.action_B[i])]
        total = total - max(-1.0, min(1.0, y - float(q.detach()))) * q
    return total


def test_initial_theta_is_drawn_by_the_seed_of_the_run(script: Script, seen: Seen) -> None:
    torch.manual_seed(7)  # as the numbers drawn before it in its process
    learner = gorila(script, OUTCOMES, agent_steps=10)
    theta = learner.state()["theta"]
    learner.close()
    torch.manual_seed(1)
    assert torch.equal(theta, FlatParameters(action_values("mlp", (4,), N_ACTIONS)).theta)


def test_run_repeats_algorithm_1_update_after_update(script: Script, seen: Seen) -> None:
    learner = gorila(script, OUTCOMES, agent_steps=60)
    server = AdaGrad(learner)
    target = deepcopy(server.network)
    target_theta = FlatParameters(target).theta
    flat = FlatParameters(server.network, theta=server.theta)
    play(learner, 60)
    state = learner.state()
    learner.close()
    assert [gradient.after_decisions for gradient in seen.gradients] == list(range(10, 61, 2))
    logged = {decision.state.tobytes(): decision for decision in Scripted.decisions}
    for k, gradient in enumerate(seen.gradients):
        torch.testing.assert_close(gradient.theta.double(), server.theta, rtol=0, atol=1e-5, msg=f"theta {k}")
        if k % CONFIG["target_update_updates"] == 0:
            target_theta.copy_(server.theta)
        flat.dtheta.zero_()
        equation_2(server.network, target, gradient.batch).backward()  # type: ignore[no-untyped-call]
        torch.testing.assert_close(
            gradient.dtheta.double(), flat.dtheta, rtol=0, atol=1e-4, msg=f"dtheta {k}"
        )
        server.step(flat.dtheta)
        for s, a, r, terminal, after in zip(*gradient.batch, strict=True):
            decision = logged[s.tobytes()]
            assert (a, terminal) == (decision.action, decision.end == "terminated")
            assert r == np.float32(np.clip(decision.reward, -1, 1))
            assert terminal or np.array_equal(after, decision.after)
    torch.testing.assert_close(state["theta"].double(), server.theta, rtol=0, atol=1e-5)
    assert state["updates"] == len(seen.gradients)


def test_start_logs_each_process_as_a_phase(script: Script, seen: Seen) -> None:
    phases: list[str] = []
    with listening(phases.append):
        gorila(script, OUTCOMES, agent_steps=10).close()
    assert phases == ["starting 1 of 2 processes", "starting 2 of 2 processes"], "the shards and the bundle"


def test_last_decisions_are_shared_among_the_actors(script: Script, seen: Seen) -> None:
    """Of three decisions, one process is asked for two and the other for one."""
    learner = gorila(script, [Outcome(1.0)], agent_steps=3, n_actors=2, n_learners=2, parts_per_process=1)
    play(learner, 3)
    state = learner.state()
    learner.close()
    assert len(Scripted.decisions) == state["counts"]["agent_steps"] == 3
    assert state["counts"]["episodes_begun"] == {"0": 1, "1": 1}


def test_checkpoint_counts_the_reports_that_the_pause_waits_for(
    script: Script, seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, advance, taken = Control(), GorilaLearner.advance, 0

    def stop_before_a_report(self: GorilaLearner, progress: float, *, watched: bool) -> StepResult:
        nonlocal taken
        result = advance(self, progress, watched=watched)
        taken += result.agent_steps
        if taken < len(Scripted.decisions):
            control.stop("enough")
        return result

    monkeypatch.setattr(GorilaLearner, "advance", stop_before_a_report)
    request = {"algorithm": "gorila_dqn", "stop": {"agent_steps": 10**6}, "config": CONFIG}
    run_dir = tmp_path / "run"
    ended = Training(parse_run_spec(script(OUTCOMES) | request), run_dir, control=control).run()
    assert (ended.state, ended.reason) == ("stopped", "enough"), ended.traceback
    [saved] = [event for event in logged(run_dir) if isinstance(event, CheckpointSavedEvent)]
    ends = sum(decision.end != "" for decision in Scripted.decisions)
    assert (saved.agent_steps, saved.frames, saved.episodes) == (len(Scripted.decisions),) * 2 + (ends,)
    state = checkpoint.load(run_dir / "checkpoints" / saved.file)["learner"]
    assert saved.updates == state["updates"] == len(seen.gradients)
    assert state["counts"]["agent_steps"] == len(Scripted.decisions)
    assert state["counts"]["episodes_begun"] == {"0": ends + 1}


@pytest.mark.parametrize(("updates", "epsilon"), [(0, 1.0), (500, 0.6), (2_000, 0.2)])
def test_actor_acts_at_random_with_an_epsilon_annealed_over_updates(
    script: Script, seen: Seen, updates: int, epsilon: float
) -> None:
    """It falls from 1 to 0.2 over 1,000 updates of theta+."""
    config = {"exploration_eps": 0.2, "exploration_anneal_updates": 1_000}
    n = 600
    learner = gorila(script, [Outcome(0.0)], n, learning_starts_agent_steps=10_000, **config)
    learner.restore(learner.state() | {"updates": updates})
    play(learner, n)
    learner.policy(0)  # copies theta+
    with torch.no_grad():
        best = learner.network(torch.from_numpy(np.stack([d.state for d in Scripted.decisions]))).argmax(-1)
    learner.close()
    assert not seen.gradients
    share = np.mean([int(d.action) for d in Scripted.decisions] != best.numpy())
    p = epsilon * (N_ACTIONS - 1) / N_ACTIONS  # a random action may be the best one
    assert abs(share - p) <= 4 * (p * (1 - p) / n) ** 0.5


def test_shards_discard_gradients_staler_than_their_bound(script: Script, seen: Seen) -> None:
    """The learner never pulls again: its k-th gradient is k updates old."""
    learner = gorila(script, OUTCOMES, agent_steps=40, pull_interval=10_000, max_gradient_staleness=3)
    server = AdaGrad(learner)
    play(learner, 40)
    state = learner.state()
    learner.close()
    assert len(seen.gradients) > 10
    for gradient in seen.gradients[: 3 + 1]:
        server.step(gradient.dtheta.double())
    assert state["updates"] == 3 + 1
    torch.testing.assert_close(state["theta"].double(), server.theta, rtol=0, atol=1e-5)


def test_learner_discards_gradients_of_losses_above_its_bound(script: Script, seen: Seen) -> None:
    """The bound is changed while the run trains: mean + 1 standard deviation, by running averages."""
    learner = gorila(script, OUTCOMES, agent_steps=220, agent_steps_per_update=1, learning_rate=1e-4)
    server = AdaGrad(learner)
    learner.change(learner.config.model_copy(update={"outlier_deviations": 1.0}))
    play(learner, 220)
    state = learner.state()
    learner.close()
    mean = variance = 0.0
    kept = 0
    for n, gradient in enumerate(seen.gradients):
        if n < 100 or gradient.loss <= mean + math.sqrt(variance):
            server.step(gradient.dtheta.double())
            kept += 1
        weight = max(1 / (n + 1), 0.01)
        difference = gradient.loss - mean
        mean += weight * difference
        variance = (1 - weight) * (variance + weight * difference**2)
    assert 0 < len(seen.gradients) - kept < 80
    assert state["updates"] == kept
    torch.testing.assert_close(state["theta"].double(), server.theta, rtol=0, atol=1e-4)


def test_diverged_parameters_are_not_evaluated(script: Script, seen: Seen) -> None:
    learner = gorila(script, OUTCOMES, agent_steps=40)
    play(learner, 20)
    state = learner.state()
    state["theta"][0] = float("nan")
    learner.restore(state)
    with pytest.raises(DivergedError, match="theta became nan"):
        learner.policy(0)
    learner.close()


FAILED_START = RayTaskError("__init__", "", ValueError("no network"))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("cause", [FAILED_START, None])
def test_process_that_cannot_start_ends_the_run_and_one_that_died_is_restarted(
    script: Script, seen: Seen, monkeypatch: pytest.MonkeyPatch, cause: RayTaskError | None
) -> None:
    learner = gorila(script, OUTCOMES, agent_steps=1_000_000)
    deaths = 0

    def died(reply: Reply, timeout: float | None = None) -> Any:
        nonlocal deaths
        deaths += 1
        raise ActorDiedError(cause)

    monkeypatch.setattr(ActorDiedError, "__str__", lambda error: "in other words")
    with monkeypatch.context() as broken:
        broken.setattr("ray.get", died)
        with pytest.raises(process_group.GorilaProcessError) if cause is not None else nullcontext():
            learner.advance(0.0, watched=False)
    learner.close()
    assert deaths > 0
