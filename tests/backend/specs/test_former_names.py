import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from backend.cli.run_request import run_request
from backend.runs import filters
from backend.runs.groups import group_key
from backend.specs.environments.custom import CustomEnvironmentsError, read_custom_environments
from backend.specs.former_names import (
    current_environment_id,
    current_metric,
    current_preset_id,
    current_protocol,
    with_current_names,
)
from backend.specs.problems import InvalidSpec
from backend.specs.run import parse_run_spec
from tests.support import custom_environment

STORED = Path(__file__).parents[2] / "golden" / "data" / "specs.json.xz"
"""Specs as version 0.1.0 stored them."""

PONG: dict[str, Any] = {"algorithm": "paac", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 1_000}}
SMALL = {"config": {"network": "compact"}}
LINE = {
    "id": "Own/Line-v0",
    "title": "A line",
    "observation": "vector",
    "actions": "discrete",
    "action_names": ["left", "right"],
}


def test_every_stored_spec_of_version_0_1_0_is_parsed_with_current_names() -> None:
    stored = json.loads(lzma.decompress(STORED.read_bytes()))
    assert any("picture_size" in spec["environment_config"] for spec in stored.values())
    for name, spec in stored.items():
        parsed = parse_run_spec(spec).model_dump(mode="json")
        current = with_current_names(spec) | {"annealing_agent_steps": None}
        new = {key: its for key, its in parsed["config"].items() if key not in current["config"]}
        assert new.items() <= {("rmsprop_initial_g", 0.0), ("evaluation_protocol", "auto")}, name
        assert parsed == current | {"config": current["config"] | new}, name
        assert group_key(spec) == group_key(with_current_names(spec)), name


def test_observation_size_is_accepted_as_picture_size() -> None:
    spec = parse_run_spec(PONG | SMALL | {"environment_config": {"picture_size": "42x42"}})
    assert spec.environment_config.model_dump()["observation_size"] == "42x42"


def test_both_names_of_a_setting_are_refused() -> None:
    both = {"picture_size": "42x42", "observation_size": "84x84"}
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(PONG | {"environment_config": both})
    assert [problem.field for problem in caught.value.problems] == ["environment_config.picture_size"]


def test_custom_environment_is_accepted_in_a_run_request() -> None:
    spec = parse_run_spec(PONG | {"environment": "Own/Line-v0", "own": LINE})
    assert spec.environment == "Custom/Line-v0"
    assert spec.custom is not None
    assert spec.custom.id == "Custom/Line-v0"
    assert spec.catalogue_environment.family == "custom"
    assert parse_run_spec(spec.model_dump(mode="json")) == spec


@pytest.mark.parametrize("value", [None, 1, [], "", "Owner/Line-v0", "ALE/Pong-v5"])
def test_other_environment_ids_are_returned_unchanged(value: Any) -> None:
    assert current_environment_id(value) == value


def test_former_preset_id_is_renamed() -> None:
    assert current_preset_id("paac", "whole-pictures") == "full-frame"
    assert current_preset_id("paac", "compact") == "compact-cropped"
    assert current_preset_id("a3c", "two-cpu-cores") == "nips-cropped"
    assert current_preset_id("ga3c", "two-cpu-cores") == "two-cpu-cores"


def test_preset_option_accepts_the_former_id() -> None:
    def request(preset: str) -> dict[str, Any]:
        return run_request("a3c", "ALE/Pong-v5", preset=preset, stop={}, settings=[], environment_settings=[])

    assert request("whole-pictures") == request("full-frame")
    assert request("compact-lstm") == request("compact-lstm-cropped") != request("compact-lstm-full-frame")


def test_filter_by_former_environment_id_finds_the_current_one() -> None:
    assert filters.parse("environment=Own/Line-v0") == filters.parse("environment=Custom/Line-v0")


def test_environments_file_may_use_the_former_prefix(tmp_path: Path) -> None:
    former = custom_environment.FILE.replace("Custom/", "Own/")
    found = read_custom_environments(custom_environment.write(tmp_path, former))
    assert list(found) == ["Custom/Line-v0", "Custom/Frames-v1"]
    assert found["Custom/Line-v0"].id == "Custom/Line-v0"


def test_environments_file_with_one_environment_under_both_prefixes_is_refused(tmp_path: Path) -> None:
    former = custom_environment.FILE.replace("Custom/", "Own/")
    path = custom_environment.write(tmp_path, custom_environment.FILE + former)
    with pytest.raises(CustomEnvironmentsError, match=r"Own/Line-v0: Custom/Line-v0 is defined twice"):
        read_custom_environments(path)


@pytest.mark.parametrize(
    ("algorithm", "environment", "cap", "current", "evaluated_now"),
    [
        ("dqn", "ALE/Pong-v5", 18_000, "noop_starts_5min", "noop_starts_5min"),
        ("gorila_dqn", "ALE/Pong-v5", 18_000, "noop_starts_5min", "noop_starts_5min"),
        ("dqn", "ALE/Pong-v5", 108_000, "noop_starts", "noop_starts"),
        # No protocol has this cap any more.
        ("dqn", "ALE/Pong-v5", 9_000, "noop_starts_9000_frames", "noop_starts_5min"),
        ("paac", "ALE/Pong-v5", None, "noop_starts", "noop_starts"),
    ],
)
def test_former_cap_of_evaluations_names_their_protocol(
    algorithm: str, environment: str, cap: int | None, current: str, evaluated_now: str
) -> None:
    request = {"algorithm": algorithm, "environment": environment, "stop": {"agent_steps": 1}}
    stored = request | {"config": {} if cap is None else {"evaluation_max_frames": cap}}
    assert current_protocol(stored, "noop_starts") == current
    assert current_metric(stored, "eval/noop_starts/mean_return") == f"eval/{current}/mean_return"
    assert current_protocol(stored, "plain") == "plain"
    assert current_metric(stored, "loss/td") == "loss/td"
    spec = parse_run_spec(stored)
    assert spec.evaluation_protocol == evaluated_now
    if cap in (None, 18_000, 108_000):  # the spec alone still shows what was done
        assert current_protocol(spec.model_dump(mode="json"), "noop_starts") == current


def test_former_cap_without_meaning_is_dropped() -> None:
    request = {"algorithm": "dqn", "environment": "CartPole-v1", "stop": {"agent_steps": 1}}
    spec = parse_run_spec(request | {"config": {"evaluation_max_frames": 108_000}})
    assert spec.evaluation_protocol == "plain"
    assert group_key(request | {"config": {"evaluation_max_frames": 18_000}, "environment_config": {}}) == (
        group_key(spec.model_dump(mode="json"))
    )
