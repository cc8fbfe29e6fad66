"""DQN's targets and gradient against NumPy, and the guard against outliers."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backend.specs.algorithms.dqn import DqnConfig
from workers.engine.gorila.learner import LOSSES_KNOWN, Learner, LossGuard
from workers.engine.gorila.parameters import LocalServer, ParameterShard, bounds
from workers.engine.gorila.replica import Replica
from workers.engine.networks import action_values
from workers.engine.optimizers import FlatParameters
from workers.engine.replay import Batch

GAMMA = 0.9
CONFIG = DqnConfig(network="mlp", gamma=GAMMA, learning_rate=0.01, optimizer="adagrad")


def replica(n_shards: int = 1) -> tuple[Replica, LocalServer]:
    torch.manual_seed(0)
    theta = FlatParameters(action_values("mlp", (4,), 3)).theta
    server = LocalServer(
        [ParameterShard(theta[i:j].clone(), CONFIG) for i, j in bounds(len(theta), n_shards)]
    )
    return Replica("mlp", (4,), 3, server, torch.device("cpu")), server


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
    return [
        (layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy())
        for layer in (network.body[0], network.body[2], network.q)
    ]


def forward(parameters: Layers, s: NDArray[Any]) -> list[NDArray[np.float64]]:
    """What goes into each layer, and Q."""
    x = [s.astype(np.float64)]
    for k, (W, b) in enumerate(parameters):
        z = W @ x[-1] + b
        x.append(np.tanh(z) if k < 2 else z)
    return x


def test_targets_and_gradient_are_those_of_equation_2_with_the_error_clipped() -> None:
    mine, server = replica()
    mine.theta_minus.add_(0.05 * torch.randn_like(mine.theta_minus))
    theta, theta_minus = layers(mine.network), layers(mine.target_network)
    b = batch(scale=2.0)
    gradient = [(np.zeros_like(W), np.zeros_like(bias)) for W, bias in theta]
    errors = []
    for s, a, r, terminal, s_next in zip(*b, strict=True):
        y = float(r)
        if not terminal:
            y += GAMMA * forward(theta_minus, s_next)[-1].max()
        x = forward(theta, s)
        delta = y - x[-1][a]
        errors.append(abs(delta))
        d = np.zeros(3)
        d[a] = -np.clip(delta, -1, 1)
        for k in (2, 1, 0):
            gradient[k][0][:] += np.outer(d, x[k])
            gradient[k][1][:] += d
            d = theta[k][0].T @ d * (1 - x[k] ** 2)
    # Both sides of the clip are met.
    assert min(errors) < 1 < max(errors)
    told = Learner(mine, CONFIG).learn(b)
    expected = np.concatenate([part.reshape(-1) for layer in gradient for part in layer])
    np.testing.assert_allclose(mine.dtheta.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert told["loss/td"] == pytest.approx(np.mean(errors), rel=1e-5)
    assert server.shards[0].version.updates == 1


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_share_a_minibatch_and_find_its_gradient(threads: int) -> None:
    (alone, _), (together, _) = replica(), replica()
    told = Learner(alone, CONFIG).learn(batch(B=13))
    shared = Learner(together, CONFIG, threads=threads).learn(batch(B=13))
    torch.testing.assert_close(together.dtheta, alone.dtheta, rtol=1e-5, atol=1e-6)
    assert shared == pytest.approx(told, rel=1e-5)
    assert alone.dtheta.abs().max() > 0.1


def test_a_gradient_in_bfloat16_is_nearly_the_same_one() -> None:
    (exact, _), (rough, _) = replica(), replica()
    Learner(exact, CONFIG).learn(batch())
    Learner(rough, CONFIG.model_copy(update={"precision": "bf16"})).learn(batch())
    assert rough.dtheta.dtype == torch.float32
    difference = torch.linalg.vector_norm(rough.dtheta - exact.dtheta) / torch.linalg.vector_norm(
        exact.dtheta
    )
    assert 0 < difference < 0.02


def test_theta_minus_follows_after_every_n_global_updates() -> None:
    mine, server = replica(n_shards=5)
    learner = Learner(mine, CONFIG)
    synced = []
    for k in range(1, 10):
        learner.learn(batch())
        mine.pull()
        assert mine.updates == k
        if mine.sync_target(4):
            synced.append(k)
            assert torch.equal(mine.theta_minus, mine.theta)
    assert synced == [4, 8]
    torch.testing.assert_close(mine.theta, torch.cat([shard.theta for shard in server.shards]))


def test_an_outliers_gradient_is_not_sent_and_counted() -> None:
    mine, server = replica()
    learner = Learner(mine, CONFIG, outlier_deviations=4.0)
    for _ in range(LOSSES_KNOWN):
        learner.learn(batch())
    assert learner.outliers == 0
    before = server.shards[0].version
    learner.learn(batch(scale=1_000.0))
    assert learner.outliers == 1
    assert server.shards[0].version == before
    mine.pull()
    learner.learn(batch())
    assert learner.outliers == 1
    assert server.shards[0].version.updates == before.updates + 1


def test_the_guard_knows_mean_and_deviation() -> None:
    rng = np.random.default_rng(0)
    guard = LossGuard()
    outliers = [guard.is_outlier(float(loss), 4.0) for loss in rng.normal(5.0, 0.5, 5_000)]
    assert guard.mean == pytest.approx(5.0, abs=0.2)
    assert sum(outliers) < 10
    assert guard.is_outlier(8.0, 4.0)
    assert not guard.is_outlier(8.0, 0.0)
    # Losses that have risen for good are taken as they are.
    assert not all(guard.is_outlier(8.0, 4.0) for _ in range(100))
