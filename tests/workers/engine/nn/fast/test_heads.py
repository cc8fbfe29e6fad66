"""An actor's heads. The oracle of their gradient is Algorithm S2, in `test_async_methods`."""

import numpy as np
import torch

from workers.engine.nn.fast.heads import Heads
from workers.engine.nn.networks import ActorCritic, actor_critic
from workers.engine.nn.optimizers import FlatParameters


def heads_of(logits_A: list[float], value: float) -> tuple[ActorCritic, Heads]:
    """A network with these outputs for any features, and its heads."""
    network = actor_critic("mlp", (4,), len(logits_A))
    FlatParameters(network)
    with torch.no_grad():
        for layer, out in ((network.logits, logits_A), (network.value, [value])):
            layer.weight.zero_()
            layer.bias.copy_(torch.tensor(out))
    return network, Heads(network)


def test_step_returns_the_softmax_of_the_logits() -> None:
    pi_A = [0.5, 0.25, 0.25]
    _, heads = heads_of(np.log(pi_A).tolist(), 1.0)
    found_A, value = heads.step(torch.ones(1, 128))
    np.testing.assert_allclose(found_A, pi_A, rtol=1e-6)
    assert value == 1.0
    logits_TA, value_T = heads.outputs()
    np.testing.assert_allclose(logits_TA, [np.log(pi_A)], rtol=1e-6)
    assert value_T.tolist() == [1.0]


def test_step_does_not_overflow_with_distant_logits() -> None:
    _, heads = heads_of([500.0, -500.0], 0.0)
    pi_A, _ = heads.step(torch.ones(1, 128))
    assert pi_A.tolist() == [1.0, 0.0]


def test_begin_reads_the_current_parameters() -> None:
    network, heads = heads_of([0.0, 0.0], 1.0)
    with torch.no_grad():
        network.value.bias.fill_(2.0)
    assert heads.value(torch.ones(1, 128)) == 1.0
    heads.begin()
    assert heads.value(torch.ones(1, 128)) == 2.0
