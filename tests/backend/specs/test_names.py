"""Default names of runs and forks."""

from typing import Any

import pytest

from backend.specs.algorithms import ALGORITHMS
from backend.specs.names import default_name, fork_name, grid_name
from backend.specs.run import parse_run_spec

PONG = {"algorithm": "paac", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 1000}}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "paac Pong-v5 seed 0"),
        ({"seed": 3, "tags": ["a"], "stop": {"score": 1}}, "paac Pong-v5 seed 3"),
        ({"config": {"learning_rate": 7e-4}}, "paac Pong-v5 learning_rate=0.0007 seed 0"),
        ({"config": {"gamma": 0.9999999}}, "paac Pong-v5 gamma=0.9999999 seed 0"),
        (
            {"config": {"checkpoint_interval_s": 5, "n_e": 4}},
            "paac Pong-v5 n_e=4 checkpoint_interval_s=5 seed 0",
        ),
        (
            {"environment_config": {"noop_max": 0}},
            "paac Pong-v5 noop_max=0 seed 0",
        ),
        (
            {"config": {"n_e": 4, "n_w": 1, "t_max": 7, "beta": 0.5}},
            "paac Pong-v5 n_e=4 n_w=1 t_max=7 +1 seed 0",
        ),
        (
            # Environments without pixels have other defaults.
            {"environment": "CartPole-v1", "config": {"gamma": 0.9}},
            "paac CartPole-v1 gamma=0.9 seed 0",
        ),
    ],
)
def test_default_name_lists_changed_settings(changes: dict[str, Any], name: str) -> None:
    assert default_name(parse_run_spec(PONG | changes)) == name


def test_default_name_contains_preset_and_its_changed_settings() -> None:
    (preset,) = (preset for preset in ALGORITHMS["paac"].presets if preset.id == "nips-cropped")
    env = {"environment_config": preset.environment_config}
    request = PONG | env | {"config": preset.config}
    assert default_name(parse_run_spec(request)) == "paac Pong-v5 nips-cropped seed 0"
    faster = PONG | env | {"config": preset.config | {"learning_rate": 0.002}}
    assert default_name(parse_run_spec(faster)) == "paac Pong-v5 nips-cropped learning_rate=0.002 seed 0"


def test_default_name_is_shortened_but_keeps_seed() -> None:
    custom = {
        "id": f"Custom/{'x' * 61}-v1234",
        "title": "A line",
        "observation": "vector",
        "actions": "discrete",
        "action_names": ["left", "right"],
    }
    changes = {
        "learning_starts_agent_steps": 9_999,
        "exploration_anneal_updates": 999_999_999_999,
        "exploration_eps": 0.012_345_678_901_2,
    }
    request = {"algorithm": "gorila_dqn", "environment": custom["id"], "custom": custom, "config": changes}
    name = default_name(parse_run_spec(PONG | request | {"seed": 2**31 - 1}))
    assert name.startswith("gorila_dqn Custom/xxx")
    assert name.endswith(" seed 2147483647")
    assert len(name) == 200


def test_fork_name_lists_changed_settings() -> None:
    before = parse_run_spec(PONG | {"config": {"n_e": 4}})
    after = parse_run_spec(PONG | {"config": {"n_e": 4, "beta": 0.5}})
    assert fork_name("parent", before, before) == "parent fork"
    assert fork_name("parent", before, after) == "parent fork beta=0.5"
    assert len(fork_name("p" * 200, before, after)) <= 200


def test_name_of_a_grid_with_many_settings_keeps_its_length_and_seed() -> None:
    config = {"learning_starts_agent_steps": 9_999, "exploration_anneal_updates": 999_999_999_999}
    request = PONG | {"algorithm": "gorila_dqn", "config": config, "name": "n" * 100, "seed": 7}
    name = grid_name(parse_run_spec(request), [f"config.{name}" for name in config] * 4, 2)
    assert len(name) <= 200
    assert name.endswith(" seed 7")
