"""Both kinds of unroll against autograd's gradient through the same network, in float64."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from backend.specs.algorithms.memory import VECTOR_NETWORKS
from tests.support.devices import DEVICES
from workers.engine.nn.autograd import AutogradUnroll, Heads, Unroll, create_unroll
from workers.engine.nn.fast.unroll import FusedUnroll
from workers.engine.nn.losses import actor_critic_descent
from workers.engine.nn.networks import BODIES, ActorCritic, Lstm, actor_critic, as_input
from workers.engine.nn.optimizers import FlatParameters, RMSProp

AUTOGRADS: frozenset[str] = frozenset()
"""Networks with a layer that the hand-written backward pass does not know."""
CASES = [(network, 0) for network in BODIES] + [("compact", 64), ("mlp", 16)]
"""Every network, and LSTMs of so many cells behind two of them."""
FUSED_CASES = [case for case in CASES if case[0] not in AUTOGRADS]
KINDS = [FusedUnroll, AutogradUnroll]


def shape_of(network: str) -> tuple[int, ...]:
    return (4,) if network in VECTOR_NETWORKS else (84, 84, 4)


def unroll_of(module: ActorCritic, kind: type[Unroll], *, dtype: torch.dtype | None = None) -> Unroll:
    if kind is AutogradUnroll:
        return AutogradUnroll(module.body, module.lstm, dtype=dtype)
    unroll = create_unroll(module.body, module.lstm, dtype=dtype)
    assert isinstance(unroll, FusedUnroll), "extend nn/fast, or name the network in AUTOGRADS"
    return unroll


def states(network: str, T: int) -> Tensor:
    if network in VECTOR_NETWORKS:
        return torch.randn(T, 1, *shape_of(network))
    return torch.randint(0, 256, (T, 1, *shape_of(network)), dtype=torch.uint8)


def torch_lstm_cell(lstm: Lstm, x: Tensor, hc: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
    """PyTorch's LSTM cell with the same weights; its gates are in the order i, f, g, o."""
    i, f, o, g = lstm.weight.chunk(4)
    weight = torch.cat([i, f, g, o])
    i, f, o, g = lstm.bias.chunk(4)
    bias = torch.cat([i, f, g, o])
    cell = nn.LSTMCell(lstm.inputs, lstm.cells).double()
    weights = {
        "weight_ih": weight[:, : lstm.inputs],
        "weight_hh": weight[:, lstm.inputs :],
        "bias_ih": bias,
        "bias_hh": torch.zeros_like(bias),
    }
    new: tuple[Tensor, Tensor] = torch.func.functional_call(cell, weights, (x, hc))
    return new


def plain_features(module: ActorCritic, state_T1: Tensor, hc: tuple[Tensor, Tensor] | None) -> Tensor:
    """Step by step, by PyTorch's own layers."""
    features = []
    for state in state_T1:
        x = module.body(as_input(state, dtype=torch.float64).double())
        if module.lstm is not None:
            hc = torch_lstm_cell(module.lstm, x, hc)
            x = hc[0]
        features.append(x)
    return torch.cat(features)


def network_of(network: str, cells: int) -> tuple[ActorCritic, FlatParameters]:
    torch.manual_seed(0)
    module = actor_critic(network, shape_of(network), 3, lstm_cells=cells).double()
    for parameter in module.parameters():  # with biases of 0, and small policy weights, errors could hide
        nn.init.normal_(parameter, std=0.1)
    return module, FlatParameters(module)


def assert_gradient_is_autograds(
    module: ActorCritic, flat: FlatParameters, unroll: Unroll, state_T1: Tensor
) -> None:
    """Act as an actor does, in inference mode and in one piece of memory, and compare."""
    start = None if unroll.state is None else (unroll.state[0].clone(), unroll.state[1].clone())
    observation = state_T1[0].clone()
    unroll.begin()
    with torch.inference_mode():
        for state in state_T1:
            observation.copy_(state)
            unroll.step(observation)
    features = unroll.features()
    weight = torch.randn(features.shape, dtype=torch.float64)
    unroll.backward(weight * features.detach().cos())
    dtheta = flat.dtheta.clone()
    flat.dtheta.zero_()
    expected = plain_features(module, state_T1, start)
    torch.testing.assert_close(features.detach(), expected.detach(), rtol=0, atol=1e-9)
    (weight * expected.sin()).sum().backward()  # type: ignore[no-untyped-call]
    assert flat.dtheta.abs().max() > 1e-3
    torch.testing.assert_close(dtheta, flat.dtheta, rtol=0, atol=1e-6)
    flat.dtheta.zero_()


@pytest.mark.parametrize(
    ("network", "cells", "kind"),
    [(*case, FusedUnroll) for case in FUSED_CASES]
    + [(*case, AutogradUnroll) for case in CASES if case[0] not in ("nips", "nature")],
)
def test_gradient_equals_autograds(network: str, cells: int, kind: type[Unroll]) -> None:
    module, flat = network_of(network, cells)
    assert_gradient_is_autograds(module, flat, unroll_of(module, kind), states(network, 5))


@pytest.mark.parametrize("cells", [0, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_dropped_decision_leaves_no_trace(cells: int, kind: type[Unroll]) -> None:
    module, flat = network_of("mlp", cells)
    *kept, dropped = states("mlp", 4).double()
    results = []
    for taken in ([*kept, dropped], kept):
        unroll = unroll_of(module, kind)
        flat.dtheta.zero_()
        unroll.begin()
        for state in taken:
            unroll.step(state)
        if len(taken) > len(kept):
            unroll.drop_last()
        features = unroll.features()
        unroll.backward(features.detach().cos())
        results.append((features.detach(), unroll.peek(dropped), flat.dtheta.clone()))
    for tensor, other in zip(*results, strict=True):
        torch.testing.assert_close(tensor, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cells", [0, 16])
def test_gradient_of_a_gelu_network_equals_autograds_update_after_update(cells: int) -> None:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(4, 32), nn.GELU(), nn.Linear(32, 24), nn.LayerNorm(24))
    module = ActorCritic(body, 24, 3, lstm_cells=cells).double()
    flat = FlatParameters(module)
    unroll = create_unroll(module.body, module.lstm)
    assert isinstance(unroll, AutogradUnroll)
    for T in (5, 3, 1, 4):
        assert_gradient_is_autograds(module, flat, unroll, states("mlp", T))
        flat.theta.add_(torch.randn_like(flat.theta), alpha=0.05)


def test_gelu_network_learns_a_bandit_with_the_calls_of_a3c() -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    network = ActorCritic(nn.Sequential(nn.Linear(4, 32), nn.GELU()), 32, 2)
    flat = FlatParameters(network)
    unroll, heads = create_unroll(network.body, None), Heads(network)
    optimizer = RMSProp(flat.theta, decay=0.99, eps=0.1)
    rewards: list[float] = []
    with torch.inference_mode():
        for _ in range(150):
            unroll.begin()
            heads.begin()
            flat.dtheta.zero_()
            actions, reward_T = [], []
            for _ in range(8):
                observation = rng.normal(size=(1, 4)).astype(np.float32)
                pi_A, _ = heads.step(unroll.step(torch.from_numpy(observation)))
                actions.append(int(rng.random() < pi_A[1]))
                reward_T.append(float(actions[-1] == (observation[0, 0] > 0)))
            descent = actor_critic_descent(
                *heads.outputs(), np.array(actions), np.array(reward_T), beta=0.01, value_coefficient=0.5
            )
            unroll.backward(heads.backward(unroll.features(), descent.d_logits_TA, descent.d_value_T))
            optimizer.step(flat.dtheta, 0.02)
            rewards += reward_T
    assert np.mean(rewards[:80]) < 0.7
    assert np.mean(rewards[-400:]) > 0.85


UNKNOWN = {
    "pooling": nn.Sequential(nn.Conv2d(4, 8, 8, 4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 5)),
    "dilation": nn.Sequential(nn.Conv2d(4, 8, 8, 4, dilation=2), nn.ReLU(), nn.Flatten()),
    "groups": nn.Sequential(nn.Conv2d(4, 8, 8, 4, groups=2), nn.ReLU(), nn.Flatten()),
    "same padding": nn.Sequential(nn.Conv2d(4, 8, 7, padding="same"), nn.ReLU(), nn.Flatten()),
    "no bias": nn.Sequential(nn.Conv2d(4, 8, 8, 4, bias=False), nn.ReLU(), nn.Flatten()),
    "two activations": nn.Sequential(nn.Conv2d(4, 8, 8, 4), nn.ReLU(), nn.Tanh(), nn.Flatten()),
    "alpha": nn.Sequential(nn.Conv2d(4, 8, 8, 4), nn.ELU(0.5), nn.Flatten()),
    "flattened first": nn.Sequential(nn.Flatten(), nn.Linear(84 * 84 * 4, 5)),
}


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_layers_without_a_fused_backward_pass_get_autograds(body: nn.Sequential) -> None:
    features = len(body(torch.zeros(1, 4, 84, 84))[0])
    module = ActorCritic(body, features, 3).double()
    unroll = create_unroll(module.body, None)
    assert isinstance(unroll, AutogradUnroll)
    assert_gradient_is_autograds(module, FlatParameters(module), unroll, states("nips", 3))


@pytest.mark.parametrize("device", DEVICES)
def test_fused_memory_and_graphs_are_reused_over_updates(device: str) -> None:
    """With other states, other parameters, and more decisions or fewer."""
    module, flat = network_of("compact", 0)
    module.to(device)
    flat = FlatParameters(module)
    unroll = unroll_of(module, FusedUnroll)
    for T in (3, 3, 3, 6, 6, 6, 2, 2):
        flat.theta.add_(torch.randn_like(flat.theta), alpha=0.01)
        flat.dtheta.zero_()
        unroll.begin()
        state_T1 = states("compact", T).to(device)
        stepped = torch.cat([unroll.step(state).clone() for state in state_T1])
        features = unroll.features()
        torch.testing.assert_close(stepped, features.detach(), rtol=0, atol=0)
        unroll.backward(features.detach().cos())
        dtheta = flat.dtheta.clone()
        flat.dtheta.zero_()
        expected = plain_features(module, state_T1, None)
        torch.testing.assert_close(features.detach(), expected.detach(), rtol=0, atol=1e-9)
        expected.sin().sum().backward()  # type: ignore[no-untyped-call]
        torch.testing.assert_close(dtheta, flat.dtheta, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_lstm_state_lasts_over_updates_until_it_is_reset(kind: type[Unroll]) -> None:
    module, _ = network_of("mlp", 16)
    unroll = unroll_of(module, kind)
    zero = unroll.state
    state_T1 = states("mlp", 7)
    stepped = []
    for t, state in enumerate(state_T1):
        if t % 3 == 0:
            unroll.begin()
        with torch.inference_mode():
            peeked = unroll.peek(state)
            stepped.append(unroll.step(state).clone())
            torch.testing.assert_close(peeked, stepped[-1], rtol=0, atol=0)
    with torch.no_grad():
        expected = plain_features(module, state_T1, zero)
        torch.testing.assert_close(torch.cat(stepped), expected, rtol=0, atol=1e-9)
    assert unroll.features().shape == (1, 16)
    unroll.reset_state()
    with torch.inference_mode():
        torch.testing.assert_close(unroll.step(state_T1[0]), stepped[0], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("network", "kind"),
    [(network, FusedUnroll) for network, cells in FUSED_CASES if not cells] + [("mlp", AutogradUnroll)],
)
def test_gradient_in_bfloat16_is_close_to_that_in_float32(network: str, kind: type[Unroll]) -> None:
    torch.manual_seed(0)
    module = actor_critic(network, shape_of(network), 3)
    flat = FlatParameters(module)
    gradients = []
    for dtype in (None, torch.bfloat16):
        torch.manual_seed(1)
        unroll = unroll_of(module, kind, dtype=dtype)
        for state in states(network, 5):
            peeked = unroll.peek(state)
            assert peeked.dtype == torch.float32
            torch.testing.assert_close(peeked, unroll.step(state), rtol=0, atol=1e-6)
        flat.dtheta.zero_()
        unroll.backward(unroll.features().detach().cos())
        gradients.append(flat.dtheta.clone())
    exact, rough = gradients
    assert 0 < (rough - exact).norm() < 0.05 * exact.norm()
