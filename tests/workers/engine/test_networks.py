"""The papers' networks, counted by hand."""

import pytest
import torch

from backend.specs.run import parse_run_spec
from workers.engine.algorithms import a3c, paac
from workers.engine.envs import make_world
from workers.engine.networks import Standardise, action_values, actor_critic, large_actor_critic

HEADS = 6 + 1


@pytest.mark.parametrize(
    ("network", "parameters"),
    [
        # Mnih 2013: 16 8×8 filters on 4 pictures, 32 4×4, 9·9·32 inputs to 256 units.
        ("nips", (16 * 256 + 16) + (32 * 256 + 32) + (2592 * 256 + 256) + (256 + 1) * HEADS),
        # Mnih 2015: 32 8×8, 64 4×4, 64 3×3, 7·7·64 inputs to 512 units.
        (
            "nature",
            (32 * 256 + 32) + (64 * 512 + 64) + (64 * 576 + 64) + (3136 * 512 + 512) + (512 + 1) * HEADS,
        ),
    ],
)
def test_pixel_networks_are_the_papers(network: str, parameters: int) -> None:
    module = actor_critic(network, (84, 84, 4), 6)
    assert sum(p.numel() for p in module.parameters()) == parameters
    logits, value = module(torch.zeros(2, 84, 84, 4, dtype=torch.uint8))
    assert logits.shape == (2, 6)
    assert value.shape == (2,)


def test_pixels_are_scaled_to_one() -> None:
    module = actor_critic("nips", (84, 84, 4), 6)
    white = torch.full((1, 84, 84, 4), 255, dtype=torch.uint8)
    by_hand = module.value(module.body(torch.ones(1, 4, 84, 84)))[:, 0]
    torch.testing.assert_close(module(white)[1], by_hand)


def test_vector_network() -> None:
    logits, value = actor_critic("mlp", (4,), 2)(torch.zeros(3, 4))
    assert logits.shape == (3, 2)
    assert value.shape == (3,)


@pytest.mark.parametrize("network", ["nips", "nature"])
def test_what_is_seen_keeps_its_size_and_the_policy_begins_undecided(network: str) -> None:
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


def test_compact_network_is_the_known_recipe() -> None:
    """Four 3×3 stride-2 convolutions of 32 over 42×42, 3·3·32 features, LSTM(256)."""
    module = actor_critic("compact", (42, 42, 4), 6, lstm_cells=256)
    convolutions = (4 * 9 * 32 + 32) + 3 * (32 * 9 * 32 + 32)
    lstm = 4 * 256 * (288 + 256 + 1)
    assert sum(p.numel() for p in module.parameters()) == convolutions + lstm + 257 * HEADS
    pictures = torch.rand(2, 4, 84, 84)
    halved = pictures.view(2, 4, 42, 2, 42, 2).mean((3, 5))
    assert module.body(halved).shape == (2, 288)
    twin = actor_critic("compact", (84, 84, 4), 6, lstm_cells=256)
    twin.load_state_dict(dict(zip(twin.state_dict(), module.state_dict().values(), strict=True)))
    torch.testing.assert_close(twin.body(pictures), module.body(halved), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("network", "shape"), [("nips", (84, 84, 4)), ("mlp", (4,))])
def test_action_values_are_one_linear_output_an_action(network: str, shape: tuple[int, ...]) -> None:
    module = action_values(network, shape, 3)
    observation = torch.zeros(2, *shape, dtype=torch.uint8 if len(shape) == 3 else torch.float32)
    assert module(observation).shape == (2, 3)
    assert module.q.weight.shape == (3, 256 if network == "nips" else 128)


@pytest.mark.parametrize(("stride", "side", "units"), [(4, 3, 256), (3, 5, 256), (2, 8, 256), (1, 17, 1024)])
def test_ga3cs_larger_networks(stride: int, side: int, units: int) -> None:
    """Babaeizadeh et al. 2017, section 5.1, note 2: 32 filters first, a third layer of 64 4×4 filters."""
    module = large_actor_critic((84, 84, 4), 6, stride=stride)
    convolutions = (32 * 256 + 32) + (32 * 512 + 32) + (64 * 512 + 64)
    linear = 64 * side * side * units + units
    assert sum(p.numel() for p in module.parameters()) == convolutions + linear + (units + 1) * HEADS
    logits, value = module(torch.zeros(2, 84, 84, 4, dtype=torch.uint8))
    assert logits.shape == (2, 6)
    assert value.shape == (2,)


@pytest.mark.parametrize(
    ("algorithm", "environment", "bodies"),
    [("paac", "ALE/Pong-v5", 1), ("a3c", "ALE/Pong-v5", 1), ("a3c", "Racing-Slow-Continuous-v0", 2)],
)
def test_states_are_standardised_where_so_set(algorithm: str, environment: str, bodies: int) -> None:
    for standardise in (False, True):
        asked = {"algorithm": algorithm, "environment": environment, "stop": {"agent_steps": 1}}
        config = {"network": "nips", "standardise": standardise}
        spec = parse_run_spec(asked | {"config": config})
        world = make_world(spec.environment, spec.environment_config)
        network = {"a3c": a3c, "paac": paac}[algorithm].network(spec, world)
        world.close()
        assert sum(isinstance(layer, Standardise) for layer in network.modules()) == bodies * standardise
