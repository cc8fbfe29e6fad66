"""The parameter server against NumPy, and against itself unsharded."""

from typing import Any, Literal

import numpy as np
import pytest
import torch

from backend.specs.algorithms.dqn import DqnConfig
from tests.workers.engine.methods.gorila.gorila_runs import LocalParameterServer
from workers.engine.methods.gorila.parameters import (
    NO_VERSION,
    ParameterShard,
    Version,
    shard_bounds,
    split_snapshot,
)

Optimizer = Literal["centred_rmsprop", "adagrad"]

ETA, EPS = 0.01, 0.001


def config(optimizer: Optimizer, **changes: Any) -> DqnConfig:
    return DqnConfig(optimizer=optimizer, learning_rate=ETA, rmsprop_eps=EPS, **changes)


def server(theta: torch.Tensor, n_shards: int, optimizer: Optimizer) -> LocalParameterServer:
    return LocalParameterServer(
        [
            ParameterShard(theta[first:last].clone(), config(optimizer))
            for first, last in shard_bounds(len(theta), n_shards)
        ]
    )


@pytest.mark.parametrize(("P", "n"), [(100, 31), (31, 31), (7, 1), (1_000, 3)])
def test_shard_slices_are_disjoint_complete_and_even(P: int, n: int) -> None:
    parts = shard_bounds(P, n)
    assert [k for first, last in parts for k in range(first, last)] == list(range(P))
    lengths = [last - first for first, last in parts]
    assert max(lengths) - min(lengths) <= 1


def test_snapshot_of_another_network_is_refused() -> None:
    snapshot = {"theta": torch.zeros(50), "statistics": {"G": torch.zeros(50)}, "updates": 1}
    assert [len(shard["theta"]) for shard in split_snapshot(snapshot, shard_bounds(50, 2))] == [25, 25]
    with pytest.raises(ValueError, match="another network"):
        split_snapshot(snapshot, shard_bounds(60, 2))


def test_adagrad_on_each_shard_equals_the_papers() -> None:
    rng = np.random.default_rng(0)
    theta, G = rng.normal(size=50).astype(np.float32), np.zeros(50)
    shards = server(torch.from_numpy(theta.copy()), 7, "adagrad")
    truth = theta.astype(np.float64)
    for _ in range(30):
        dtheta = rng.normal(size=50).astype(np.float32)
        shards.push(torch.from_numpy(dtheta), [shard.version for shard in shards.shards])
        for i in range(50):
            G[i] += float(dtheta[i]) ** 2
            truth[i] -= ETA * dtheta[i] / np.sqrt(G[i] + EPS)
    joined = torch.cat([shard.theta for shard in shards.shards]).numpy()
    np.testing.assert_allclose(joined, truth, rtol=1e-5, atol=1e-6)


def test_centred_rmsprop_equals_dqns() -> None:
    rng = np.random.default_rng(0)
    theta = rng.normal(size=50).astype(np.float32)
    m, g, truth = np.zeros(50), np.zeros(50), theta.astype(np.float64)
    shards = server(torch.from_numpy(theta.copy()), 1, "centred_rmsprop")
    for _ in range(30):
        dtheta = rng.normal(size=50).astype(np.float32)
        shards.push(torch.from_numpy(dtheta), [shards.shards[0].version])
        for i in range(50):
            m[i] = 0.95 * m[i] + 0.05 * dtheta[i]
            g[i] = 0.95 * g[i] + 0.05 * float(dtheta[i]) ** 2
            truth[i] -= ETA * dtheta[i] / np.sqrt(g[i] - m[i] ** 2 + EPS)
    np.testing.assert_allclose(shards.shards[0].theta.numpy(), truth, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["adagrad", "centred_rmsprop"])
def test_sharded_and_single_server_give_the_same_parameters(optimizer: Optimizer) -> None:
    torch.manual_seed(0)
    theta = torch.randn(1_000)
    whole, parts = server(theta, 1, optimizer), server(theta, 31, optimizer)
    for _ in range(20):
        dtheta = torch.randn(1_000)
        for single in (whole, parts):
            single.push(dtheta, [shard.version for shard in single.shards])
    torch.testing.assert_close(
        torch.cat([shard.theta for shard in parts.shards]), whole.shards[0].theta, rtol=0, atol=0
    )


def test_pull_sends_nothing_when_nothing_changed() -> None:
    shard = ParameterShard(torch.zeros(10), config("adagrad"))
    first = shard.pull(NO_VERSION)
    assert first.theta is not None
    assert shard.pull(first.version).theta is None
    shard.push(torch.ones(10), first.version)
    after = shard.pull(first.version)
    assert after.version == Version(0, 1)
    assert after.theta is not None
    stats = shard.take_stats()
    assert (stats.pulls, stats.pull_bytes, stats.push_bytes) == (3, 2 * 40, 40)
    assert shard.take_stats().pulls == 0


def test_stale_gradients_are_discarded_and_counted() -> None:
    shard = ParameterShard(torch.zeros(10), config("adagrad"), max_staleness=3)
    slow = shard.version
    for _ in range(4):
        shard.push(torch.ones(10), shard.version)
    before = shard.theta.clone()
    assert shard.push(torch.ones(10), slow) == Version(0, 4)
    assert torch.equal(shard.theta, before)
    shard.push(torch.ones(10), Version(0, 1))
    assert not torch.equal(shard.theta, before)
    stats = shard.take_stats()
    assert (stats.updates, stats.discarded) == (5, 1)
    assert stats.staleness == [0, 0, 0, 0, 4, 3]


def test_restored_shard_equals_its_snapshot_with_a_new_incarnation() -> None:
    torch.manual_seed(1)
    shard = ParameterShard(torch.randn(10), config("adagrad"))
    gradients = torch.randn(8, 10)
    for k in range(5):
        shard.push(gradients[k], shard.version)
    snapshot = shard.snapshot()
    lost = shard.push(gradients[5], shard.version)
    again = ParameterShard(torch.zeros(10), config("adagrad"))
    again.restore(snapshot, incarnation=1)
    assert again.version == Version(1, 5)
    # A gradient of lost parameters is not applied, and their version is not the newest.
    theta = again.theta.clone()
    again.push(gradients[6], lost)
    assert torch.equal(again.theta, theta)
    assert again.take_stats().discarded == 1
    again.push(gradients[5], again.version)
    assert again.pull(lost).theta is not None
    torch.testing.assert_close(again.theta, shard.theta, rtol=0, atol=0)


def test_restore_refuses_the_snapshot_of_another_network() -> None:
    shard = ParameterShard(torch.zeros(10), config("adagrad"))
    with pytest.raises(ValueError, match="another network"):
        shard.restore(ParameterShard(torch.zeros(9), config("adagrad")).snapshot(), incarnation=1)
