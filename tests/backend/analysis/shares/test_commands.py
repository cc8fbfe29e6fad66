"""The commands of pages train what was trained, or say what they cannot repeat."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from backend.analysis.shares.commands import command_lines
from backend.db import Run
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.problems import InvalidSpec
from backend.specs.run import FILLED_IN, RunSpec, parse_run_spec
from backend.specs.run_fields import StartOptions
from callboard_cli.main import app
from callboard_cli.run_request import run_request
from tests.support.rows import CARTPOLE

TRAIN = get_command(app).commands["train"]  # type: ignore[attr-defined]


def _run(spec: RunSpec, **columns: Any) -> Run:
    stored = spec.model_dump(mode="json")
    row = {"algorithm": spec.algorithm, "environment": spec.environment, "seed": spec.seed, "departures": {}}
    return Run(spec=stored, **(row | columns))


def _trained_by(line: str) -> RunSpec:
    """The specification that `callboard train` has from a line of a terminal."""
    words = shlex.split(line)
    assert words[:2] == ["callboard", "train"]
    given = TRAIN.make_context("train", words[2:]).params
    stop = {name: given[name] for name in ("agent_steps", "wall_time_s", "score")}
    request = run_request(
        given["algorithm"],
        given["environment"],
        preset=given["preset"],
        stop=stop,
        settings=given["setting"] or [],
        environment_settings=given["environment_setting"] or [],
    )
    return parse_run_spec(request | {"seed": given["seed"], "device": given["device"]})


def _others(value: Any, schema: dict[str, Any]) -> Iterator[Any]:
    """Values that a setting may have in place of its own."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value / 2, value + 1, value * 2, 0)
    else:
        for option in [schema, *schema.get("anyOf", [])]:
            yield from option.get("enum", [])
            yield from (1, 0.5) if option.get("type") in ("integer", "number") else ()


def _with_others() -> Iterator[RunSpec]:
    """Valid specifications with another value of each setting in turn."""
    for algorithm in ALGORITHMS.values():
        for environment in ("CartPole-v1", "ALE/Pong-v5", "Pendulum-v1"):
            request = CARTPOLE | {"algorithm": algorithm.id, "environment": environment}
            try:
                spec = parse_run_spec(request)
            except InvalidSpec:
                continue
            for section in ("config", "environment_config"):
                model = getattr(spec, section)
                properties = type(model).model_json_schema()["properties"]
                for name, value in model.model_dump(mode="json").items():
                    for other in _others(value, properties[name]):
                        try:
                            changed = parse_run_spec(request | {section: {name: other}})
                        except InvalidSpec:
                            continue
                        if getattr(changed, section) != model:
                            yield changed
                            break


def test_every_setting_of_a_run_is_in_its_command() -> None:
    n_settings, sections = 0, ("config", "environment_config", "stop")
    for spec in _with_others():
        [line, *comments] = command_lines(_run(spec))
        assert [text for text in comments if not text.startswith("# needs")] == []
        trained = _trained_by(line)
        assert {name: getattr(trained, name) for name in sections} == {
            name: getattr(spec, name) for name in sections
        }, line
        n_settings += 1
    assert n_settings > 5 * len(ALGORITHMS)


@pytest.mark.parametrize(
    "changed",
    [
        {"algorithm": "a3c"},
        {"environment": "ALE/Pong-v5"},
        {"seed": 7},
        {"device": "cpu"},
        {"stop": {"agent_steps": 123, "wall_time_s": 0.5, "score": -12.5}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_every_option_of_train_is_in_the_command(changed: dict[str, Any]) -> None:
    spec = parse_run_spec(CARTPOLE | changed)
    assert spec != parse_run_spec(CARTPOLE)
    [line] = command_lines(_run(spec))
    assert _trained_by(line) == spec


def test_a_text_that_could_be_json_stays_text() -> None:
    spec = parse_run_spec(CARTPOLE)
    run = _run(spec)
    run.spec = run.spec | {"config": run.spec["config"] | {"of a later version": "1.5"}}
    words = shlex.split(command_lines(run)[0])
    assert 'of a later version="1.5"' in words


def test_a_command_says_what_it_cannot_repeat() -> None:
    changed: dict[str, Any] = {"annealing_agent_steps": 5_000, "name": "x", "notes": "y"}
    pong = {"environment": "ALE/Pong-v5", "config": {"evaluation_protocol": "human_starts:kept"}}
    assert "ALE/Pong-v5" in ENVIRONMENTS
    spec = parse_run_spec(CARTPOLE | pong | changed)
    departures = {"learning_rate": "0.1 → 0.2 at 3k"}
    [line, *comments] = command_lines(
        _run(spec, parent_id="P", forked_at_agent_steps=2_000, departures=departures)
    )
    assert "human_starts" not in line
    text = "\n".join(comments)
    needed = ("run P from 2,000 agent steps", "over 5,000 agent steps", "human_starts:kept", "0.2 at 3k")
    assert [part for part in needed if part not in text] == []
    # Every other field has an option, is filled in, or says where and under which name a run is kept.
    repeated = {"algorithm", "environment", "config", "environment_config", "stop", "seed", "device"}
    kept = {*StartOptions.model_fields, *FILLED_IN}
    assert RunSpec.model_fields.keys() == repeated | kept | {"annealing_agent_steps"}
