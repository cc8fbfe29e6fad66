"""PPO's loss and its minibatches against slow transcriptions of the paper, and CartPole."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.ppo import PpoConfig
from backend.specs.run import parse_run_spec
from tests.support.learning import SOLVED, cartpole_score
from workers.engine.methods.paac import ppo
from workers.engine.methods.paac.learner import PaacLearner
from workers.engine.methods.paac.method import RolloutBatch, RolloutContext, Slice
from workers.engine.methods.paac.ppo import METHOD, ProximalPolicy, log_pi_and_entropy
from workers.engine.nn.autograd import create_unroll
from workers.engine.nn.devices import Acceleration
from workers.engine.nn.losses import PpoLoss, ppo_loss
from workers.engine.nn.networks import actor_critic, diagonal_actor_critic
from workers.engine.nn.optimizers import FlatParameters

T, B, GAMMA, LAMBDA = 6, 3, 0.9, 0.8


def test_defaults_are_one_update_for_each_minibatch_of_each_epoch() -> None:
    assert ppo.updates(PpoConfig()) == 3 * 4
    with pytest.raises(ValueError, match="must divide t_max"):
        PpoConfig(t_max=10, n_minibatches=4)


def objective(row: NDArray[np.float64], clip: float) -> tuple[float, float, float]:
    """Terms of equation 9 of one decision: the policy's, the value's, the entropy's."""
    log_pi, old_log_pi, entropy, V, A, target = row.tolist()
    ratio = np.exp(log_pi - old_log_pi)
    clipped = ratio * A
    if A > 0 and ratio > 1 + clip:
        clipped = (1 + clip) * A
    if A < 0 and ratio < 1 - clip:
        clipped = (1 - clip) * A
    return clipped, (V - target) ** 2, entropy


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.floats(0.01, 0.5))
def test_loss_is_the_papers(seed: int, N: int, clip: float) -> None:
    rng = np.random.default_rng(seed)
    log_pi, old, entropy, V, A, target = (rng.normal(size=N) for _ in range(6))
    loss = ppo_loss(
        *(torch.from_numpy(array) for array in (log_pi, entropy, V)),
        old_log_pi_N=torch.from_numpy(old),
        advantage_N=torch.from_numpy(A),
        target_N=torch.from_numpy(target),
        clip=torch.tensor(clip, dtype=torch.float64),
        beta=0.01,
        value_coefficient=0.5,
    )
    rows = np.stack([log_pi, old, entropy, V, A, target], 1)
    terms = [objective(row, clip) for row in rows]
    policy, value, mean_entropy = np.mean(terms, axis=0)
    ratio = np.exp(log_pi - old)
    np.testing.assert_allclose(loss.total, -policy + 0.5 * value - 0.01 * mean_entropy, rtol=1e-9)
    np.testing.assert_allclose(loss.kl, np.mean(ratio - 1 - np.log(ratio)), rtol=1e-9, atol=1e-12)
    assert loss.clip_fraction == pytest.approx(np.mean(np.abs(ratio - 1) > clip))


def test_normal_policy_has_the_density_and_entropy_of_a_diagonal_normal_distribution() -> None:
    torch.manual_seed(0)
    network = diagonal_actor_critic("mlp", (4,), 3)
    torch.nn.init.normal_(network.log_sigma)
    mu_ND, action_ND = torch.randn(5, 3), torch.randn(5, 3)
    normals = torch.distributions.Normal(mu_ND, network.log_sigma.exp())
    log_pi_N, entropy_N = log_pi_and_entropy(network, mu_ND, action_ND)
    torch.testing.assert_close(log_pi_N, normals.log_prob(action_ND).sum(-1))  # type: ignore[no-untyped-call]
    torch.testing.assert_close(entropy_N, normals.entropy().sum(-1))  # type: ignore[no-untyped-call]


def advantages(batch: RolloutBatch) -> NDArray[np.float64]:
    """Equation 11, backwards, (T, B)."""
    A_TB = np.zeros((T, B))
    for e in range(B):
        A, following = 0.0, float(batch.bootstrap_B[e])
        for t in reversed(range(T)):
            if batch.ended_TB[t, e]:
                A = following = 0.0
            V = float(batch.value_TB[t, e])
            A = float(batch.reward_TB[t, e]) + GAMMA * following - V + GAMMA * LAMBDA * A
            A_TB[t, e], following = A, V
    return A_TB


@pytest.mark.parametrize("normalises", [True, False])
@pytest.mark.parametrize("crashed", [(), (1, 4)])
def test_gradients_are_those_of_shuffled_minibatches(normalises: bool, crashed: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    c = PpoConfig(
        n_e=6, t_max=T, gamma=GAMMA, gae_lambda=LAMBDA, n_epochs=2, n_minibatches=3, clip=0.2,
        beta=0.1, value_coefficient=0.5, normalise_advantages=normalises,
    )  # fmt: skip
    network = actor_critic("mlp", (4,), 2)
    flat = FlatParameters(network)
    generator = torch.Generator().manual_seed(3)
    unroll = create_unroll(network.body, None)
    method = ProximalPolicy(RolloutContext(c, network, flat.theta, unroll, Slice(0, B), generator))
    method.begin(0, 0.25)  # the clip is annealed with the rate
    N = T * B
    kept = [n for n in range(N) if n not in crashed]
    batch = RolloutBatch(
        features_NF=None,
        observation_N=torch.randn(N, 4),
        action_N=torch.randint(2, (N,)),
        log_pi_N=torch.rand(N).log(),
        value_TB=torch.randn(T, B),
        reward_TB=torch.randn(T, B),
        ended_TB=torch.rand(T, B) < 0.2,
        bootstrap_B=torch.randn(B),
        kept_N=torch.tensor(kept) if crashed else None,
        share=0.5,
    )
    assert batch.observation_N is not None
    assert batch.log_pi_N is not None
    shuffled = torch.Generator().manual_seed(3)
    A_N = torch.from_numpy(advantages(batch).ravel())
    target_N = A_N + batch.value_TB.double().ravel()
    gradients = method.gradients(batch)
    for _ in range(c.n_epochs):
        places = (kept + kept)[:N]
        order = [places[k] for k in torch.rand(N, generator=shuffled).argsort().tolist()]
        assert set(order) == set(kept)
        for m in range(c.n_minibatches):
            index = order[m * N // 3 : (m + 1) * N // 3]
            flat.dtheta.zero_()
            metrics = next(gradients)
            exact = deepcopy(network).double()
            A_M = A_N[index]
            if normalises:
                A_M = (A_M - A_M.mean()) / (A_M.std(correction=0) + 1e-8)
            total = torch.zeros((), dtype=torch.float64)
            for n, A in zip(index, A_M, strict=True):
                logits, V = exact(batch.observation_N[n][None].double())
                log_pi = logits[0].log_softmax(0)
                ratio = (log_pi[batch.action_N[n]] - batch.log_pi_N[n]).exp()
                clipped = ratio.clamp(1 - 0.2 * 0.75, 1 + 0.2 * 0.75)
                total = total - torch.minimum(ratio * A, clipped * A)
                total = total + 0.5 * (V[0] - target_N[n]) ** 2 + 0.1 * (log_pi.exp() * log_pi).sum()
            parameters = list(exact.parameters())
            wanted = torch.autograd.grad(total / len(index) * batch.share, parameters)
            flattened = torch.cat([part.flatten() for part in wanted])
            torch.testing.assert_close(flat.dtheta.double(), flattened, rtol=1e-4, atol=1e-5)
            assert metrics["ppo/kl"] >= 0
            flat.theta.sub_(0.01 * flat.dtheta)  # the next gradient is that of the new theta
    with pytest.raises(StopIteration):
        next(gradients)


def learner(acceleration: Acceleration | None = None, **config: Any) -> PaacLearner:
    spec = parse_run_spec(
        {
            "algorithm": "ppo",
            "environment": "CartPole-v1",
            "stop": {"agent_steps": 10_000},
            "config": {"n_e": 4, "n_w": 1, "t_max": 16, "n_epochs": 2} | config,
            "device": "cpu",
        }
    )
    return PaacLearner(spec, METHOD.factories, acceleration=acceleration)


def trained(
    acceleration: Acceleration | None = None, **config: Any
) -> tuple[dict[str, Any], list[dict[str, float]]]:
    """The state after four rollouts with a resume in between, and the metrics that are not of time."""
    paac = learner(acceleration, **config)
    metrics = []
    try:
        for k in range(4):
            if k == 2:
                paac.restore(paac.state())
            advanced = paac.advance(k / 8, watched=False)
            assert (advanced.agent_steps, advanced.updates) == (64, 8)
            metrics.append({name: x for name, x in advanced.metrics.items() if "/time_" not in name})
        return paac.state(), metrics
    finally:
        paac.close()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_gpu_worker_trains_as_the_other_does(precision: str) -> None:
    state, metrics = trained(precision=precision)
    gpu_state, gpu_metrics = trained(Acceleration(groups=1), precision=precision)
    for name in ("theta", "m", "v", "n"):
        assert torch.equal(gpu_state[name], state[name])
    assert state["n"] == 32
    for of_gpu, of_cpu in zip(gpu_metrics, metrics, strict=True):
        assert of_gpu == pytest.approx(of_cpu, rel=1e-5, abs=1e-7)


@pytest.mark.service
def test_two_processes_repeat_each_other_bit_for_bit() -> None:
    first, _ = trained(n_w=2)
    second, _ = trained(n_w=2)
    assert torch.equal(first["theta"], second["theta"])


def flipped(log_pi_N: Tensor, entropy_N: Tensor, value_N: Tensor, **others: Any) -> PpoLoss:
    """The loss with the policy gradient's sign turned."""
    loss = ppo_loss(log_pi_N, entropy_N, value_N, **others)
    return loss._replace(total=loss.total - 2 * loss.policy)


@pytest.mark.learning
def test_ppo_learns_cartpole(tmp_path: Path) -> None:
    assert cartpole_score("ppo", tmp_path, 100_000) >= SOLVED


@pytest.mark.learning
@pytest.mark.long
def test_ppo_does_not_learn_with_the_loss_sign_flipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ppo, "ppo_loss", flipped)
    assert cartpole_score("ppo", tmp_path, 30_000) < 30
