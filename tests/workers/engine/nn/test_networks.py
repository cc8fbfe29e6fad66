"""The papers' networks, counted by hand."""

from typing import Any, get_args

import pytest
import torch
from torch import nn

from backend.specs.algorithms.a3c import A3CConfig
from backend.specs.algorithms.memory import (
    NETWORK_BYTES,
    NETWORKS,
    PIXEL_DECISION_BYTES,
    VECTOR_DECISION_BYTES,
    VECTOR_NETWORKS,
    Network,
    network_bytes,
)
from backend.specs.run import parse_run_spec
from workers.engine.envs import make_env
from workers.engine.methods.asynchronous import a3c
from workers.engine.methods.asynchronous.q import EPSILON_PROBABILITIES
from workers.engine.methods.paac import paac
from workers.engine.nn.networks import (
    BODIES,
    ActorCritic,
    GaussianActorCritic,
    Standardise,
    action_values,
    actor_critic,
    gaussian_actor_critic,
)
from workers.engine.nn.policies import EVALUATION_EPSILON

HEADS = 6 + 1


PARAMETERS = {
    # Mnih 2013: 16 8×8 filters on 4 frames, 32 4×4, 9·9·32 inputs to 256 units.
    "nips": (16 * 256 + 16) + (32 * 256 + 32) + (2592 * 256 + 256) + (256 + 1) * HEADS,
    # Mnih 2015: 32 8×8, 64 4×4, 64 3×3, 7·7·64 inputs to 512 units.
    "nature": (32 * 256 + 32) + (64 * 512 + 64) + (64 * 576 + 64) + (3136 * 512 + 512) + (512 + 1) * HEADS,
    # Four 3×3 convolutions of 32 filters with stride 2, over 42×42: 3·3·32 features.
    "compact": (4 * 9 * 32 + 32) + 3 * (32 * 9 * 32 + 32) + (288 + 1) * HEADS,
    # Two layers of 128 units on 4 numbers.
    "mlp": (4 * 128 + 128) + (128 * 128 + 128) + (128 + 1) * HEADS,
}
"""Network -> its parameters on four stacked frames or four numbers with 6 actions, counted by hand."""


def test_every_network_is_described_built_and_counted() -> None:
    listed = {
        "BODIES of workers/engine/nn/networks.py": BODIES,
        "Network of backend/specs/algorithms/memory.py": get_args(Network),
        "NETWORKS of backend/specs/algorithms/memory.py": NETWORKS,
        "PARAMETERS of this file": PARAMETERS,
    }
    every = {network for names in listed.values() for network in names}
    lacking = {place: names for place, known in listed.items() if (names := sorted(every - set(known)))}
    assert not lacking, "add the network there as well; see docs/guides/network.md"
    undescribed = [name for name, network in NETWORKS.items() if not network.description.strip()]
    assert not undescribed, "NETWORKS of backend/specs/algorithms/memory.py: what is it?"


@pytest.mark.parametrize("network", BODIES)
def test_network_has_the_parameters_of_its_source(network: str) -> None:
    shape = (4,) if network in VECTOR_NETWORKS else (84, 84, 4)
    module = actor_critic(network, shape, 6)
    counted = PARAMETERS.get(network)
    n_built = sum(p.numel() for p in module.parameters())
    assert n_built == counted, f"built, and counted by hand in PARAMETERS of this file, for {network}"
    dtype = torch.float32 if network in VECTOR_NETWORKS else torch.uint8
    logits, value = module(torch.zeros(2, *shape, dtype=dtype))
    assert logits.shape == (2, 6)
    assert value.shape == (2,)


@pytest.mark.parametrize("network", BODIES)
def test_size_of_a_network_covers_its_parameters(network: Network) -> None:
    shape = (4,) if network in VECTOR_NETWORKS else (84, 84, 4)
    parameters = sum(p.numel() for p in actor_critic(network, shape, 18).parameters())
    assert 4 * parameters <= NETWORK_BYTES.get(network, 0), (
        f"{network}: raise its bytes in NETWORKS of backend/specs/algorithms/memory.py"
    )


@pytest.mark.parametrize("network", BODIES)
def test_observation_and_activations_fit_what_a_decision_is_estimated_at(network: Network) -> None:
    is_vector = network in VECTOR_NETWORKS
    state = torch.zeros(1, 4) if is_vector else torch.zeros(1, 84, 84, 4, dtype=torch.uint8)
    sizes = [state.nbytes + 4 * state.numel()]
    module = actor_critic(network, state.shape[1:], 18)
    for layer in module.modules():
        # What others compute takes the place of their input.
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(lambda _layer, _inputs, output: sizes.append(output.nbytes))
    module(state)
    limit = VECTOR_DECISION_BYTES if is_vector else PIXEL_DECISION_BYTES
    constant = "VECTOR_DECISION_BYTES" if is_vector else "PIXEL_DECISION_BYTES"
    assert sum(sizes) <= limit, f"{network}: raise {constant} of backend/specs/algorithms/memory.py"


def _added(inputs: int) -> tuple[nn.Sequential, int]:
    return nn.Sequential(nn.Flatten(), nn.Linear(84 * 84 * inputs if inputs == 4 else inputs, 8)), 8


def test_added_network_is_standardised_and_takes_vectors_with_continuous_actions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(BODIES, "added", _added)
    plain, standardised = (
        actor_critic("added", (84, 84, 4), 3, standardise=standardise) for standardise in (False, True)
    )
    assert [isinstance(module.body[0], Standardise) for module in (plain, standardised)] == [False, True]
    assert standardised(torch.zeros(2, 84, 84, 4, dtype=torch.uint8))[0].shape == (2, 3)
    vectors = actor_critic("added", (5,), 3, standardise=True)
    assert not any(isinstance(layer, Standardise) for layer in vectors.modules())
    gaussian = gaussian_actor_critic("added", (5,), 2, lstm_cells=0)
    assert gaussian.value_head(gaussian.value_body(torch.zeros(2, 5))).shape == (2,)


@pytest.mark.parametrize("network", sorted(set(BODIES) - VECTOR_NETWORKS))
def test_standardised_network_ignores_brightness_and_contrast(network: str) -> None:
    module = actor_critic(network, (84, 84, 4), 3, standardise=True)
    dim = torch.randint(0, 64, (2, 84, 84, 4), dtype=torch.uint8)
    bright = 3 * dim + 40
    for output, other in zip(module(dim), module(bright), strict=True):
        torch.testing.assert_close(output, other, rtol=1e-3, atol=1e-4)


def test_pixels_are_scaled_to_the_unit_interval() -> None:
    module = actor_critic("nips", (84, 84, 4), 6)
    white = torch.full((1, 84, 84, 4), 255, dtype=torch.uint8)
    by_hand = module.value(module.body(torch.ones(1, 4, 84, 84)))[:, 0]
    torch.testing.assert_close(module(white)[1], by_hand)


@pytest.mark.parametrize("network", ["nips", "nature"])
def test_initial_activations_keep_their_scale_and_pi_is_nearly_uniform(network: str) -> None:
    """Orthogonal rows of length sqrt(2) before a ReLU, which halves; policy rows of length 0.01."""
    module = actor_critic(network, (84, 84, 4), 6)
    layers = [
        layer for layer in module.body.modules() if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear)
    ]
    for layer, squared in [*((layer, 2.0) for layer in layers), (module.logits, 1e-4), (module.value, 1.0)]:
        rows = layer.weight.detach().flatten(1)
        if len(rows) > rows.shape[1]:
            rows = rows.T
        torch.testing.assert_close(rows @ rows.T, squared * torch.eye(len(rows)), atol=1e-4, rtol=0)
        assert layer.bias is not None
        assert not layer.bias.any()
    logits, _ = module(torch.randint(0, 256, (8, 84, 84, 4), dtype=torch.uint8))
    assert logits.softmax(-1).sub(1 / 6).abs().max() < 0.02


def test_compact_network_has_the_documented_layers() -> None:
    """Four 3×3 stride-2 convolutions of 32 over 42×42, 3·3·32 features, LSTM(256)."""
    module = actor_critic("compact", (42, 42, 4), 6, lstm_cells=256)
    convolutions = (4 * 9 * 32 + 32) + 3 * (32 * 9 * 32 + 32)
    lstm = 4 * 256 * (288 + 256 + 1)
    assert sum(p.numel() for p in module.parameters()) == convolutions + lstm + 257 * HEADS
    pixels = torch.rand(2, 4, 84, 84)
    halved = pixels.view(2, 4, 42, 2, 42, 2).mean((3, 5))
    assert module.body(halved).shape == (2, 288)
    twin = actor_critic("compact", (84, 84, 4), 6, lstm_cells=256)
    twin.load_state_dict(dict(zip(twin.state_dict(), module.state_dict().values(), strict=True)))
    torch.testing.assert_close(twin.body(pixels), module.body(halved), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("network", "shape"), [("nips", (84, 84, 4)), ("mlp", (4,))])
def test_action_values_have_one_linear_output_per_action(network: str, shape: tuple[int, ...]) -> None:
    module = action_values(network, shape, 3)
    observation = torch.zeros(2, *shape, dtype=torch.uint8 if len(shape) == 3 else torch.float32)
    assert module(observation).shape == (2, 3)
    assert module.q.weight.shape == (3, 256 if network == "nips" else 128)


@pytest.mark.parametrize(("stride", "side", "units"), [(4, 3, 256), (3, 5, 256), (2, 8, 256), (1, 17, 1024)])
def test_ga3c_networks_have_the_papers_layers(stride: int, side: int, units: int) -> None:
    """Babaeizadeh et al. 2017, section 5.1, note 2: 32 filters first, a third layer of 64 4×4 filters."""
    module = actor_critic("large", (84, 84, 4), 6, first_layer_stride=stride)
    convolutions = (32 * 256 + 32) + (32 * 512 + 32) + (64 * 512 + 64)
    linear = 64 * side * side * units + units
    assert sum(p.numel() for p in module.parameters()) == convolutions + linear + (units + 1) * HEADS
    assert 4 * sum(p.numel() for p in module.parameters()) <= network_bytes("large", stride)
    logits, value = module(torch.zeros(2, 84, 84, 4, dtype=torch.uint8))
    assert logits.shape == (2, 6)
    assert value.shape == (2,)


@pytest.mark.parametrize(("stride", "features"), [(4, 3 * 3 * 64), (2, 8 * 8 * 64)])
def test_a3c_takes_the_large_network(stride: int, features: int) -> None:
    network = a3c_network("ALE/Pong-v5", network="large", first_layer_stride=stride)
    assert isinstance(network, ActorCritic)
    assert network.body.get_submodule("linear").get_parameter("weight").shape == (256, features)
    recurrent = a3c_network("ALE/Pong-v5", network="large", first_layer_stride=stride, recurrent=True)
    assert isinstance(recurrent, ActorCritic)
    assert recurrent.lstm is not None
    assert (recurrent.lstm.inputs, recurrent.lstm.cells) == (256, 256)


def a3c_network(environment: str, **config: Any) -> ActorCritic | GaussianActorCritic:
    request = {"algorithm": "a3c", "environment": environment, "stop": {"agent_steps": 1}, "config": config}
    spec = parse_run_spec(request)
    assert isinstance(spec.config, A3CConfig)
    env = make_env(spec.environment, spec.environment_config)
    network = a3c.network(spec.config, env)
    env.close()
    return network


def test_constants_outside_the_config_equal_the_papers() -> None:
    """Mnih et al. 2016: 256 LSTM cells (5.1); 200 units, 128 cells (S9); 0.4, 0.3, 0.3 (S8). 2015: 0.05."""
    recurrent = a3c_network("ALE/Pong-v5", recurrent=True)
    assert isinstance(recurrent, ActorCritic)
    assert recurrent.value.in_features == 256
    continuous = a3c_network("Pendulum-v1")
    assert isinstance(continuous, GaussianActorCritic)
    assert (continuous.mu.in_features, continuous.value.in_features) == (128, 128)
    assert [layer.out_features for layer in continuous.policy_body if isinstance(layer, nn.Linear)] == [200]
    assert EPSILON_PROBABILITIES == (0.4, 0.3, 0.3)
    assert EVALUATION_EPSILON == 0.05


@pytest.mark.parametrize(
    ("algorithm", "environment", "bodies"),
    [("paac", "ALE/Pong-v5", 1), ("a3c", "ALE/Pong-v5", 1), ("a3c", "Racing-Slow-Continuous-v0", 2)],
)
def test_standardise_setting_reaches_the_networks(algorithm: str, environment: str, bodies: int) -> None:
    for standardise in (False, True):
        asked = {"algorithm": algorithm, "environment": environment, "stop": {"agent_steps": 1}}
        config = {"network": "nips", "standardise": standardise}
        spec = parse_run_spec(asked | {"config": config})
        env = make_env(spec.environment, spec.environment_config)
        network = {"a3c": a3c, "paac": paac}[algorithm].network(spec.config, env)
        env.close()
        assert sum(isinstance(layer, Standardise) for layer in network.modules()) == bodies * standardise
