"""The specification of an external run: one that is trained elsewhere and only recorded here.

It is not a `RunSpec`: its script chooses algorithm, environment and config freely. Its JSON has the same
top-level fields, with an empty `environment_config` and no limits, so that lists, filters, groups, exports
and pages read both. These need a `RunSpec` and refuse an external run, with a sentence of `REFUSALS`: resume,
fork, evaluations and their protocols, and live settings.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    model_validator,
)

from backend.specs import names
from backend.specs.fields import NAME, WITHOUT_QUOTES, Strict
from backend.specs.host_commands import CommandSpec
from backend.specs.problems import MAX_PROBLEMS, FieldProblem, InvalidSpec, explain, problems_of
from backend.specs.run import StopSpec
from backend.specs.run_fields import (
    DEFAULT_PROJECT,
    EMPTY_IS_NONE,
    EXTERNAL,
    MAX_ALGORITHM,
    MAX_ENVIRONMENT,
    MAX_EXTERNAL_SEED,
    MAX_NAME,
    ExternalSeed,
    GroupName,
    Name,
    Notes,
    ProjectName,
    Tags,
)
from callboard.known_tags import RunUnit

UNKNOWN = "unknown"
"""Algorithm or environment of a run whose script has not named it."""
MAX_CONFIG_BYTES = 16_384
"""Size of all settings as JSON: lists, filters and groups read those of every run."""
MAX_DETAILS_BYTES = 32_768
"""Size of `config_details` as JSON."""
MAX_IMPORT_OPTIONS_BYTES = 8_192
"""Size of the options of an import as JSON: groups and filters read them with every run."""
MAX_SETTINGS = 500
MAX_SETTING_NAME = 100
MAX_SETTING_TEXT = 1_000
MAX_SETTING_ITEMS = 100
_SETTING = re.compile(NAME)

_Id = Annotated[str, StringConstraints(min_length=1, pattern=WITHOUT_QUOTES)]

REFUSALS = {
    "resume": "only its own script can resume it",
    "kill": "only its own script can end it; use stop to request that",
    "fork": "its checkpoints are files of its own script, which Callboard cannot load",
    "evaluate": "its checkpoints are files of its own script, which Callboard cannot load",
    "export": "its checkpoints are files of its own script, which Callboard cannot load",
    "change the settings of": "only its own script can change its settings",
    "repeat": "only its own script can start it with another seed",
}
"""What Callboard cannot do with an external run, and why."""


class SettingDetail(Strict):
    """What a setting's JSON does not say."""

    type: Annotated[str, StringConstraints(min_length=1, max_length=MAX_SETTING_NAME)] | None = Field(
        default=None,
        description="Type of a value that is no text but stored as one: `float` of `NaN`. Of a list with "
        'such values, the types of all as JSON: `[null, "float"]` of `[1, "NaN"]`.',
    )
    path: list[Annotated[str | list[str], Field(max_length=MAX_SETTING_NAME)]] | None = Field(
        default=None,
        max_length=20,
        description="Keys of a nested setting; of one that is no text, its type and its text.",
    )


class ExternalFields(Strict):
    """An external run to create: it is trained elsewhere, and is `running` immediately."""

    origin: Literal["external"] = Field(description="`external`: the run is trained elsewhere.")
    algorithm: Annotated[_Id, Field(max_length=MAX_ALGORITHM)]
    """Name of the algorithm; may be any name."""
    environment: Annotated[_Id, Field(max_length=MAX_ENVIRONMENT)]
    """Any name; with an id from `GET /environments` the run can be compared with others."""
    config: dict[str, JsonValue] = Field(
        default={},
        description=f"At most {MAX_SETTINGS} settings: numbers, strings, Booleans, nulls or lists of these.",
    )
    config_details: dict[str, SettingDetail] = Field(
        default={},
        max_length=MAX_SETTINGS,
        description="What the JSON of settings does not say. Runs of different details are not seeds of one "
        "config.",
    )
    return_metric: Annotated[str, StringConstraints(max_length=200, pattern=NAME)] | None = None
    """The metric by which the run is scored; default: that of a known library, if it has one."""
    step_unit: RunUnit | None = None
    """What the run's steps count: `agent_steps`, the default unless its metrics are those of a library that
    counts `iterations`."""
    import_options: dict[str, JsonValue] | None = Field(
        default=None,
        max_length=20,
        description="Options of the import that has created the run, at most 8 KiB as JSON: an import with "
        "others replaces it.",
    )
    name: Name | None = None
    """Name shown on pages; by default it is composed of the algorithm, the environment and the seed, if there
    is one."""
    seed: ExternalSeed | None = None
    """Seed of the script, as a number or, for programs whose numbers are exact up to 2^53 only, as its
    digits; default: that in `config`, else 0."""
    group: Annotated[GroupName | None, EMPTY_IS_NONE] = None
    """Name of the group that the run belongs to."""
    project: ProjectName = DEFAULT_PROJECT
    """Project that the run is filed under."""
    tags: Tags = ()
    """Labels for finding and filtering runs."""
    notes: Notes | None = None
    """Free text about the run, in Markdown."""

    @model_validator(mode="wrap")
    @classmethod
    def _name_every_field(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Raise one `InvalidSpec` with the problems of all fields and of each setting."""
        problems = _config_problems(data.get("config", {})) if isinstance(data, dict) else []
        known = {problem.field for problem in problems}
        of_config = any(name.startswith("config") for name in known)
        try:
            fields = validate(data)
        except ValidationError as error:
            problems += [
                problem
                for problem in explain(problems_of(error), cls.model_fields)
                if problem.field not in known and not (of_config and problem.field.startswith("config"))
            ]
            raise InvalidSpec(problems) from None
        if problems:
            raise InvalidSpec(problems)
        return fields


def external_spec(fields: ExternalFields, stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The specification of an external run.

    Args:
        fields: what its script has reported.
        stored: the run's specification before, if it has one: what it has already may be of any size.

    Raises:
        InvalidSpec: parts are too large as JSON.
    """
    spec = fields.model_dump(mode="json")
    spec["config_details"] = {
        name: detail.model_dump(mode="json", exclude_none=True)
        for name, detail in fields.config_details.items()
        if name in fields.config
    }
    is_given = fields.seed is not None
    seed = fields.seed if is_given else seed_in(fields.config)
    spec |= {"environment_config": {}, "stop": StopSpec().model_dump()}
    spec |= {"seed": seed or 0, "seed_is_known": seed is not None, "seed_is_given": is_given}
    spec |= {"name": (fields.name or "").strip() or default_name(spec), "notes": fields.notes or ""}
    keep_as_file = (
        ": keep longer settings as a file of the run, with run.checkpoint or POST /runs/{id}/checkpoints"
    )
    for name, most, hint in (
        ("config", MAX_CONFIG_BYTES, keep_as_file),
        ("config_details", MAX_DETAILS_BYTES, keep_as_file),
        ("import_options", MAX_IMPORT_OPTIONS_BYTES, ": name fewer metrics to import"),
    ):
        n_bytes = len(json.dumps(spec[name], ensure_ascii=False, separators=(",", ":")).encode())
        if n_bytes > most and (stored is None or spec[name] != stored.get(name)):
            message = f"has {n_bytes:,} bytes as JSON; the maximum is {most:,}{hint}"
            raise InvalidSpec([FieldProblem(field=name, message=message)])
    return spec


def command_spec(spec: CommandSpec) -> dict[str, Any]:
    """The specification of a run of a host's command: an external one, which its script may add to, and what
    workers start it with."""
    command = spec.command
    options = {"group": spec.group, "project": spec.project, "tags": spec.tags, "notes": spec.notes}
    seed = spec.seed if command.seed else None
    fields = ExternalFields.model_validate(
        {
            "origin": EXTERNAL,
            "algorithm": spec.algorithm,
            "environment": command.environment,
            "config": spec.config,
            "return_metric": command.return_metric,
            "name": spec.name or names.default_name(spec),
            "seed": seed,
        }
        | options
    )
    started = {"name": command.name, "config": spec.config, "seed": seed, "gpu": command.gpu}
    placement = {"queue": spec.queue, "host": spec.host, "priority": spec.priority}
    return external_spec(fields) | placement | {"command": started, "package": command.requirement}


def is_seed_name(name: str) -> bool:
    """Whether the last part of a setting's name ends in `seed`, as in `torch.manual_seed`."""
    return name.rpartition(".")[2].lower().endswith("seed")


def seed_value(value: Any) -> int | None:
    """The seed that a setting's value is: `5`, `5.0` and `"5"` are the same; None if it is none."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value) if 0 <= value <= MAX_EXTERNAL_SEED else None


def seed_in(config: dict[str, Any]) -> int | None:
    """The seed in a config: that of `seed`, else the only seed of all settings whose names end in `seed`."""
    seed_of = {name: seed_value(value) for name, value in config.items() if is_seed_name(name)}
    if seed_of.get("seed") is not None:
        return seed_of["seed"]
    seeds = set(seed_of.values()) - {None}
    return seeds.pop() if len(seeds) == 1 else None


def is_external(spec: dict[str, Any]) -> bool:
    """Whether a stored specification is that of an external run."""
    return spec.get("origin") == EXTERNAL


def default_name(spec: dict[str, Any]) -> str:
    """The name of a run that has been given none."""
    environment = spec["environment"].removeprefix("ALE/")
    tail = f" seed {spec['seed']}" if spec["seed_is_known"] else ""
    return f"{spec['algorithm']} {environment}"[: MAX_NAME - len(tail)] + tail


def _config_problems(config: Any) -> list[FieldProblem]:
    if not isinstance(config, dict):
        return []  # the model names it
    if len(config) > MAX_SETTINGS:
        message = f"has {len(config):,} settings; the maximum is {MAX_SETTINGS}"
        return [FieldProblem(field="config", message=message)]
    problems = []
    for name, value in config.items():
        if not _SETTING.fullmatch(name) or len(name) > MAX_SETTING_NAME:
            message = f"a name must have 1 to {MAX_SETTING_NAME} characters, and no control characters"
        else:
            message = _refusal(value)
        if message:
            problems.append(FieldProblem(field=f"config.{name:.100}", message=message))
            if len(problems) == MAX_PROBLEMS:
                break
    return problems


def _refusal(value: Any) -> str:
    """Why a setting cannot have this value; empty if it can."""
    if isinstance(value, list):
        if len(value) > MAX_SETTING_ITEMS:
            return f"has {len(value):,} items; the maximum is {MAX_SETTING_ITEMS}"
        if any(isinstance(item, list) for item in value):
            return "must not have lists in a list"
        return next(filter(None, map(_refusal, value)), "")
    if isinstance(value, dict):
        return "must not be an object: give each of its values a name of its own, such as optimizer.lr"
    if isinstance(value, str) and len(value) > MAX_SETTING_TEXT:
        return f"has {len(value):,} characters; the maximum is {MAX_SETTING_TEXT:,}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be a finite number, got {value}"
    if isinstance(value, int) and abs(value) >= 2**63:
        return "must have less than 64 bits"
    return ""
