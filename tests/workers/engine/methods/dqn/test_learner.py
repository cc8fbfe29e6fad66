"""DQN's targets and gradient against NumPy."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from backend.specs.algorithms.dqn import DqnConfig
from tests.support.devices import DEVICES
from workers.engine.methods.dqn.gpu_minibatch import GpuMinibatch
from workers.engine.methods.dqn.learner import DqnNetworks
from workers.engine.nn.replay import Batch

GAMMA = 0.9
CONFIG = DqnConfig(network="mlp", gamma=GAMMA, learning_rate=0.01, target_update_updates=4)


def learner(
    config: DqnConfig = CONFIG,
    *,
    kind: type[DqnNetworks] = DqnNetworks,
    threads: int = 1,
    device: str = "cpu",
) -> DqnNetworks:
    torch.manual_seed(0)
    return kind(config, (4,), 3, torch.device(device), threads=threads)


def batch(B: int = 16, scale: float = 1.0) -> Batch:
    rng = np.random.default_rng(3)
    return Batch(
        rng.normal(size=(B, 4)).astype(np.float32),
        rng.integers(3, size=B),
        (scale * rng.normal(size=B)).astype(np.float32),
        rng.random(B) < 0.3,
        rng.normal(size=(B, 4)).astype(np.float32),
    )


Layers = list[tuple[NDArray[np.float64], NDArray[np.float64]]]


def layers(network: Any) -> Layers:
    """The weights and biases of an `mlp` network, of any sizes, from the first layer to Q."""
    return [
        (layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy())
        for layer in network.modules()
        if isinstance(layer, nn.Linear)
    ]


def forward(parameters: Layers, s: NDArray[Any]) -> list[NDArray[np.float64]]:
    """The input of each layer, and Q."""
    x = [s.astype(np.float64)]
    for k, (W, b) in enumerate(parameters):
        z = W @ x[-1] + b
        x.append(np.tanh(z) if k < len(parameters) - 1 else z)
    return x


def expected(mine: DqnNetworks, b: Batch, *, double: bool = False) -> tuple[NDArray[np.float64], list[float]]:
    """The gradient (P,) of equation 2 with the error clipped, and each |delta|."""
    theta, theta_minus = layers(mine.network), layers(mine.target_network)
    gradient = [(np.zeros_like(W), np.zeros_like(bias)) for W, bias in theta]
    errors = []
    for s, a, r, terminal, s_next in zip(*b, strict=True):
        y = float(r)
        if not terminal:
            q_minus_A = forward(theta_minus, s_next)[-1]
            y += mine.config.gamma * (
                q_minus_A[forward(theta, s_next)[-1].argmax()] if double else q_minus_A.max()
            )
        x = forward(theta, s)
        delta = y - x[-1][a]
        errors.append(abs(delta))
        d = np.zeros_like(x[-1])
        d[a] = -np.clip(delta, -1, 1)
        for k in reversed(range(len(theta))):
            gradient[k][0][:] += np.outer(d, x[k])
            gradient[k][1][:] += d
            d = theta[k][0].T @ d * (1 - x[k] ** 2)
    return np.concatenate([part.reshape(-1) for layer in gradient for part in layer]), errors


def test_gradient_is_that_of_equation_2_with_the_error_clipped() -> None:
    mine = learner()
    mine.theta_minus.add_(0.05 * torch.randn_like(mine.theta_minus))
    b = batch(scale=2.0)
    gradient, errors = expected(mine, b)
    assert min(errors) < 1 < max(errors), "both sides of the clip occur"
    metrics = mine.compute_gradient(b)
    np.testing.assert_allclose(mine.dtheta.numpy(), gradient, rtol=1e-4, atol=1e-5)
    assert metrics["loss/td"] == pytest.approx(np.mean(errors), rel=1e-5)
    best = [forward(layers(mine.network), s)[-1].max() for s in b.state_B]
    assert metrics["value/max_q"] == pytest.approx(np.mean(best), rel=1e-4)
    assert metrics["optim/grad_norm"] == pytest.approx(np.linalg.norm(gradient), rel=1e-4)


class DoubleDqnNetworks(DqnNetworks):
    """y = r + gamma Q(s', argmax_a' Q(s', a'; theta); theta_minus) (van Hasselt et al. 2016)."""

    def targets(self, reward_B: Tensor, terminated_B: Tensor, next_state_B: Tensor) -> Tensor:
        best_B1 = self.q(self.network, next_state_B).argmax(-1, keepdim=True)
        next_q_B = self.q(self.target_network, next_state_B).gather(-1, best_B1)[:, 0]
        return reward_B + self.config.gamma * next_q_B * ~terminated_B


def test_subclass_with_double_dqn_targets_computes_double_dqns_gradient() -> None:
    mine = learner(kind=DoubleDqnNetworks)
    mine.theta_minus.add_(0.2 * torch.randn_like(mine.theta_minus))
    gradient, _ = expected(mine, batch(), double=True)
    assert np.abs(gradient - expected(mine, batch())[0]).max() > 0.01
    mine.compute_gradient(batch())
    np.testing.assert_allclose(mine.dtheta.numpy(), gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [2, 5])
def test_gradient_is_the_same_with_several_threads(threads: int) -> None:
    alone, together = learner(), learner(threads=threads)
    metrics, shared = alone.compute_gradient(batch(B=13)), together.compute_gradient(batch(B=13))
    torch.testing.assert_close(together.dtheta, alone.dtheta, rtol=1e-5, atol=1e-6)
    assert shared == pytest.approx(metrics, rel=1e-5)
    assert alone.dtheta.abs().max() > 0.1


@pytest.mark.parametrize("device", DEVICES)
def test_gpu_minibatch_computes_the_same_gradient(device: str) -> None:
    """Three minibatches: as it stands, recorded, replayed; with other parameters each time."""
    plain, gpu = learner(), learner(device=device)
    minibatch = GpuMinibatch(gpu.write_gradient, batch(), torch.device(device))
    for seed in range(3):
        torch.manual_seed(seed)
        plain.theta.add_(0.05 * torch.randn_like(plain.theta))
        gpu.theta.copy_(plain.theta)
        b = batch(scale=1.0 + seed)
        metrics = plain.compute_gradient(b)
        td_error, max_q, norm = minibatch.compute(b)
        torch.testing.assert_close(gpu.dtheta.cpu(), plain.dtheta, rtol=1e-4, atol=1e-5)
        B = len(b.action_B)
        assert td_error / B == pytest.approx(metrics["loss/td"], rel=1e-4)
        assert max_q / B == pytest.approx(metrics["value/max_q"], rel=1e-4)
        assert norm == pytest.approx(metrics["optim/grad_norm"], rel=1e-4)


def test_gradient_in_bfloat16_is_close_to_that_in_float32() -> None:
    exact, rough = learner(), learner(CONFIG.model_copy(update={"precision": "bf16"}))
    exact.compute_gradient(batch())
    rough.compute_gradient(batch())
    assert rough.dtheta.dtype == torch.float32
    difference = torch.linalg.vector_norm(rough.dtheta - exact.dtheta) / torch.linalg.vector_norm(
        exact.dtheta
    )
    assert 0 < difference < 0.02


def test_theta_minus_is_copied_when_updates_pass_a_multiple_of_n() -> None:
    mine = learner()
    synced = []
    for updates in (1, 2, 4, 5, 7, 8, 8, 9, 17):
        mine.theta.add_(0.1)
        if mine.sync_target(updates):
            synced.append(updates)
            assert torch.equal(mine.theta_minus, mine.theta)
        else:
            assert not torch.equal(mine.theta_minus, mine.theta)
    assert synced == [4, 8, 17]
