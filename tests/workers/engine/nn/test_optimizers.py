"""Optimizers against transcriptions of Mnih et al. 2016, equation 1."""

import numpy as np
import pytest
import torch
from torch import nn

from workers.engine.nn.networks import actor_critic
from workers.engine.nn.optimizers import (
    Adam,
    CentredRMSProp,
    FlatParameters,
    MomentumSGD,
    RMSProp,
    clip_grad_norm_,
)

DTYPES = [(torch.float64, 1e-9), (torch.float32, 3e-6)]
"""By PyTorch, and compiled; with what each may be off."""


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize(("decay", "eps", "eta"), [(0.99, 0.1, 0.0224), (0.9, 1e-5, 7e-4), (0.0, 1.0, 1.0)])
def test_rmsprop_has_eps_inside_the_root(
    decay: float, eps: float, eta: float, dtype: torch.dtype, tolerance: float
) -> None:
    rng = np.random.default_rng(0)
    theta, g = rng.normal(size=50), np.zeros(50)
    optimizer = RMSProp(torch.from_numpy(theta.copy()).to(dtype), decay=decay, eps=eps)
    for _ in range(20):
        dtheta = rng.normal(size=50)
        optimizer.step(torch.from_numpy(dtheta).to(dtype), eta)
        for i in range(50):
            g[i] = decay * g[i] + (1 - decay) * dtheta[i] ** 2
            theta[i] = theta[i] - eta * dtheta[i] / np.sqrt(g[i] + eps)
    np.testing.assert_allclose(optimizer.theta.numpy(), theta, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(optimizer.g.numpy(), g, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("initial_g", [0.0, 1.0, 0.3])
def test_rmsprop_starts_from_its_initial_g(initial_g: float, dtype: torch.dtype, tolerance: float) -> None:
    """1 is TensorFlow's: `rms` starts at ones, then as equation 1."""
    rng = np.random.default_rng(0)
    theta, g = rng.normal(size=50), np.full(50, initial_g)
    start = torch.from_numpy(theta.copy()).to(dtype)
    optimizer = RMSProp(start, decay=0.99, eps=0.1, initial_g=initial_g)
    for _ in range(5):
        dtheta = 0.01 * rng.normal(size=50)
        optimizer.step(torch.from_numpy(dtheta).to(dtype), 0.0224)
        g = 0.99 * g + 0.01 * dtheta**2
        theta = theta - 0.0224 * dtheta / np.sqrt(g + 0.1)
    np.testing.assert_allclose(optimizer.theta.numpy(), theta, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(optimizer.g.numpy(), g, rtol=tolerance, atol=tolerance)


def test_first_step_from_zero_is_over_three_times_that_from_one() -> None:
    """sqrt((0.99 + 0.1) / 0.1) with the papers' decay of 0.99 and eps of 0.1, where gradients are small."""
    steps = []
    for initial_g in (0.0, 1.0):
        optimizer = RMSProp(torch.zeros(1), decay=0.99, eps=0.1, initial_g=initial_g)
        optimizer.step(torch.full((1,), 1e-4), 1.0)
        steps.append(-optimizer.theta.item())
    assert steps[0] / steps[1] == pytest.approx((1.09 / 0.1) ** 0.5, rel=1e-4)


@pytest.mark.parametrize("actor", range(1, 6))
def test_update_does_not_depend_on_its_first_chunk(actor: int) -> None:
    rng = np.random.default_rng(0)
    theta, *dthetas = (torch.from_numpy(rng.normal(size=50).astype(np.float32)) for _ in range(4))
    first, other = RMSProp(theta.clone(), decay=0.9, eps=0.1), RMSProp(theta, decay=0.9, eps=0.1, actor=actor)
    for dtheta in dthetas:
        first.step(dtheta, 0.01)
        other.step(dtheta, 0.01)
    np.testing.assert_allclose(other.theta, first.theta, rtol=1e-6)
    np.testing.assert_allclose(other.g, first.g, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_centred_rmsprop_divides_by_the_standard_deviation(dtype: torch.dtype, tolerance: float) -> None:
    """DQN's: the square of the mean is taken off, the minimum squared gradient stands inside the root."""
    rng = np.random.default_rng(0)
    theta, m, g = rng.normal(size=50), np.zeros(50), np.zeros(50)
    optimizer = CentredRMSProp(torch.from_numpy(theta.copy()).to(dtype), decay=0.95, eps=0.01)
    for _ in range(20):
        dtheta = 1 + rng.normal(size=50)
        optimizer.step(torch.from_numpy(dtheta).to(dtype), 0.00025)
        m = 0.95 * m + 0.05 * dtheta
        g = 0.95 * g + 0.05 * dtheta**2
        theta = theta - 0.00025 * dtheta / np.sqrt(g - m**2 + 0.01)
    np.testing.assert_allclose(optimizer.theta.numpy(), theta, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(optimizer.statistics()["m"].numpy(), m, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(optimizer.statistics()["g"].numpy(), g, rtol=tolerance, atol=tolerance)


def test_optimizer_propagates_nan() -> None:
    """A run that diverges shows it."""
    for optimizer in (
        RMSProp(torch.zeros(20), decay=0.99, eps=0.1),
        CentredRMSProp(torch.zeros(20), decay=0.95, eps=0.01),
        Adam(torch.zeros(20)),
    ):
        dtheta = torch.ones(20)
        dtheta[3], dtheta[17] = torch.nan, torch.inf
        optimizer.step(dtheta, 0.1)
        assert optimizer.theta.isnan().nonzero().flatten().tolist() == [3, 17]


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_clip_scales_down_to_the_norm_only(scale: float) -> None:
    dtheta = np.random.default_rng(1).normal(size=40) * scale
    norm = np.sqrt(sum(x * x for x in dtheta))
    clipped = torch.from_numpy(dtheta.copy())
    assert clip_grad_norm_(clipped, 5.0).item() == pytest.approx(norm, rel=1e-6)
    np.testing.assert_allclose(clipped.numpy(), dtheta * min(1.0, 5.0 / norm), rtol=1e-6)


def test_flat_parameters_are_views_of_the_network() -> None:
    torch.manual_seed(0)
    network = actor_critic("nips", (84, 84, 4), 6)
    before = [p.detach().clone() for p in network.parameters()]
    observation = torch.randint(0, 256, (3, 84, 84, 4), dtype=torch.uint8)
    logits = network(observation)[0]
    flat = FlatParameters(network)
    torch.testing.assert_close(network(observation)[0], logits)
    for p, was in zip(network.parameters(), before, strict=True):
        torch.testing.assert_close(p.detach(), was)
    flat.dtheta.zero_()
    network(observation)[1].sum().backward()
    assert sum(
        float(p.grad.abs().sum()) for p in network.parameters() if p.grad is not None
    ) == pytest.approx(float(flat.dtheta.abs().sum()), rel=1e-5)
    flat.theta.zero_()
    assert all(not p.any() for p in network.parameters())


def test_flat_parameters_refuse_a_buffer_of_another_size() -> None:
    with pytest.raises(ValueError, match="another network"):
        FlatParameters(nn.Linear(3, 2), theta=torch.zeros(7))


def test_momentum_weighs_the_gradient_by_one_minus_decay() -> None:
    """Supplement, section 7: m <- alpha m + (1 - alpha) dtheta, theta <- theta - eta m."""
    rng = np.random.default_rng(0)
    theta, m = rng.normal(size=50), np.zeros(50)
    optimizer = MomentumSGD(torch.from_numpy(theta.copy()), momentum=0.9, m=torch.zeros(50).double())
    for _ in range(20):
        dtheta = rng.normal(size=50)
        optimizer.step(torch.from_numpy(dtheta), 0.01)
        m = 0.9 * m + (1 - 0.9) * dtheta
        theta = theta - 0.01 * m
    np.testing.assert_allclose(optimizer.theta.numpy(), theta, rtol=0, atol=1e-6)


def test_shared_adam_counts_updates_of_all_actors() -> None:
    """Kingma and Ba 2015, Algorithm 1, with two optimizers that take turns over the same memory."""
    rng = np.random.default_rng(0)
    theta, m, v = rng.normal(size=50), np.zeros(50), np.zeros(50)
    shared = torch.from_numpy(theta.astype(np.float32))
    moments = {"m": torch.zeros(50), "v": torch.zeros(50), "n": torch.zeros(2)[0]}
    actors = [Adam(shared, **moments, actor=actor) for actor in (2, 3)]
    for n in range(1, 21):
        dtheta = rng.normal(size=50)
        actors[n % 2].step(torch.from_numpy(dtheta.astype(np.float32)), 0.01 / n)
        m = 0.9 * m + 0.1 * dtheta
        v = 0.999 * v + 0.001 * dtheta**2
        theta = theta - 0.01 / n * (m / (1 - 0.9**n)) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8)
    np.testing.assert_allclose(shared.numpy(), theta, rtol=0, atol=2e-6)
    assert moments["n"].item() == 20


def test_adam_without_a_kernel_computes_the_same() -> None:
    """As on a GPU, where the rate is a tensor."""
    rng = np.random.default_rng(0)
    start = torch.from_numpy(rng.normal(size=50))
    single, double = Adam(start.float()), Adam(start.clone())
    for _ in range(20):
        dtheta = torch.from_numpy(rng.normal(size=50))
        single.step(dtheta.float(), 0.01)
        double.step(dtheta, torch.tensor(0.01))
    torch.testing.assert_close(single.theta.double(), double.theta, rtol=0, atol=2e-6)
    assert single.statistics()["n"] == double.statistics()["n"] == 20
