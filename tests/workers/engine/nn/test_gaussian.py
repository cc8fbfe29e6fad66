"""The normal policy of continuous A3C against SciPy's normal distributions."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from workers.engine.nn.losses import gaussian_actor_critic_loss
from workers.engine.nn.networks import gaussian_actor_critic
from workers.engine.nn.policies import GaussianPolicy

N = 6


def batch(D: int) -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(D)
    return {
        "mu": rng.normal(size=(N, D)),
        "variance": rng.uniform(0.1, 3.0, size=N),
        "v": rng.normal(size=N),
        "a": rng.normal(size=(N, D)),
        "R": rng.normal(size=N),
    }


def log_pi(mu: NDArray[np.float64], variance: float, a: NDArray[np.float64]) -> float:
    return float(stats.multivariate_normal(mu, variance * np.eye(len(mu))).logpdf(a))


def entropy(variance: float) -> float:
    return float(stats.norm(0, np.sqrt(variance)).entropy())


def total(b: dict[str, NDArray[np.float64]], advantage: NDArray[np.float64]) -> float:
    """Mean of the loss with (R - V) in the policy's part held at `advantage`."""
    policy = [-log_pi(b["mu"][n], b["variance"][n], b["a"][n]) * advantage[n] for n in range(N)]
    value = (b["R"] - b["v"]) ** 2
    return float(np.mean(policy) + 0.5 * np.mean(value) - 0.1 * np.mean([entropy(x) for x in b["variance"]]))


@pytest.mark.parametrize("D", [1, 3, 17])
def test_gaussian_loss_and_gradient_equal_scipys(D: int) -> None:
    b = batch(D)
    tensors = {name: torch.from_numpy(x.copy()).requires_grad_() for name, x in b.items()}
    loss = gaussian_actor_critic_loss(
        tensors["mu"],
        tensors["variance"],
        tensors["v"],
        tensors["a"].detach(),
        tensors["R"].detach(),
        beta=0.1,
        value_coefficient=0.5,
    )
    advantage = b["R"] - b["v"]
    assert loss.total.item() == pytest.approx(total(b, advantage), abs=1e-9)
    assert loss.entropy.item() == pytest.approx(np.mean([entropy(x) for x in b["variance"]]), abs=1e-9)
    loss.total.backward()  # type: ignore[no-untyped-call]
    for name in ("mu", "variance", "v"):
        gradient = tensors[name].grad
        assert gradient is not None
        for k in np.ndindex(b[name].shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = {key: x.copy() for key, x in b.items()}
                moved[name][k] += step
                ends.append(total(moved, advantage))
            numeric = (ends[0] - ends[1]) / 2e-5
            assert gradient[k].item() == pytest.approx(numeric, abs=1e-6), (name, k)


def test_gaussian_policy_samples_its_normal_distribution() -> None:
    torch.manual_seed(0)
    network = gaussian_actor_critic("mlp", (4,), 2)
    observation = np.repeat(np.random.default_rng(0).normal(size=(1, 4)).astype(np.float32), 5_000, 0)
    policy = GaussianPolicy(network, torch.device("cpu"), 1)
    action, value, mu = policy.act(observation, np.arange(5_000))
    with torch.no_grad():
        expected_mu, variance = network.policy_head(network.policy_body(torch.from_numpy(observation[:1])))
        expected_value = network.value_head(network.value_body(torch.from_numpy(observation[:1])))
    np.testing.assert_allclose(mu[0], expected_mu[0].numpy(), rtol=1e-4, atol=1e-6)
    assert value[0] == pytest.approx(expected_value.item(), rel=1e-4)
    for d in range(2):
        ks = stats.kstest(action[:, d], stats.norm(mu[0, d], variance.item() ** 0.5).cdf)
        assert ks.pvalue > 1e-3


def test_gaussian_policy_and_value_share_no_parameters() -> None:
    network = gaussian_actor_critic("mlp", (4,), 2, lstm_cells=128)
    shared = {id(p) for p in network.policy_body.parameters()} & {
        id(p) for p in network.value_body.parameters()
    }
    assert not shared
    hidden = 4 * 200 + 200 + 4 * 128 * (200 + 128 + 1)
    assert sum(p.numel() for p in network.parameters()) == 2 * hidden + 129 * (2 + 1 + 1)


def test_gaussian_pixel_network_uses_the_convolutions_alone() -> None:
    network = gaussian_actor_critic("nips", (84, 84, 4), 3, lstm_cells=128)
    convolutions = (16 * 256 + 16) + (32 * 256 + 32)
    lstm = 4 * 128 * (32 * 9 * 9 + 128 + 1)
    assert sum(p.numel() for p in network.parameters()) == 2 * (convolutions + lstm) + 129 * (3 + 1 + 1)
