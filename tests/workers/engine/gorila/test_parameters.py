"""The parameter server against NumPy, and against itself unsharded."""

from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.algorithms.dqn import DqnConfig
from workers.engine.gorila.parameters import NONE, LocalServer, ParameterShard, Version, bounds

ETA, EPS = 0.01, 0.001


def config(optimizer: str, **changes: Any) -> DqnConfig:
    return DqnConfig(optimizer=optimizer, learning_rate=ETA, rmsprop_eps=EPS, **changes)


def server(theta: torch.Tensor, n_shards: int, optimizer: str) -> LocalServer:
    return LocalServer(
        [
            ParameterShard(theta[first:last].clone(), config(optimizer))
            for first, last in bounds(len(theta), n_shards)
        ]
    )


@pytest.mark.parametrize(("P", "n"), [(100, 31), (31, 31), (7, 1), (1_000, 3)])
def test_parts_are_disjoint_whole_and_even(P: int, n: int) -> None:
    parts = bounds(P, n)
    assert [k for first, last in parts for k in range(first, last)] == list(range(P))
    lengths = [last - first for first, last in parts]
    assert max(lengths) - min(lengths) <= 1


def test_adagrad_on_each_shard_is_the_papers() -> None:
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
    found = torch.cat([shard.theta for shard in shards.shards]).numpy()
    np.testing.assert_allclose(found, truth, rtol=1e-5, atol=1e-6)


def test_centred_rmsprop_is_dqns() -> None:
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
def test_sharded_and_whole_parameters_go_the_same_way(optimizer: str) -> None:
    torch.manual_seed(0)
    theta = torch.randn(1_000)
    whole, parts = server(theta, 1, optimizer), server(theta, 31, optimizer)
    for _ in range(20):
        dtheta = torch.randn(1_000)
        for one in (whole, parts):
            one.push(dtheta, [shard.version for shard in one.shards])
    torch.testing.assert_close(
        torch.cat([shard.theta for shard in parts.shards]), whole.shards[0].theta, rtol=0, atol=0
    )


def test_nothing_travels_when_nothing_has_changed() -> None:
    shard = ParameterShard(torch.zeros(10), config("adagrad"))
    first = shard.pull(NONE)
    assert first.theta is not None
    assert shard.pull(first.version).theta is None
    shard.push(torch.ones(10), first.version)
    after = shard.pull(first.version)
    assert after.version == Version(0, 1)
    assert after.theta is not None
    books = shard.take_books()
    assert (books.pulls, books.pull_bytes, books.push_bytes) == (3, 2 * 40, 40)
    assert shard.take_books().pulls == 0


def test_old_gradients_are_discarded_and_counted() -> None:
    shard = ParameterShard(torch.zeros(10), config("adagrad"), max_staleness=3)
    slow = shard.version
    for _ in range(4):
        shard.push(torch.ones(10), shard.version)
    before = shard.theta.clone()
    assert shard.push(torch.ones(10), slow) == Version(0, 4)
    assert torch.equal(shard.theta, before)
    shard.push(torch.ones(10), Version(0, 1))
    assert not torch.equal(shard.theta, before)
    books = shard.take_books()
    assert (books.updates, books.discarded) == (5, 1)
    assert books.staleness == [0, 0, 0, 0, 4, 3]


def test_a_shard_comes_back_from_its_snapshot_as_it_was_but_in_another_life() -> None:
    torch.manual_seed(1)
    shard = ParameterShard(torch.randn(10), config("adagrad"))
    gradients = torch.randn(8, 10)
    for k in range(5):
        shard.push(gradients[k], shard.version)
    snapshot = shard.snapshot()
    lost = shard.push(gradients[5], shard.version)
    again = ParameterShard(torch.zeros(10), config("adagrad"))
    again.restore(snapshot, life=1)
    assert again.version == Version(1, 5)
    # What was computed by parameters that are lost is not applied, nor taken for the newest.
    theta = again.theta.clone()
    again.push(gradients[6], lost)
    assert torch.equal(again.theta, theta)
    assert again.take_books().discarded == 1
    again.push(gradients[5], again.version)
    assert again.pull(lost).theta is not None
    torch.testing.assert_close(again.theta, shard.theta, rtol=0, atol=0)


def test_a_snapshot_of_another_network_is_refused() -> None:
    shard = ParameterShard(torch.zeros(10), config("adagrad"))
    with pytest.raises(ValueError, match="another network"):
        shard.restore(ParameterShard(torch.zeros(9), config("adagrad")).snapshot(), life=1)
