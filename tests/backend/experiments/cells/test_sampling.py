from typing import Any

import numpy as np
import pytest

from backend.experiments.cells.sampling import configurations
from backend.experiments.specs.sweep import SweepSpec
from backend.runs.runs.grid import merge_settings


def spec(space: dict[str, Any], **changes: Any) -> SweepSpec:
    return SweepSpec.model_validate({"name": "s", "run": {}, "space": space} | changes)


def test_grid_has_every_combination_in_order() -> None:
    settings = configurations(
        spec(
            {
                "config.gamma": {"values": [0.9, 0.99]},
                "config.network": {"values": ["mlp", "compact", "mlp2"]},
            }
        )
    )
    assert len(settings) == 6
    assert settings[0] == {"config.gamma": 0.9, "config.network": "mlp"}
    assert settings[1] == {"config.gamma": 0.9, "config.network": "compact"}
    assert settings[-1] == {"config.gamma": 0.99, "config.network": "mlp2"}


@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        ({"low": 0, "high": 1, "n": 3}, [0.0, 0.5, 1.0]),
        ({"distribution": "log_uniform", "low": 1e-4, "high": 1e-2, "n": 3}, [1e-4, 1e-3, 1e-2]),
        ({"distribution": "integer", "low": 1, "high": 3, "n": 5}, [1, 2, 3]),
        ({"distribution": "log_integer", "low": 1, "high": 64, "n": 7}, [1, 2, 4, 8, 16, 32, 64]),
    ],
)
def test_grid_of_a_range_is_spaced_on_its_scale(dimension: dict[str, Any], values: list[float]) -> None:
    drawn = [settings["config.x"] for settings in configurations(spec({"config.x": dimension}))]
    assert drawn == values
    assert {type(value) for value in drawn} == {type(values[0])}


def test_random_configurations_follow_their_distributions() -> None:
    space = {
        "config.uniform": {"low": -1, "high": 3},
        "config.log": {"distribution": "log_uniform", "low": 1e-4, "high": 1e-2},
        "config.integer": {"distribution": "integer", "low": 1, "high": 4},
        "config.choice": {"values": ["a", "b"]},
    }
    drawn = configurations(spec(space, sampler="random", n_configurations=1_000))
    assert len(drawn) == 1_000
    uniform = np.array([settings["config.uniform"] for settings in drawn])
    logarithm = np.log10([settings["config.log"] for settings in drawn])
    assert uniform.mean() == pytest.approx(1.0, abs=0.15)
    assert (uniform.min(), uniform.max()) == (pytest.approx(-1, abs=0.05), pytest.approx(3, abs=0.05))
    assert logarithm.mean() == pytest.approx(-3.0, abs=0.1)
    assert (logarithm.min(), logarithm.max()) == (pytest.approx(-4, abs=0.05), pytest.approx(-2, abs=0.05))
    counts = np.unique([settings["config.integer"] for settings in drawn], return_counts=True)
    assert counts[0].tolist() == [1, 2, 3, 4]
    assert counts[1].min() > 190
    assert 400 < sum(settings["config.choice"] == "a" for settings in drawn) < 600


def test_random_configurations_are_distinct_and_depend_on_the_seed_alone() -> None:
    space = {"config.x": {"values": [1, 2, 3]}, "config.y": {"low": 0, "high": 1}}
    few = configurations(spec(space, sampler="random", n_configurations=5))
    more = configurations(spec(space, sampler="random", n_configurations=9))
    assert more[:5] == few
    assert configurations(spec(space, sampler="random", n_configurations=5, sampler_seed=1)) != few
    three = configurations(spec({"config.x": {"values": [1, 2, 3]}}, sampler="random", n_configurations=8))
    assert sorted(settings["config.x"] for settings in three) == [1, 2, 3]


def test_settings_are_merged_into_a_request_without_changing_it() -> None:
    body = {"algorithm": "paac", "config": {"n_e": 4}}
    request = merge_settings(body, {"config.gamma": 0.9, "stop.agent_steps": 10})
    assert request == {
        "algorithm": "paac", "config": {"n_e": 4, "gamma": 0.9}, "stop": {"agent_steps": 10}
    }  # fmt: skip
    assert body == {"algorithm": "paac", "config": {"n_e": 4}}
