"""Runs that nobody named are told apart by what was changed."""

from typing import Any

import pytest

from backend.specs.algorithms import ALGORITHMS
from backend.specs.names import default_name, fork_name
from backend.specs.run import parse_run_spec

PONG = {"algorithm": "paac", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 1000}}


@pytest.mark.parametrize(
    ("asked", "name"),
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
            # A world without pixels has defaults of its own.
            {"environment": "CartPole-v1", "config": {"gamma": 0.9}},
            "paac CartPole-v1 gamma=0.9 seed 0",
        ),
    ],
)
def test_a_run_nobody_named_is_called_by_what_was_changed(asked: dict[str, Any], name: str) -> None:
    assert default_name(parse_run_spec(PONG | asked)) == name


def test_a_preset_is_named_and_so_is_what_it_was_changed_in() -> None:
    (preset,) = (each for each in ALGORITHMS["paac"].presets if each.id == "two-cpu-cores")
    world = {"environment_config": preset.environment_config}
    asked = PONG | world | {"config": preset.config}
    assert default_name(parse_run_spec(asked)) == "paac Pong-v5 two-cpu-cores seed 0"
    faster = PONG | world | {"config": preset.config | {"learning_rate": 0.002}}
    assert default_name(parse_run_spec(faster)) == "paac Pong-v5 two-cpu-cores learning_rate=0.002 seed 0"


def test_a_name_that_is_too_long_keeps_its_seed() -> None:
    own = {
        "id": f"Own/{'x' * 61}-v1234",
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
    asked = {"algorithm": "gorila_dqn", "environment": own["id"], "own": own, "config": changes}
    name = default_name(parse_run_spec(PONG | asked | {"seed": 2**31 - 1}))
    assert name.startswith("gorila_dqn Own/xxx")
    assert name.endswith(" seed 2147483647")
    assert len(name) == 200


def test_a_fork_is_named_by_what_it_does_otherwise() -> None:
    before = parse_run_spec(PONG | {"config": {"n_e": 4}})
    after = parse_run_spec(PONG | {"config": {"n_e": 4, "beta": 0.5}})
    assert fork_name("parent", before, before) == "parent fork"
    assert fork_name("parent", before, after) == "parent fork beta=0.5"
    assert len(fork_name("p" * 200, before, after)) <= 200
