"""Options of a run on the command line, and the request body of `POST /runs` built from them."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

import typer

from backend.specs.algorithms import ALGORITHMS
from backend.specs.problems import quoted
from callboard_cli import fail

AlgorithmId = Annotated[str, typer.Option(help=f"Algorithm id: {', '.join(ALGORITHMS)}.")]
EnvironmentId = Annotated[str, typer.Option(help="Environment id, such as ALE/Pong-v5.")]


_MAX_DIGITS = 100
"""More digits than any limit has: a number with a large exponent would need much memory."""


def whole_number(text: str) -> int:
    """A whole number, which may be written as 1e6 or 1_000_000."""
    try:
        number = Decimal(text)
        if number.is_finite() and number.adjusted() <= _MAX_DIGITS and number == number.to_integral_value():
            return int(number)
    except InvalidOperation:
        pass
    raise typer.BadParameter(f"{quoted(text)} is not a whole number, such as 1000000 or 1e6")


AgentSteps = Annotated[
    int | None,
    typer.Option(parser=whole_number, metavar="<int>", help="Stop after this many agent steps, such as 1e6."),
]
WallTime = Annotated[float | None, typer.Option(help="Stop after this much training time, in seconds.")]
Score = Annotated[
    float | None, typer.Option(help="Stop when the mean return of the last 100 episodes reaches this.")
]
PresetId = Annotated[str | None, typer.Option(help="Named config to start from.")]
Assignments = Annotated[list[str] | None, typer.Option("--set", help="Algorithm config field, name=value.")]
EnvironmentAssignments = Annotated[
    list[str] | None, typer.Option("--set-environment", help="Environment config field, name=value.")
]
AnnealingChoice = Annotated[
    Literal["keep", "extend"] | None,
    typer.Option(
        help="With a new agent-step limit, how to anneal a linear learning rate: keep its schedule, with a "
        "rate of 0 after its end, or extend it to the new limit, with a jump of the rate. Default: as "
        "before, otherwise extend."
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


def run_request(
    algorithm: str,
    environment: str,
    *,
    preset: str | None,
    stop: Mapping[str, float | None],
    settings: Sequence[str],
    environment_settings: Sequence[str],
    needs_limit: bool = True,
) -> dict[str, Any]:
    """Build the request from options; `settings`, such as `n_e=32`, override the preset.

    Without `needs_limit`, limits may come from elsewhere.

    Raises:
        typer.Exit: an option is invalid.
    """
    request: dict[str, Any] = _preset(algorithm, preset, environment) if preset else {}
    request |= {"algorithm": algorithm, "environment": environment}
    request["config"] = request.get("config", {}) | assignments(settings, "config", limits=stop)
    request["environment_config"] = request.get("environment_config", {}) | assignments(
        environment_settings, "environment_config", limits=stop
    )
    given = {name: bound for name, bound in stop.items() if bound is not None}
    request["stop"] = request.get("stop", {}) | given
    if needs_limit and not request["stop"]:
        raise fail(f"set at least one limit: {' or '.join(_limit_options(stop).values())}")
    return request


def value_of(text: str) -> Any:
    """The JSON value that the text is, or else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


_OPTIONS = {"config": "--set", "environment_config": "--set-environment"}


def assignments(pairs: Sequence[str], section: str, *, limits: Iterable[str]) -> dict[str, Any]:
    """The values of assignments, such as `n_e=32`, by name.

    Args:
        pairs: values of the option.
        section: `config` or `environment_config`.
        limits: limits that have an option of their own.

    Raises:
        typer.Exit: one is invalid.
    """
    option = _OPTIONS[section]
    values = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise fail(f"{option} {pair}: expected name=value")
        name = name.removeprefix(f"{section}.")
        other, _, field = name.partition(".")
        if field and other in _OPTIONS:
            raise fail(f"{option} {name}: use {_OPTIONS[other]} {shlex.quote(f'{field}={text}')}")
        if other == "stop":
            options = _limit_options(limits)
            right = (
                f"{options[field]} {shlex.quote(text)}" if field in options else " or ".join(options.values())
            )
            raise fail(f"{option} {name}: use {right}")
        if name in values:
            raise fail(f"{option} {name}: is given twice")
        values[name] = value_of(text)
    return values


def _limit_options(limits: Iterable[str]) -> dict[str, str]:
    """The option of each limit."""
    return {limit: f"--{limit.replace('_', '-')}" for limit in limits}


def _preset(algorithm: str, preset: str, environment: str) -> dict[str, Any]:
    from backend.specs.environments import ENVIRONMENTS

    if algorithm not in ALGORITHMS:
        return {}
    known = {p.id: p for p in ALGORITHMS[algorithm].presets}
    entry = ENVIRONMENTS.get(environment)
    chosen = known.get(preset)
    if chosen is None or (entry is not None and not chosen.suits(entry)):
        fitting = ", ".join(p.id for p in known.values() if entry is None or p.suits(entry))
        raise fail(
            ("preset: unknown preset " if chosen is None else "preset: not for this environment: ")
            + f"{quoted(preset)}; {algorithm} has {fitting or 'none'} for {environment}"
            + ("" if fitting else ": omit --preset to use the defaults")
        )
    return {
        "config": chosen.config,
        "environment_config": chosen.environment_config,
        "stop": chosen.stop,
    }
