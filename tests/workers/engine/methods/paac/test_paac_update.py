"""One update of PAAC and of its n-step Q in a scripted environment, against slow oracles of the papers."""

import time
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from backend.specs.algorithms.paac import PaacConfig
from backend.specs.algorithms.paac_q import PaacQConfig
from backend.specs.algorithms.synchronous import PRINTED_N_E
from backend.specs.run import parse_run_spec
from tests.support.devices import GPU
from workers.engine.envs.info import Totals
from workers.engine.envs.vector import FinishedEpisode
from workers.engine.methods.base import Learner
from workers.engine.methods.paac import rollout as paac_share
from workers.engine.methods.paac.gpu_rollout import GpuRolloutWorker
from workers.engine.methods.paac.learner import PaacLearner, time_usage
from workers.engine.methods.paac.method import RolloutContext, Slice
from workers.engine.methods.paac.paac_q import epsilons
from workers.engine.methods.paac.rollout import Timings
from workers.engine.methods.registry import METHODS
from workers.engine.nn import autograd, networks
from workers.engine.nn.autograd import create_unroll
from workers.engine.nn.devices import Acceleration
from workers.engine.nn.networks import action_values
from workers.engine.nn.optimizers import FlatParameters

T, B, ACTIONS, GAMMA = 3, 2, 2, 0.9
REWARD_TB = np.array([[1.0, 5.0], [-7.0, 0.5], [0.25, 2.0]], np.float32)
TERMINAL_TB = np.array([[False, False], [True, False], [False, False]])
KINDS = [
    pytest.param("cpu", None, id="cpu"),
    pytest.param("cpu", Acceleration(groups=1), id="gpu worker on the cpu, one group"),
    pytest.param("cpu", Acceleration(groups=2), id="gpu worker on the cpu, two groups"),
    *(
        pytest.param("cuda", Acceleration(graphs, groups), marks=GPU, id=f"cuda, {graphs=}, {groups=}")
        for graphs in (False, True)
        for groups in (1, 2)
    ),
]
"""Device, and how it is used."""
TRUNCATED_TB = np.array([[False, True], [False, False], [False, False]])
"""Environment 0 ends at decision 1; environment 1 is cut off at decision 0."""


class ScriptedEnv:
    """Stands in for `VectorEnv`: the same arrays, filled from the tables above."""

    def __init__(self, groups: int = 1) -> None:
        rng = np.random.default_rng(0)
        self.observation_TB = rng.normal(size=(T + 1, B, 4)).astype(np.float32)
        self.observation_TB[T] = self.observation_TB[0]  # with `t` set to 0, the next rollout is the same
        self.final_TB = rng.normal(size=(T, B, 4)).astype(np.float32)
        self.action_TB = np.zeros((T, B), np.int64)
        self.t = 0
        self.groups = [slice(g * B // groups, (g + 1) * B // groups) for g in range(groups)]
        self.action_names = ("left", "right")
        self.shared = SimpleNamespace(
            observation_SB=np.zeros((2, B, 4), np.float32),
            action_B=np.zeros(B, np.int32),
            reward_B=np.zeros(B, np.float32),
            terminated_B=np.zeros(B, np.bool_),
            truncated_B=np.zeros(B, np.bool_),
            episode_over_B=np.zeros(B, np.bool_),
            final_observation_B=np.zeros((B, 4), np.float32),
            frames_B=np.ones(B, np.int32),
            lives_B=np.zeros(B, np.int8),
            crashed_B=np.zeros(B, np.bool_),
        )

    def reset(self) -> None:
        self.shared.observation_SB[0] = self.observation_TB[0]

    def step(
        self, action_B: NDArray[np.int64], slot: int, acting_B: NDArray[np.bool_] | None = None
    ) -> list[FinishedEpisode]:
        for g, group in enumerate(self.groups):
            self.begin_step(action_B[group], slot, g)
        return [episode for g in range(len(self.groups)) for episode in self.finish_step(g)]

    def begin_step(self, action_B: NDArray[np.int64], slot: int, g: int) -> None:
        t, shared, group = self.t, self.shared, self.groups[g]
        self.action_TB[t, group] = action_B
        shared.observation_SB[slot, group] = self.observation_TB[t + 1, group]
        shared.final_observation_B[group] = self.final_TB[t, group]
        shared.reward_B[group] = REWARD_TB[t, group]
        shared.terminated_B[group], shared.truncated_B[group] = TERMINAL_TB[t, group], TRUNCATED_TB[t, group]
        shared.episode_over_B[group] = shared.terminated_B[group] | shared.truncated_B[group]
        self.t += g == len(self.groups) - 1

    def finish_step(self, g: int) -> list[FinishedEpisode]:
        over = np.flatnonzero(self.shared.episode_over_B).tolist()
        return [FinishedEpisode(i, 0, 1.0, 1, 1) for i in over if i in range(B)[self.groups[g]]]

    def watch(self, environment: int | None) -> None: ...
    def take_frame(self) -> None: ...

    def take_info(self) -> Totals:
        return {}

    def close(self) -> None: ...


_open: list[PaacLearner] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the learners of a test: memory that stays pinned cannot be pinned again by the next."""
    yield
    while _open:
        _open.pop().close()


def learner(
    monkeypatch: pytest.MonkeyPatch,
    algorithm: str = "paac",
    device: str = "cpu",
    acceleration: Acceleration | None = None,
    **config: Any,
) -> tuple[PaacLearner, ScriptedEnv]:
    env = ScriptedEnv(1 if acceleration is None else acceleration.groups)
    monkeypatch.setattr(paac_share, "VectorEnv", lambda *_, **__: env)
    settings = {"n_e": B, "t_max": T, "gamma": GAMMA, "max_grad_norm": 1e6} | config
    spec = parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": "CartPole-v1",
            "stop": {"agent_steps": 100},
            "config": settings,
            "device": device,
        }
    )
    paac = PaacLearner(spec, METHODS[algorithm].factories, acceleration=acceleration)
    _open.append(paac)
    return paac, env


def gelu_body(inputs: int) -> tuple[nn.Sequential, int]:
    """Layers without a fused backward pass."""
    return nn.Sequential(nn.Linear(inputs, 32), nn.GELU(), nn.LayerNorm(32)), 32


def gradient(paac: PaacLearner, env: ScriptedEnv, reward_TB: NDArray[np.float32]) -> torch.Tensor:
    """Algorithm 1, lines 11 to 17, decision by decision, in float64."""
    c, network = paac.config, deepcopy(paac.network).cpu().double()
    assert isinstance(c, PaacConfig)
    parameters = list(network.parameters())
    for parameter in parameters:
        parameter.grad = None

    def V(observation: NDArray[np.float32]) -> float:
        with torch.no_grad():
            return float(network(torch.from_numpy(observation).double()[None])[1])

    loss = torch.zeros((), dtype=torch.float64)
    for e in range(B):
        R = V(env.observation_TB[T, e])
        for t in reversed(range(T)):
            if TERMINAL_TB[t, e]:
                R = 0.0
            elif TRUNCATED_TB[t, e]:
                R = V(env.final_TB[t, e])
            R = float(reward_TB[t, e]) + c.gamma * R
            logits, v = network(torch.from_numpy(env.observation_TB[t, e]).double()[None])
            log_pi = logits[0].log_softmax(0)
            advantage = R - float(v.detach())
            entropy = -(log_pi.exp() * log_pi).sum()
            loss = loss - log_pi[env.action_TB[t, e]] * advantage - c.beta * entropy
            loss = loss + c.value_coefficient * (R - v[0]) ** 2
    (loss / (B * T)).backward()  # type: ignore[no-untyped-call]
    return torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])


@pytest.mark.parametrize(("device", "acceleration"), KINDS)
@pytest.mark.parametrize(
    ("config", "reward_TB"),
    [({"reward_clip": 0.0}, REWARD_TB), ({"reward_clip": 1.0}, np.clip(REWARD_TB, -1, 1))],
)
def test_paac_gradient_equals_algorithm_1(
    monkeypatch: pytest.MonkeyPatch,
    config: dict[str, Any],
    reward_TB: NDArray[np.float32],
    device: str,
    acceleration: Acceleration | None,
) -> None:
    settings = {"value_coefficient": 0.3, "beta": 0.02, "learning_rate": 1e-9} | config
    paac, env = learner(monkeypatch, "paac", device, acceleration, **settings)
    [share] = paac.rollout_workers
    for rollout in range(3):  # the second is recorded, the third replayed
        env.t = 0
        kept = share.finish().dtheta.cpu().double()
        expected = gradient(paac, env, reward_TB)
        torch.testing.assert_close(kept, expected, rtol=1e-5, atol=1e-6, msg=f"rollout {rollout}")


def test_paac_gradient_of_a_network_without_fused_layers_equals_algorithm_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(networks.BODIES, "mlp", gelu_body)
    monkeypatch.delattr(autograd, "FusedUnroll")
    paac, env = learner(monkeypatch, reward_clip=0.0)
    [worker] = paac.rollout_workers
    dtheta = worker.finish().dtheta.double()
    torch.testing.assert_close(dtheta, gradient(paac, env, REWARD_TB), rtol=1e-5, atol=1e-6)


def trained(acceleration: Acceleration | None, device: str = "cpu", **config: Any) -> Any:
    """The state of a learner in the real CartPole: four updates, a live change, a resume, four updates."""
    spec = parse_run_spec(
        {
            "algorithm": "paac",
            "environment": "CartPole-v1",
            "stop": {"agent_steps": 1_000},
            "config": {"n_e": 4, "n_w": 1, "learning_rate": 0.01} | config,
            "device": device,
        }
    )
    paac = PaacLearner(spec, METHODS["paac"].factories, acceleration=acceleration)
    try:
        metrics = [paac.advance(0.0, watched=False).metrics for _ in range(4)]
        assert isinstance(paac.config, PaacConfig)
        paac.change(paac.config.model_copy(update={"beta": 0.3, "gradient_scale": 2.0}))
        paac.restore(paac.state())
        metrics += [paac.advance(0.0, watched=False).metrics for _ in range(4)]
        return paac.state(), [m["loss/value"] for m in metrics], [m["optim/grad_norm"] for m in metrics]
    finally:
        paac.close()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_gpu_worker_trains_as_the_other_does(precision: str) -> None:
    """Bit for bit, with the same random numbers, which one group draws in the same order."""
    state, *metrics = trained(None, precision=precision)
    gpu_state, *gpu_metrics = trained(Acceleration(groups=1), precision=precision)
    assert torch.equal(gpu_state["theta"], state["theta"])
    assert torch.equal(gpu_state["g"], state["g"])
    assert gpu_state["shares"][0]["actions"] == state["shares"][0]["actions"]
    np.testing.assert_allclose(gpu_metrics, metrics, rtol=1e-6)


@pytest.mark.parametrize("groups", [pytest.param(1, marks=GPU), pytest.param(2, marks=GPU)])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_graphs_compute_the_same_bit_for_bit(precision: str, groups: int) -> None:
    eager, *metrics = trained(Acceleration(False, groups), "cuda", precision=precision)
    graphs, *graph_metrics = trained(Acceleration(True, groups), "cuda", precision=precision)
    assert torch.equal(graphs["theta"], eager["theta"])
    assert graphs["shares"][0]["actions"] == eager["shares"][0]["actions"]
    assert graph_metrics == metrics


@pytest.mark.parametrize("groups", [1, 2])
def test_gpu_worker_launches_and_copies_little(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    """A launch for each decision of a group, its bootstrap and the update; each observation goes up once."""
    paac, env = learner(monkeypatch, acceleration=Acceleration(groups=groups))
    [worker] = paac.rollout_workers
    assert isinstance(worker, GpuRolloutWorker)
    launched: list[Any] = []
    uploads: list[int] = []
    run, upload = worker.graphs.run, worker.upload

    def count_launch(name: Any, function: Any) -> None:
        launched.append(name)
        run(name, function)

    def count_upload(group: slice) -> torch.Tensor:
        uploads.append(B // groups)
        return upload(group)

    monkeypatch.setattr(worker.graphs, "run", count_launch)
    monkeypatch.setattr(worker, "upload", count_upload)
    for rollout in range(3):
        env.t = 0
        launched.clear()
        uploads.clear()
        worker.finish()
        assert len(launched) == (T + 1) * groups + 1
        assert sum(uploads) == (T + (rollout == 0)) * B


def test_paac_trains_to_the_same_parameters_with_and_without_fused_gradients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight updates in the real CartPole; later, differences of rounding choose other actions."""
    spec = parse_run_spec(
        {
            "algorithm": "paac",
            "environment": "CartPole-v1",
            "stop": {"agent_steps": 1_000},
            "config": {"n_e": 4, "n_w": 1, "learning_rate": 0.01},
        }
    )
    theta = []
    for name in ("AutogradUnroll", "FusedUnroll"):
        with monkeypatch.context() as only:
            only.delattr(autograd, name)
            if name == "FusedUnroll":
                only.setattr(autograd, "stages_of", lambda body: None)
            paac = PaacLearner(spec, METHODS["paac"].factories)
            initial = paac.flat.theta.clone()
            for _ in range(8):
                paac.advance(0.0, watched=False)
            theta.append(paac.flat.theta.clone())
            paac.close()
    fused, by_autograd = theta
    assert float((fused - initial).norm()) > 0.1 * float(initial.norm())
    torch.testing.assert_close(by_autograd, fused, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("device", "acceleration"), KINDS)
@pytest.mark.parametrize(
    ("schedule", "scaled", "progress", "rate", "initial_g"),
    [
        ("constant", False, 0.75, 0.01, 0.0),
        ("linear", False, 0.75, 0.0025, 0.0),
        ("linear", False, 0.0, 0.01, 1.0),
        ("constant", True, 0.75, 0.01 * B / 32, 0.0),
        ("linear", True, 0.75, 0.0025 * B / 32, 1.0),
    ],
)
def test_update_is_scaled_clipped_and_annealed(
    monkeypatch: pytest.MonkeyPatch,
    schedule: str,
    scaled: bool,
    progress: float,
    rate: float,
    initial_g: float,
    device: str,
    acceleration: Acceleration | None,
) -> None:
    settings: dict[str, Any] = {
        "learning_rate": 0.01,
        "learning_rate_schedule": schedule,
        "scale_learning_rate": scaled,
        "rmsprop_eps": 0.1,
    }
    settings |= {"gradient_scale": 5.0, "max_grad_norm": 0.5, "rmsprop_decay": 0.9}
    settings |= {"rmsprop_initial_g": initial_g}
    paac, _ = learner(monkeypatch, "paac", device, acceleration, **settings)
    before = paac.flat.theta.cpu().double()
    advance = paac.advance(progress, watched=False)
    unscaled, _ = learner(monkeypatch, "paac", device, acceleration)
    [share] = unscaled.rollout_workers
    d = 5.0 * share.finish().dtheta.cpu().double()
    assert advance.metrics["optim/grad_norm"] == pytest.approx(float(d.norm()), rel=1e-5)
    assert advance.metrics["optim/learning_rate"] == pytest.approx(rate)
    assert float(d.norm()) > 0.5
    d *= 0.5 / d.norm()
    after = before - rate * d / torch.sqrt(0.9 * initial_g + 0.1 * d * d + 0.1)
    torch.testing.assert_close(paac.flat.theta.cpu().double(), after, rtol=0, atol=1e-6)


def test_papers_learning_rate_is_proportional_to_n_e() -> None:
    """Section 5.2: 0.0007 n_e."""
    assert PaacConfig().learning_rate / PRINTED_N_E == pytest.approx(0.0007)


@pytest.mark.parametrize("acceleration", [None, Acceleration(groups=1)])
def test_time_usage_is_reported_as_fractions_of_one(
    monkeypatch: pytest.MonkeyPatch, acceleration: Acceleration | None
) -> None:
    two = [Timings(3.0, 1.0, 2.0), Timings(1.0, 2.0, 2.0)]
    assert time_usage(two, update_s=1.0, total_s=8.0) == {
        "paac/time_environment": 0.25,
        "paac/time_choosing": 0.1875,
        "paac/time_learning": 0.375,
        "paac/time_rest": 0.1875,
    }
    master, env = learner(monkeypatch, acceleration=acceleration)
    clock = count(1_000)
    # The environment's own time passes in its steps alone: 100 s each, beside 1 s between any two looks.
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock) + 100.0 * env.t)
    reported = master.advance(0.0, watched=False).metrics
    usage = {name: share for name, share in reported.items() if name.startswith("paac/time_")}
    assert sum(usage.values()) == pytest.approx(1.0)
    # 13 looks within, 3 steps: 3 × 101 s of 312 s.
    assert usage["paac/time_environment"] == pytest.approx(303 / 313, abs=0.03)


def q_gradient(master: PaacLearner, env: ScriptedEnv) -> torch.Tensor:
    """Algorithm S1 of Mnih et al. 2016, decision by decision, averaged over environments, in float64."""
    network, target = (deepcopy(master.network).cpu().double() for _ in range(2))
    FlatParameters(target, theta=master.theta_minus.cpu().double())
    parameters = list(network.parameters())
    for parameter in parameters:
        parameter.grad = None

    def best(observation: NDArray[np.float32]) -> float:
        with torch.no_grad():
            return float(target(torch.from_numpy(observation).double()[None]).max())

    loss = torch.zeros((), dtype=torch.float64)
    for e in range(B):
        R = best(env.observation_TB[T, e])
        for t in reversed(range(T)):
            if TERMINAL_TB[t, e]:
                R = 0.0
            elif TRUNCATED_TB[t, e]:
                R = best(env.final_TB[t, e])
            R = float(REWARD_TB[t, e]) + GAMMA * R
            q = network(torch.from_numpy(env.observation_TB[t, e]).double()[None])[0]
            loss = loss + (R - q[env.action_TB[t, e]]) ** 2
    (loss / (B * T)).backward()  # type: ignore[no-untyped-call]
    return torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])


@pytest.mark.parametrize(("device", "acceleration"), KINDS)
def test_paac_q_gradient_equals_n_step_q(
    monkeypatch: pytest.MonkeyPatch, device: str, acceleration: Acceleration | None
) -> None:
    master, env = learner(monkeypatch, "paac_q", device, acceleration, learning_rate=1e-9)
    torch.manual_seed(1)
    master.theta_minus += 0.3 * torch.randn_like(master.theta_minus)
    [share] = master.rollout_workers
    result = share.finish()
    torch.testing.assert_close(result.dtheta.cpu().double(), q_gradient(master, env), rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        q_NA = deepcopy(master.network).cpu()(torch.from_numpy(env.observation_TB[:T].reshape(T * B, -1)))
    assert result.metrics["value/max_q"] == pytest.approx(float(q_NA.max(-1).values.mean()), rel=1e-5)


def test_target_network_is_copied_every_target_update_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    # A rollout has B T = 6 frames: 10 are passed in the second, 20 in the fourth.
    master, env = learner(monkeypatch, "paac_q", target_update_frames=10)
    copied = []
    for _ in range(4):
        env.t = 0
        old = master.theta_minus.clone()
        master.advance(0.0, watched=False)
        copied.append(not torch.equal(master.theta_minus, old))
        if copied[-1]:
            assert torch.equal(master.theta_minus, master.flat.theta)
    assert copied == [False, True, False, True]
    kept = master.state()
    again, _ = learner(monkeypatch, "paac_q", target_update_frames=10)
    again.restore(kept)
    assert torch.equal(again.theta_minus, master.theta_minus)
    assert again.state()["frames"] == 24


def test_fork_whose_episodes_end_sooner_begins_new_ones() -> None:
    def learner_of(delay: int) -> Learner:
        spec = parse_run_spec(
            {
                "algorithm": "paac",
                "environment": "Memory-v0",
                "environment_config": {"delay_agent_steps": delay},
                "stop": {"agent_steps": 1_000},
                "config": {"n_e": 2, "n_w": 1},
            }
        )
        return METHODS["paac"].learner(spec)

    with closing(learner_of(12)) as parent, closing(learner_of(4)) as fork:
        for _ in range(2):
            parent.advance(0.0, watched=False)
        kept = parent.state()
        [worker] = kept["shares"]
        assert min(map(len, worker["actions"])) > 4
        fork.restore(kept)
        [worker] = fork.state()["shares"]
        assert worker["actions"] == [[], []]


def test_each_environment_has_its_own_epsilon() -> None:
    config = PaacQConfig(n_e=10, exploration_anneal_frames=1_000)
    ends = [0.1] * 4 + [0.01] * 3 + [0.5] * 3
    assert epsilons(config, Slice(0, 10), 0).tolist() == [1.0] * 10
    assert epsilons(config, Slice(0, 10), 500) == pytest.approx([(1 + end) / 2 for end in ends])
    assert epsilons(config, Slice(0, 10), 10**6).tolist() == ends
    assert epsilons(config, Slice(3, 8), 10**6).tolist() == ends[3:8], "each worker knows its own"


def test_epsilon_has_the_same_sources_in_all_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    master, env = learner(monkeypatch, "paac_q")
    sources = set()
    for _ in range(3):
        env.t = 0
        sources.add(frozenset(master.advance(0.0, watched=False).metrics_by_source))
    assert sources == {frozenset(), frozenset({"environment 0", "environment 1"})}


@pytest.mark.parametrize(("epsilon", "share"), [(0.0, 0.0), (1.0, 0.5), (0.5, 0.25)])
def test_fraction_of_random_actions_equals_epsilon(epsilon: float, share: float) -> None:
    """Of two actions, a random one is the best half of the time."""
    network = action_values("mlp", (4,), 2)
    generator = torch.Generator().manual_seed(0)
    config = PaacQConfig(
        n_e=512,
        exploration_anneal_frames=0,
        exploration_eps=epsilon,
        exploration_eps_low=epsilon,
        exploration_eps_high=epsilon,
    )
    theta = FlatParameters(network).theta
    method = METHODS["paac_q"].factories.algorithm(
        RolloutContext(config, network, theta, create_unroll(network.body, None), Slice(0, 512), generator)
    )
    method.begin(0, 0.0)
    choices = [method.choose(torch.randn(512, 128), slice(512)) for _ in range(20)]
    other = torch.cat([c.action_B != c.policy_BA.argmax(-1) for c in choices]).float().mean()
    assert float(other) == pytest.approx(share, abs=0.02)
    assert all(torch.equal(c.value_B, c.policy_BA.max(-1).values) for c in choices)
