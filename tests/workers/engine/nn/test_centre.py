"""Centred pixels against a slow transcription, in every way they are computed; theta keeps the image."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.support.devices import DEVICES
from workers.engine.nn.autograd import AutogradUnroll, Unroll, create_unroll
from workers.engine.nn.centre import Centre, centred_step_by_step
from workers.engine.nn.fast.unroll import FusedUnroll
from workers.engine.nn.networks import (
    ActionValues,
    ActorCritic,
    GaussianActorCritic,
    Halve,
    Standardise,
    action_values,
    actor_critic,
    gaussian_actor_critic,
)
from workers.engine.nn.optimizers import (
    AdaGrad,
    Adam,
    CentredRMSProp,
    FlatParameters,
    MomentumSGD,
    RMSProp,
)
from workers.engine.nn.policies import SampledPolicy

SHAPE = (84, 84, 4)
FROZEN = 84 * 84 * 4 + 1
"""Numbers of the mean image and the deviation."""


def random_pixels(*batch: int, shape: tuple[int, ...] = SHAPE) -> Tensor:
    return torch.randint(0, 256, (*batch, *shape), dtype=torch.uint8)


def set_randomly(network: nn.Module, *, deviation: float = 20.0) -> list[Centre]:
    """Give every centring layer one random image."""
    layers = [layer for layer in network.modules() if isinstance(layer, Centre)]
    mean = np.random.default_rng(0).uniform(0, 255, layers[0].mean.shape)
    for layer in layers:
        layer.set(mean, deviation)
    return layers


def transcribed(pixels_BHWC: Tensor, centre: Centre) -> np.ndarray[Any, Any]:
    """In float64, one pixel after the other."""
    mean, deviation = centre.mean.numpy().astype(float), float(centre.deviation[0])
    centred = np.empty(pixels_BHWC.shape)
    for at in np.ndindex(*pixels_BHWC.shape):
        z = (float(pixels_BHWC[at]) - mean[at[1:]]) / deviation
        centred[at] = -5.0 if z < -5 else 5.0 if z > 5 else z
    return centred


@pytest.mark.parametrize("shape", [(7, 5, 4), (6, 3, 1)])
def test_centred_pixels_are_clipped_deviations_from_the_mean_image(shape: tuple[int, ...]) -> None:
    centre = Centre(shape)
    pixels = random_pixels(3, shape=shape)
    [_] = set_randomly(centre)
    wanted = transcribed(pixels, centre)
    assert {wanted.min(), wanted.max()} == {-5.0, 5.0}
    np.testing.assert_allclose(centre.centred(pixels).numpy(), wanted, rtol=1e-6, atol=2e-6)
    through = centre(pixels.permute(0, 3, 1, 2))
    np.testing.assert_allclose(through.permute(0, 2, 3, 1).numpy(), wanted, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("B", [1, 3])
def test_every_way_to_centre_gives_the_same_bits(B: int, device: str) -> None:
    """One pass on a CPU, PyTorch's operations on the device, in new memory or in given memory."""
    centre = Centre(SHAPE)
    set_randomly(centre, deviation=6.4)
    pixels = random_pixels(B)
    wanted = centred_step_by_step(pixels, centre.mean, centre.deviation)
    assert torch.equal(centre.centred(pixels), wanted)
    into = torch.full((B, *SHAPE), 7.0)
    assert centre.centred(pixels, out=into) is into
    assert torch.equal(into, wanted)
    on_device = centre.to(device).centred(pixels.to(device))
    assert torch.equal(on_device.cpu(), wanted)
    low = torch.empty((B, *SHAPE), dtype=torch.bfloat16, device=device)
    assert torch.equal(centre.centred(pixels.to(device), out=low).cpu(), wanted.bfloat16())


def test_small_deviation_counts_as_one_grey_level() -> None:
    centre = Centre((2, 2, 1))
    centre.set(np.full((2, 2, 1), 100.0), 0.0)
    pixels = torch.tensor([100, 101, 98, 0], dtype=torch.uint8).view(1, 2, 2, 1)
    assert centre.centred(pixels).flatten().tolist() == [0.0, 1.0, -2.0, -5.0]


def test_image_that_is_not_set_yet_divides_pixels_by_255() -> None:
    pixels = random_pixels(2)
    torch.testing.assert_close(Centre(SHAPE).centred(pixels), pixels / 255)


BUILT: dict[str, Callable[[], nn.Module]] = {
    "actor-critic": lambda: actor_critic("nips", SHAPE, 6, centre=True),
    "compact": lambda: actor_critic("compact", SHAPE, 6, centre=True),
    "GA3C's large": lambda: actor_critic("large", SHAPE, 6, centre=True),
    "action values": lambda: action_values("nips", SHAPE, 6, centre=True),
}


def first_output(network: ActorCritic | ActionValues, pixels: Tensor) -> Tensor:
    """Logits, or Q."""
    outputs = network(pixels)
    first: Tensor = outputs[0] if isinstance(outputs, tuple) else outputs
    return first


@pytest.mark.parametrize("name", BUILT)
def test_centred_network_sees_no_constant_background(name: str) -> None:
    """The same deviations from two mean images give the same outputs; another deviation gives others."""
    network = BUILT[name]()
    assert isinstance(network, ActorCritic | ActionValues)
    [centre] = set_randomly(network)
    assert network.body[0] is centre
    assert not any(isinstance(layer, Standardise) for layer in network.modules())
    centre.set(np.full(SHAPE, 60.0), 20.0)
    moved = torch.randint(0, 60, (2, *SHAPE), dtype=torch.uint8)
    before = first_output(network, moved)
    centre.set(np.full(SHAPE, 90.0), 20.0)
    torch.testing.assert_close(first_output(network, moved + 30), before)
    assert (first_output(network, moved) - before).abs().max() > 1e-4


def test_centred_compact_network_halves_what_was_centred() -> None:
    network = actor_critic("compact", SHAPE, 6, centre=True)
    kinds = [type(layer) for layer in network.body][:2]
    assert kinds == [Centre, Halve]


def test_vectors_are_not_centred() -> None:
    networks = [
        actor_critic("mlp", (4,), 2, centre=True),
        action_values("mlp", (4,), 2, centre=True),
        gaussian_actor_critic("mlp", (4,), 2, centre=True),
    ]
    assert not any(isinstance(layer, Centre) for network in networks for layer in network.modules())


def test_both_bodies_of_a_gaussian_network_centre() -> None:
    network = gaussian_actor_critic("nips", SHAPE, 2, centre=True)
    assert isinstance(network, GaussianActorCritic)
    assert [type(body[0]) for body in (network.policy_body, network.value_body)] == [Centre, Centre]


@pytest.mark.parametrize(("network", "cells"), [("nips", 0), ("compact", 0), ("nips", 8)])
@pytest.mark.parametrize("kind", [FusedUnroll, AutogradUnroll])
def test_gradient_through_centred_pixels_is_autograds(network: str, cells: int, kind: type[Unroll]) -> None:
    torch.manual_seed(0)
    module = actor_critic(network, SHAPE, 3, lstm_cells=cells, centre=True).double()
    set_randomly(module)
    flat = FlatParameters(module)
    pixels_T1 = random_pixels(3, 1)
    unroll: Unroll = AutogradUnroll(module.body, module.lstm)
    if kind is FusedUnroll:
        unroll = create_unroll(module.body, module.lstm)
        assert isinstance(unroll, FusedUnroll)
    unroll.begin()
    state = unroll.state
    with torch.inference_mode():
        for pixels in pixels_T1:
            unroll.step(pixels)
    features = unroll.features()
    unroll.backward(features.detach().cos())
    dtheta = flat.dtheta.clone()
    flat.dtheta.zero_()
    expected = []
    for pixels in pixels_T1:
        x = (pixels.double() - module.body[0].mean) / module.body[0].deviation
        x = module.body[1:](x.clamp(-5, 5).permute(0, 3, 1, 2))
        if module.lstm is not None:
            assert state is not None
            x, c = module.lstm(x, state)
            state = (x, c)
        expected.append(x)
    wanted = torch.cat(expected)
    torch.testing.assert_close(features.detach(), wanted.detach(), rtol=0, atol=1e-9)
    wanted.sin().sum().backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(dtheta, flat.dtheta, rtol=0, atol=1e-6)
    assert flat.dtheta.abs().max() > 1e-3
    assert not dtheta[:FROZEN].any()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_unroll_sees_what_the_network_sees(dtype: torch.dtype | None, device: str) -> None:
    torch.manual_seed(0)
    module = actor_critic("nips", SHAPE, 3, centre=True)
    set_randomly(module)
    module.to(device)
    unroll = create_unroll(module.body, None, dtype=dtype)
    pixels = random_pixels(2).to(device)
    error = 1e-5 if dtype is None else 0.2
    wanted = module.body(pixels.permute(0, 3, 1, 2)).detach()
    unroll.begin()
    torch.testing.assert_close(unroll.step(pixels), wanted, rtol=0, atol=error)
    torch.testing.assert_close(unroll.peek(pixels), wanted, rtol=0, atol=error)


def test_evaluated_policy_centres_as_the_network_does() -> None:
    network = actor_critic("nips", SHAPE, 3, centre=True)
    set_randomly(network)
    pixels = random_pixels(2)
    _, value_N, _ = SampledPolicy(network, torch.device("cpu"), 0).act(pixels.numpy(), np.arange(2))
    assert np.array_equal(value_N, network(pixels)[1].detach().numpy())


OPTIMIZERS: dict[str, Callable[[Tensor], Any]] = {
    "rmsprop": lambda theta: RMSProp(theta, decay=0.99, eps=1e-10),
    "rmsprop from 1": lambda theta: RMSProp(theta, decay=0.99, eps=0.1, initial_g=1.0, actor=3),
    "momentum_sgd": lambda theta: MomentumSGD(theta, momentum=0.9, m=torch.zeros_like(theta)),
    "shared_adam": lambda theta: Adam(theta, actor=1),
    "centred_rmsprop": lambda theta: CentredRMSProp(theta, decay=0.95, eps=0.01),
    "adagrad": lambda theta: AdaGrad(theta, eps=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_keeps_the_image_bit_for_bit(name: str) -> None:
    module = actor_critic("nips", SHAPE, 6, centre=True)
    set_randomly(module, deviation=6.4)
    flat = FlatParameters(module)
    before = flat.theta.clone()
    optimizer = OPTIMIZERS[name](flat.theta)
    for _ in range(3):
        logits, value = module(random_pixels(2))
        (logits.square().sum() + value.sum()).backward()
        optimizer.step(flat.dtheta, 0.01)
    assert torch.equal(flat.theta[:FROZEN], before[:FROZEN])
    assert (flat.theta[FROZEN:] != before[FROZEN:]).float().mean() > 0.5
