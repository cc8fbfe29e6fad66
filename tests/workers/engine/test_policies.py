"""Actions are drawn from pi, by randomness of the policy's own."""

import numpy as np
import torch

from workers.engine.networks import actor_critic
from workers.engine.policies import SampledPolicy, sample


def test_actions_are_drawn_from_the_softmax() -> None:
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0])
    a, pi = sample(logits.expand(20_000, 4), torch.Generator().manual_seed(0))
    expected = np.exp(logits.numpy()) / np.exp(logits.numpy()).sum()
    np.testing.assert_allclose(pi[0].numpy(), expected, rtol=1e-5)
    frequencies = np.bincount(a.numpy(), minlength=4) / 20_000
    np.testing.assert_allclose(frequencies, expected, atol=4 * 0.5 / 20_000**0.5)  # 4 standard errors


def test_a_policy_depends_on_its_seed_only() -> None:
    network = actor_critic("mlp", (4,), 3)
    observation = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    device = torch.device("cpu")
    first, again, other = (SampledPolicy(network, device, seed).act(observation) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[0], again[0])
    assert (first[0] != other[0]).any()
    logits, value = network(torch.from_numpy(observation))
    np.testing.assert_allclose(first[1], value.detach().numpy())
    np.testing.assert_allclose(first[2], logits.softmax(-1).detach().numpy())
