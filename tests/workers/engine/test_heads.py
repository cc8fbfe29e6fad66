"""An actor's heads. Their gradient's oracle is Algorithm S2, in `test_async_methods`."""

import numpy as np
import torch

from workers.engine.heads import Heads
from workers.engine.networks import ActorCritic, actor_critic
from workers.engine.optimizers import FlatParameters


def made(logits_A: list[float], value: float) -> tuple[ActorCritic, Heads]:
    """Heads that give these whatever the features are."""
    network = actor_critic("mlp", (4,), len(logits_A))
    FlatParameters(network)
    with torch.no_grad():
        for layer, out in ((network.logits, logits_A), (network.value, [value])):
            layer.weight.zero_()
            layer.bias.copy_(torch.tensor(out))
    return network, Heads(network)


def test_acts_by_softmax() -> None:
    pi_A = [0.5, 0.25, 0.25]
    _, heads = made(np.log(pi_A).tolist(), 1.0)
    told_A, value = heads.step(torch.ones(1, 128))
    np.testing.assert_allclose(told_A, pi_A, rtol=1e-6)
    assert value == 1.0
    logits_TA, value_T = heads.outputs()
    np.testing.assert_allclose(logits_TA, [np.log(pi_A)], rtol=1e-6)
    assert value_T.tolist() == [1.0]


def test_logits_far_apart_overflow_nothing() -> None:
    _, heads = made([500.0, -500.0], 0.0)
    pi_A, _ = heads.step(torch.ones(1, 128))
    assert pi_A.tolist() == [1.0, 0.0]


def test_the_next_update_begins_with_the_parameters_as_they_are_then() -> None:
    network, heads = made([0.0, 0.0], 1.0)
    with torch.no_grad():
        network.value.bias.fill_(2.0)
    assert heads.value(torch.ones(1, 128)) == 1.0
    heads.begin()
    assert heads.value(torch.ones(1, 128)) == 2.0
