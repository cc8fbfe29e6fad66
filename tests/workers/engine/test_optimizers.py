"""Optimizers against transcriptions of Mnih et al. 2016, equation 1."""

import numpy as np
import pytest
import torch
from torch import nn

from workers.engine.networks import actor_critic
from workers.engine.optimizers import FlatParameters, RMSProp, clip_grad_norm_


@pytest.mark.parametrize(("decay", "eps", "eta"), [(0.99, 0.1, 0.0224), (0.9, 1e-5, 7e-4), (0.0, 1.0, 1.0)])
def test_rmsprop_keeps_eps_inside_the_root(decay: float, eps: float, eta: float) -> None:
    rng = np.random.default_rng(0)
    theta, g = rng.normal(size=50), np.zeros(50)
    optimizer = RMSProp(torch.from_numpy(theta.copy()), decay=decay, eps=eps)
    for _ in range(20):
        dtheta = rng.normal(size=50)
        optimizer.step(torch.from_numpy(dtheta), eta)
        for i in range(50):
            g[i] = decay * g[i] + (1 - decay) * dtheta[i] ** 2
            theta[i] = theta[i] - eta * dtheta[i] / np.sqrt(g[i] + eps)
    np.testing.assert_allclose(optimizer.theta.numpy(), theta, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(optimizer.g.numpy(), g, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_clip_scales_to_the_norm_and_never_up(scale: float) -> None:
    dtheta = np.random.default_rng(1).normal(size=40) * scale
    norm = np.sqrt(sum(x * x for x in dtheta))
    clipped = torch.from_numpy(dtheta.copy())
    assert clip_grad_norm_(clipped, 5.0).item() == pytest.approx(norm, rel=1e-6)
    np.testing.assert_allclose(clipped.numpy(), dtheta * min(1.0, 5.0 / norm), rtol=1e-6)


def test_flat_parameters_are_the_networks_own() -> None:
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


def test_flat_parameters_refuse_memory_of_another_size() -> None:
    with pytest.raises(ValueError, match="another network"):
        FlatParameters(nn.Linear(3, 2), theta=torch.zeros(7))
