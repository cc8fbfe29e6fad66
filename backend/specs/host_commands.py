"""Commands of a host that runs start, named in a file on that host and never through the API.

The file is TOML, with one table per command:

    [train]
    arguments = ["python", "train.py"]
    folder = "walker"
    environment = "Walker2d-v5"
    seed = true

    [train.parameters.learning_rate]
    type = "number"
    default = 0.0003
    minimum = 0.000001
    maximum = 0.1

`arguments`, `folder` and `variables` stay on the host. Hosts publish the rest with a digest of the whole
definition, and each run's spec holds that: only a host with the same definition claims the run.
"""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    SerializeAsAny,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import SchemaError

from backend.specs.fields import NAME, PATTERNS, WITHOUT_CONTROLS, WITHOUT_QUOTES, Strict, whole
from backend.specs.problems import (
    FieldProblem,
    InvalidSpec,
    explain,
    message_of,
    problems_of,
    quoted,
    similar_ids,
    unknown_fields,
)
from backend.specs.run_fields import MAX_ALGORITHM, MAX_ENVIRONMENT, Seed, StartOptions

FILE_VARIABLE = "CALLBOARD_COMMANDS_FILE"
MAX_PARAMETERS = 100
MAX_TEXT = 1_000
COMMAND_NAME = r"^[a-z0-9][a-z0-9_-]{0,39}$"
PARAMETER_NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,59}$"
VARIABLE_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
DIGEST = r"^[0-9a-f]{12}$"
PATTERNS |= {
    COMMAND_NAME: "must have up to 40 lower-case letters, digits, _ or -",
    PARAMETER_NAME: "must be a letter, then up to 59 letters, digits, _, - or dots",
    VARIABLE_NAME: "must be the name of an environment variable: letters, digits and _",
}
OF_SCRIPT = ("algorithm", "environment", "environment_config", "stop", "annealing_agent_steps", "device")
"""Fields of a run of Callboard's own that a command has none of."""

Word = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=WITHOUT_CONTROLS)]
Scalar = bool | int | float | str
Argument = Annotated[str, StringConstraints(min_length=1, max_length=4_096, pattern=WITHOUT_CONTROLS)]
Id = Annotated[str, StringConstraints(min_length=1, pattern=WITHOUT_QUOTES)]


def _without_controls(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line, without control characters")
    return text


def _scalar(value: Any) -> Any:
    if not isinstance(value, Scalar) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("must be a boolean, a finite number or a text")
    return value


def _one_line(value: Any) -> Any:
    """What is the value of one argument."""
    value = _scalar(value)
    if isinstance(value, str) and (len(value) > MAX_TEXT or not value.isprintable()):
        raise ValueError(f"must be one line of at most {MAX_TEXT:,} characters, without control characters")
    return value


_ARGUMENT: TypeAdapter[Any] = TypeAdapter(Annotated[Any, BeforeValidator(_one_line)])


class Parameter(Strict):
    """A parameter of a command, handed over as one argument `--name=value`."""

    type: Literal["integer", "number", "text", "boolean"]
    default: Annotated[Scalar, BeforeValidator(_scalar)]
    description: Annotated[str, StringConstraints(max_length=300, pattern=WITHOUT_CONTROLS)] = ""
    minimum: float | None = None
    """Lowest value of a number."""
    maximum: float | None = None
    """Highest value of a number."""
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    """A regular expression, in the syntax of Rust's crate regex, that a whole text matches."""
    choices: Annotated[tuple[Word, ...], Field(strict=False)] | None = Field(
        default=None, min_length=1, max_length=100
    )
    """The texts that are allowed."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        is_number = self.type in ("integer", "number")
        if is_number and (self.minimum is None or self.maximum is None):
            raise ValueError("needs minimum and maximum: every number has bounds")
        if self.type == "integer" and any(
            bound != bound // 1 for bound in (self.minimum, self.maximum) if bound
        ):
            raise ValueError("minimum and maximum of an integer must be integers")
        if not is_number and (self.minimum is not None or self.maximum is not None):
            raise ValueError("only a number has minimum and maximum")
        if self.type == "text" and (self.pattern is None) == (self.choices is None):
            raise ValueError("needs either pattern, which a whole text matches, or choices")
        if self.type != "text" and (self.pattern is not None or self.choices is not None):
            raise ValueError("only a text has pattern or choices")
        try:
            if self.pattern is not None:
                TypeAdapter(Annotated[str, StringConstraints(pattern=self.pattern)])
            self.adapter.validate_python(self.default)
        except SchemaError:
            raise ValueError(f"pattern {quoted(self.pattern)} is no regular expression") from None
        except ValidationError as error:
            raise ValueError(f"default: {message_of(error.errors()[0])}") from None
        return self

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """What validates a value. Patterns are matched in linear time."""
        if self.type == "boolean":
            return TypeAdapter(Annotated[bool, Field(strict=True)])
        if self.choices is not None:
            choice: Any = Literal[self.choices]
            return TypeAdapter(choice)
        if self.pattern is not None:
            text = StringConstraints(strict=True, max_length=MAX_TEXT, pattern=f"^(?:{self.pattern})$")
            return TypeAdapter(Annotated[str, text, AfterValidator(_without_controls)])
        if self.type == "number":
            bounds = Field(strict=True, ge=self.minimum, le=self.maximum, allow_inf_nan=False)
            return TypeAdapter(Annotated[float, bounds])
        low, high = (int(bound) for bound in (self.minimum, self.maximum) if bound is not None)
        return TypeAdapter(Annotated[int, Field(strict=True, ge=low, le=high), BeforeValidator(whole)])

    def schema_of(self, name: str) -> dict[str, Any]:
        """Its JSON Schema, as that of a setting."""
        texts = {"title": name, "description": self.description, "group": "command", "common": True}
        return self.adapter.json_schema() | texts | {"default": self.default}


class HostCommand(Strict):
    """The public description of a command, without its program."""

    name: Annotated[str, StringConstraints(pattern=COMMAND_NAME)]
    title: Word | None = None
    """What forms call it; default: its name."""
    summary: Annotated[str, StringConstraints(max_length=300, pattern=WITHOUT_CONTROLS)] = ""
    algorithm: Annotated[Id, Field(max_length=MAX_ALGORITHM)] | None = None
    """Name of the method of its runs; default: its name."""
    environment: Annotated[Id, Field(max_length=MAX_ENVIRONMENT)] = "unknown"
    """Environment of its runs, unless the script names it."""
    return_metric: Annotated[str, StringConstraints(max_length=200, pattern=NAME)] | None = None
    """The metric by which its runs are scored; default: as of every run of a script."""
    seed: bool = False
    """Whether it takes `--seed=N`."""
    gpu: bool = False
    """Whether it may use a GPU of the host."""
    memory_bytes: int = Field(default=512 * 2**20, ge=0, le=2**44)
    """Memory that a host must have free to start it."""
    parameters: dict[Annotated[str, StringConstraints(pattern=PARAMETER_NAME)], Parameter] = Field(
        default={}, max_length=MAX_PARAMETERS
    )
    definition: Annotated[str, StringConstraints(pattern=DIGEST)] | None = None
    """Digest of the whole definition. Computed by the host."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if "seed" in self.parameters:
            raise ValueError("parameters.seed: write seed = true instead, so that runs have seeds")
        return self

    @property
    def requirement(self) -> str:
        """What a host must have to claim a run, in the form of a distribution with its version."""
        return f"{requirement_name(self.name)}=={self.definition}"

    @property
    def config_schema(self) -> dict[str, Any]:
        """JSON Schema of the parameters."""
        properties = {name: parameter.schema_of(name) for name, parameter in self.parameters.items()}
        return {"type": "object", "additionalProperties": False, "properties": properties}

    def config(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values of all parameters.

        Raises:
            InvalidSpec: with one problem per invalid value.
        """
        problems = unknown_fields(
            [f"config.{name}" for name in given if name not in self.parameters], self.parameters
        )
        values = {}
        for name, parameter in self.parameters.items():
            try:
                values[name] = parameter.adapter.validate_python(given.get(name, parameter.default))
            except ValidationError as error:
                problems += problems_of(error, f"config.{name}")[:1]
        if problems:
            raise InvalidSpec(problems)
        return values


class CommandEntry(HostCommand):
    """A command and its program."""

    arguments: Annotated[tuple[Argument, ...], Field(strict=False)] = Field(min_length=1, max_length=100)
    """The program and its first arguments; no shell reads them."""
    folder: Path = Field(default=Path(), strict=False)
    """Where it runs, from the folder of the file."""
    variables: Annotated[
        tuple[Annotated[str, StringConstraints(pattern=VARIABLE_NAME)], ...], Field(strict=False)
    ] = ()
    """Environment variables of the worker that it gets, beside HOME, LANG and PATH."""

    @model_validator(mode="after")
    def _check_variables(self) -> Self:
        if own := [name for name in self.variables if name.startswith("CALLBOARD_")]:
            raise ValueError(f"variables: {own[0]} is the worker's own, and its run has others")
        return self

    def describe(self) -> HostCommand:
        """The public description, with the digest of the definition."""
        whole_definition = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        public = self.model_dump(include=set(HostCommand.model_fields))
        digest = sha256(whole_definition.encode()).hexdigest()[:12]
        return HostCommand.model_validate(public | {"definition": digest})

    def argument_list(self, config: Mapping[str, Any], seed: int | None) -> list[str]:
        """The program with its arguments, one for each parameter.

        Raises:
            InvalidSpec: a value is not valid.
        """
        values = self.config(config) | ({"seed": seed} if self.seed and seed is not None else {})
        return [*self.arguments, *(f"--{name}={_written(value)}" for name, value in values.items())]


class CommandSpec(StartOptions):
    """A run of a host's command. Create it with `parse_command_spec`."""

    command: HostCommand
    """The command as its hosts describe it."""
    config: SerializeAsAny[dict[str, JsonValue]]
    """Values of all its parameters."""
    seed: Seed = 0
    """Seed that it is started with, if it takes one."""

    @property
    def algorithm(self) -> str:
        """Name of its method."""
        return self.command.algorithm or self.command.name

    @property
    def config_values(self) -> dict[str, Any]:
        """Values of its parameters."""
        return self.config


class CommandsError(ValueError):
    """The file of a host's commands is invalid; the message names the file and the field."""


def requirement_name(command: str) -> str:
    """Under which a host publishes the definition of a command, beside the versions of distributions."""
    return f"command:{command}"


def read_commands(path: Path) -> dict[str, CommandEntry]:
    """Read every command in the file, by name.

    Raises:
        CommandsError: the file is missing, is not TOML, or has an invalid field.
    """
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CommandsError(f"{path}: {error}") from None
    entries = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise CommandsError(f"{path}: {name}: must be a table")
        if "definition" in table or "name" in table:
            raise CommandsError(f"{path}: {name}: has a field of its own for name or definition: remove it")
        try:
            entries[name] = CommandEntry.model_validate({"name": name} | table)
        except ValidationError as error:
            first = explain(problems_of(error, name), CommandEntry.model_fields)[0]
            raise CommandsError(f"{path}: {first.field}: {first.message}") from None
    return entries


def parse_command_spec(data: Mapping[str, Any]) -> CommandSpec:
    """Validate a request for a run of a command.

    Args:
        data: JSON values; `command` is its name, and `definition` what the hosts publish of it, if any does.

    Raises:
        InvalidSpec: with one problem per invalid field.
    """
    name, definition = data.get("command"), data.get("definition")
    if definition is None:
        if not isinstance(name, str) or not name:
            raise InvalidSpec([FieldProblem(field="command", message="must be the name of a command")])
        message = f"no host has the command {quoted(name)}"
        raise InvalidSpec([FieldProblem(field="command", message=message)])
    command = HostCommand.model_validate(definition)
    problems: list[FieldProblem] = []
    for field in sorted(data.keys() - CommandSpec.model_fields.keys() - {"definition", "origin"}):
        if field in OF_SCRIPT:
            message = "a command has none: its script knows; what can be chosen are its parameters, in config"
            problems.append(FieldProblem(field=field, message=message))
        else:
            problems += unknown_fields([field], CommandSpec.model_fields)
    given = data.get("config", {})
    config: dict[str, Any] = {}
    if not isinstance(given, dict):
        message = "must be an object of parameters, by name"
        problems.append(FieldProblem(field="config", message=message))
    else:
        try:
            config = command.config(given)
        except InvalidSpec as error:
            problems += error.problems
    if data.get("seed") is not None and not command.seed:
        problems.append(FieldProblem(field="seed", message=NO_SEED))
    options = {field: value for field, value in data.items() if field in StartOptions.model_fields}
    if data.get("seed") is not None:
        options["seed"] = data["seed"]
    try:
        spec = CommandSpec.model_validate(options | {"command": command, "config": config})
    except ValidationError as error:
        raise InvalidSpec([*problems, *problems_of(error)]) from None
    if problems:
        raise InvalidSpec(problems)
    return spec


NO_SEED = "the command takes no seed: leave it out, or write seed = true in the host's file of commands"


def script_arguments(config: Mapping[str, Any], seed: int | None) -> list[str]:
    """The arguments of a script that somebody starts with these settings: one `--name=value` for each.

    Raises:
        InvalidSpec: a name or a value is none of an argument.
    """
    problems = []
    values = {**config, **({} if seed is None else {"seed": seed})}
    for name, value in values.items():
        field = f"config.{name:.100}"
        if re.fullmatch(PARAMETER_NAME, name) is None:
            problems.append(FieldProblem(field=field, message=f"the name {PATTERNS[PARAMETER_NAME]}"))
            continue
        try:
            _ARGUMENT.validate_python(value)
        except ValidationError as error:
            problems.append(FieldProblem(field=field, message=message_of(error.errors()[0])))
    if problems:
        raise InvalidSpec(problems)
    return [f"--{name}={_written(value)}" for name, value in values.items()]


def missing(name: object, known: Mapping[str, Any]) -> str:
    """Why no host can be named that has a command."""
    if not known:
        return f"no host has a command: {FILE_VARIABLE} names a host's file of them"
    hint = similar_ids(str(name), known) or [*known]
    return f"no host has the command {quoted(name)}; hosts have {', '.join(hint[:10])}"


def _written(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
