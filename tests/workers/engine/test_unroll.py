"""The backward pass through kept activations against autograd's through the same network, in float64."""

import pytest
import torch
from torch import Tensor, nn

from tests.support.devices import DEVICES
from workers.engine.networks import ActorCritic, Lstm, actor_critic, as_input
from workers.engine.optimizers import FlatParameters
from workers.engine.unroll import Unroll

CASES = [("nips", 0), ("nature", 0), ("compact", 0), ("compact", 64), ("mlp", 0), ("mlp", 16)]


def states(network: str, T: int) -> Tensor:
    if network == "mlp":
        return torch.randn(T, 1, 4)
    return torch.randint(0, 256, (T, 1, 84, 84, 4), dtype=torch.uint8)


def torchs_cell(lstm: Lstm, x: Tensor, hc: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
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
    """Step by step, as PyTorch's own layers do it."""
    features = []
    for state in state_T1:
        x = module.body(as_input(state, dtype=torch.float64).double())
        if module.lstm is not None:
            hc = torchs_cell(module.lstm, x, hc)
            x = hc[0]
        features.append(x)
    return torch.cat(features)


def made(network: str, cells: int) -> tuple[ActorCritic, FlatParameters]:
    torch.manual_seed(0)
    module = actor_critic(network, (4,) if network == "mlp" else (84, 84, 4), 3, lstm_cells=cells).double()
    for parameter in module.parameters():  # biases and policy begin at 0, where much would go unseen
        nn.init.normal_(parameter, std=0.1)
    return module, FlatParameters(module)


@pytest.mark.parametrize(("network", "cells"), CASES)
def test_gradient_is_autograds(network: str, cells: int) -> None:
    module, flat = made(network, cells)
    unroll = Unroll(module.body, module.lstm)
    start = unroll.state
    seen = states(network, 5)
    observation = seen[0].clone()
    unroll.begin()
    with torch.inference_mode():
        for state in seen:
            observation.copy_(state)  # the same memory again and again, as an actor's world writes it
            unroll.step(observation)
    features = unroll.features()
    weight = torch.randn(5, features.shape[1], dtype=torch.float64)
    unroll.backward(weight * features.detach().cos())
    mine = flat.dtheta.clone()
    flat.dtheta.zero_()
    expected = plain_features(module, seen, start)
    torch.testing.assert_close(features.detach(), expected.detach(), rtol=0, atol=1e-9)
    (weight * expected.sin()).sum().backward()  # type: ignore[no-untyped-call]
    assert flat.dtheta.abs().max() > 1e-3
    torch.testing.assert_close(mine, flat.dtheta, rtol=0, atol=1e-6)


@pytest.mark.parametrize("network", ["nips", "nature", "compact"])
def test_a_standardised_state_has_neither_mean_nor_contrast(network: str) -> None:
    module = actor_critic(network, (84, 84, 4), 3, standardise=True)
    dim = torch.randint(0, 64, (2, 84, 84, 4), dtype=torch.uint8)
    bright = 3 * dim + 40
    for one, other in zip(module(dim), module(bright), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_update_after_update_is_as_the_first_one_was(device: str) -> None:
    """Memory, and on a GPU graphs, are used again: with other states, other parameters and more decisions."""
    module, flat = made("compact", 0)
    module.to(device)
    flat = FlatParameters(module)
    unroll = Unroll(module.body, None)
    for T in (3, 3, 3, 6, 6, 6, 2, 2):
        flat.theta.add_(torch.randn_like(flat.theta), alpha=0.01)
        flat.dtheta.zero_()
        unroll.begin()
        seen = states("compact", T).to(device)
        stepped = torch.cat([unroll.step(state).clone() for state in seen])
        features = unroll.features()
        torch.testing.assert_close(stepped, features.detach(), rtol=0, atol=0)
        unroll.backward(features.detach().cos())
        mine = flat.dtheta.clone()
        flat.dtheta.zero_()
        expected = plain_features(module, seen, None)
        torch.testing.assert_close(features.detach(), expected.detach(), rtol=0, atol=1e-9)
        expected.sin().sum().backward()  # type: ignore[no-untyped-call]
        torch.testing.assert_close(mine, flat.dtheta, rtol=0, atol=1e-6)


def test_lstm_state_lasts_over_updates_and_not_over_episodes() -> None:
    module, _ = made("mlp", 16)
    unroll = Unroll(module.body, module.lstm)
    zero = unroll.state
    seen = states("mlp", 7)
    kept = []
    for t, state in enumerate(seen):
        if t % 3 == 0:
            unroll.begin()
        with torch.inference_mode():
            looked = unroll.peek(state)
            kept.append(unroll.step(state).clone())
            torch.testing.assert_close(looked, kept[-1], rtol=0, atol=0)
    with torch.no_grad():
        torch.testing.assert_close(torch.cat(kept), plain_features(module, seen, zero), rtol=0, atol=1e-9)
    assert unroll.features().shape == (1, 16)
    unroll.reset_state()
    with torch.inference_mode():
        torch.testing.assert_close(unroll.step(seen[0]), kept[0], rtol=0, atol=0)


def test_a_layer_without_a_way_back_is_refused() -> None:
    with pytest.raises(TypeError, match="no way back through MaxPool2d"):
        Unroll(nn.Sequential(nn.Conv2d(1, 1, 3), nn.MaxPool2d(2)), None)


@pytest.mark.parametrize("network", ["nips", "nature", "compact", "mlp"])
def test_half_precision_points_the_same_way(network: str) -> None:
    torch.manual_seed(0)
    module = actor_critic(network, (4,) if network == "mlp" else (84, 84, 4), 3)
    flat = FlatParameters(module)
    gradients = []
    for dtype in (None, torch.bfloat16):
        torch.manual_seed(1)
        unroll = Unroll(module.body, None, dtype=dtype)
        for state in states(network, 5):
            looked = unroll.peek(state)
            assert looked.dtype == torch.float32
            torch.testing.assert_close(looked, unroll.step(state), rtol=0, atol=1e-6)
        flat.dtheta.zero_()
        unroll.backward(unroll.features().detach().cos())
        gradients.append(flat.dtheta.clone())
    whole, half = gradients
    assert 0 < (half - whole).norm() < 0.05 * whole.norm()
