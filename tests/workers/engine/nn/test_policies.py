"""Actions are drawn from pi, by randomness of the policy's own."""

import numpy as np
import pytest
import torch

from workers.engine.nn.networks import action_values, actor_critic
from workers.engine.nn.policies import EpsilonGreedyPolicy, RecurrentPolicy, SampledPolicy, sample


def test_sampled_policy_draws_from_the_softmax() -> None:
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0])
    a, pi = sample(logits.expand(20_000, 4), torch.Generator().manual_seed(0))
    expected = np.exp(logits.numpy()) / np.exp(logits.numpy()).sum()
    np.testing.assert_allclose(pi[0].numpy(), expected, rtol=1e-5)
    frequencies = np.bincount(a.numpy(), minlength=4) / 20_000
    np.testing.assert_allclose(frequencies, expected, atol=4 * 0.5 / 20_000**0.5)  # 4 standard errors


def test_policy_depends_on_its_seed_only() -> None:
    network = actor_critic("mlp", (4,), 3)
    observation = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    device = torch.device("cpu")
    first, again, other = (
        SampledPolicy(network, device, seed).act(observation, np.arange(50)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first[0], again[0])
    assert (first[0] != other[0]).any()
    logits, value = network(torch.from_numpy(observation))
    np.testing.assert_allclose(first[1], value.detach().numpy())
    np.testing.assert_allclose(first[2], logits.softmax(-1).detach().numpy())


def test_recurrent_policy_keeps_state_per_environment_until_reset() -> None:
    network = actor_critic("mlp", (4,), 3, lstm_cells=8)
    lstm = network.lstm
    assert lstm is not None
    policy = RecurrentPolicy(network, torch.device("cpu"), 0)
    rng = np.random.default_rng(0)
    states: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    zero = torch.zeros(1, 8)
    # Environments come and go, as they do when fewer and fewer episodes are left to play.
    for t, environments in enumerate(([0, 1, 2], [0, 2], [2], [0, 1, 2])):
        observation = rng.normal(size=(len(environments), 4)).astype(np.float32)
        _, value, pi = policy.act(observation, np.array(environments))
        for k, i in enumerate(environments):
            with torch.no_grad():
                features = network.body(torch.from_numpy(observation[k : k + 1]))
                states[i] = lstm(features, states.get(i, (zero, zero)))
                logits, v = network.heads(states[i][0])
            np.testing.assert_allclose(value[k], v[0].item(), rtol=1e-5)
            np.testing.assert_allclose(pi[k], logits.softmax(-1)[0].numpy(), rtol=1e-5)
        if t == 1:
            policy.forget(2)
            del states[2]


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 1.0])
def test_epsilon_greedy_policy_explores_with_probability_epsilon(epsilon: float) -> None:
    network = action_values("mlp", (4,), 5)
    N = 20_000
    observation = np.random.default_rng(0).normal(size=(N, 4)).astype(np.float32)
    policy = EpsilonGreedyPolicy(network, torch.device("cpu"), 1, epsilon)
    action, value, q = policy.act(observation, np.arange(N))
    np.testing.assert_allclose(q, network(torch.from_numpy(observation)).detach().numpy(), rtol=1e-5)
    np.testing.assert_array_equal(value, q.max(-1))
    share = (action != q.argmax(-1)).mean()
    expected = epsilon * 4 / 5  # one of the five random actions is the best one
    assert abs(share - expected) <= 4 * (expected * (1 - expected) / N) ** 0.5
