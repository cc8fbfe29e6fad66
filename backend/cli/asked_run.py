"""A run's options on the command line, and what they ask for, as `POST /runs` takes it."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from backend.cli.terminal import fail

AlgorithmId = Annotated[str, typer.Option(help="Algorithm id, such as paac.")]
EnvironmentId = Annotated[str, typer.Option(help="Environment id, such as ALE/Pong-v5.")]
AgentSteps = Annotated[int | None, typer.Option(help="Stop after this many decisions.")]
WallTime = Annotated[float | None, typer.Option(help="Stop after this much training time.")]
Score = Annotated[float | None, typer.Option(help="Stop when the last 100 episodes average this.")]
PresetId = Annotated[str | None, typer.Option(help="Named settings to begin from.")]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the algorithm, name=value.")
]
EnvironmentAssignments = Annotated[
    list[str] | None, typer.Option("--set-environment", help="A setting of the world, name=value.")
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


def asked_run(
    algorithm: str,
    environment: str,
    *,
    preset: str | None,
    stop: Mapping[str, float | None],
    settings: Sequence[str],
    environment_settings: Sequence[str],
) -> dict[str, Any]:
    """A request from options; `settings` look like `n_e=32`, and go over those of the preset.

    Raises:
        typer.Exit: an option makes no sense.
    """
    request: dict[str, Any] = _preset(algorithm, preset, environment) if preset else {}
    request |= {"algorithm": algorithm, "environment": environment}
    request["config"] = request.get("config", {}) | _assignments(settings, "--set")
    request["environment_config"] = request.get("environment_config", {}) | _assignments(
        environment_settings, "--set-environment"
    )
    given = {name: bound for name, bound in stop.items() if bound is not None}
    request["stop"] = request.get("stop", {}) | given
    return request


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _assignments(pairs: Sequence[str], option: str) -> dict[str, Any]:
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise fail(f"{option} {pair}: should look like name=value")
        found[name] = _value(text)
    return found


def _preset(algorithm: str, preset: str, environment: str) -> dict[str, Any]:
    from backend.specs.algorithms import ALGORITHMS
    from backend.specs.environments import ENVIRONMENTS

    if algorithm not in ALGORITHMS:
        return {}
    known = {p.id: p for p in ALGORITHMS[algorithm].presets}
    if preset not in known:
        raise fail(f"preset: unknown preset {preset!r}; {algorithm} has {', '.join(known) or 'none'}")
    chosen = known[preset]
    world = ENVIRONMENTS.get(environment)
    if world is not None and chosen.families and world.family not in chosen.families:
        raise fail(f"preset: {preset} is for worlds of {', '.join(chosen.families)}, not for {environment}")
    return {
        "config": chosen.config,
        "environment_config": chosen.environment_config,
        "stop": chosen.stop,
    }
