"""The fields by which runs are filtered, sorted and grouped.

- Fields of a run: `score`, `tag`, `created_at`.
- Settings and limits of its spec: `config.learning_rate`, `environment_config.frame_skip`, `stop.score`,
  `device`.
- Metrics of the run as a whole: `eval/noop_starts/mean_return` is the last value; `.best`, `.mean`, `.min`
  and `.max` choose another one. The best value of a `loss/` metric is its smallest, of others the largest.
  A metric without `/` in its name, or whose name begins as a setting's, is written `metric.loss`. If a
  metric's own name ends in `.best` or another of these words, `.last` follows it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from backend.runs.runs.external_spec import MAX_SETTING_NAME
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.custom import CustomConfig
from backend.specs.fields import NAME
from backend.specs.problems import quoted, similar_names
from backend.specs.run import RunSpec, StopSpec

FieldKind = Literal["id", "text", "number", "time", "flag", "tag", "any"]
"""`any`: a setting of external runs, which may be a number in one of them and a text in another."""
Statistic = Literal["last", "best", "mean", "min", "max"]

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)

RUN_FIELDS: dict[str, FieldKind] = {
    "id": "id",
    "origin": "id",
    "name": "text",
    "notes": "text",
    "algorithm": "id",
    "environment": "text",
    "state": "id",
    "group": "id",
    "project": "id",
    "host": "id",
    "queue": "id",
    "tag": "tag",
    "archived": "flag",
    "demo": "flag",
    "seed": "number",
    "priority": "number",
    "attempt": "number",
    "score": "number",
    "best_return": "number",
    "agent_steps": "number",
    "frames": "number",
    "updates": "number",
    "episodes": "number",
    "wall_time_s": "number",
    "agent_steps_per_s": "number",
    "created_at": "time",
    "started_at": "time",
    "ended_at": "time",
}
"""Fields that are columns of a run's row."""

_NAME = re.compile(NAME)
_METRIC_PREFIX = "metric."
_SETTING_PREFIXES = ("config.", "environment_config.", "stop.")
_SPEC_SCALARS = ("device", "annealing_agent_steps", "package")


class UnknownField(ValueError):
    """The name of no field; the message lists what is known."""


@dataclass(frozen=True)
class ConfigField:
    """A setting or limit of a run's spec."""

    name: str
    """The field's dotted path in the spec."""
    kind: FieldKind
    title: str
    unit: str | None = None
    values: tuple[str, ...] = ()
    """All possible values, if they are few."""

    @property
    def path(self) -> tuple[str, ...]:
        """Keys from the root of the spec. Names of external runs' settings may have dots."""
        return tuple(self.name.split(".", 1))


@dataclass(frozen=True)
class MetricField:
    """A statistic of a metric of the run as a whole."""

    name: str
    statistic: Statistic = "last"

    @property
    def stored(self) -> Literal["last", "mean", "min", "max"]:
        """The stored statistic."""
        if self.statistic == "best":
            return "min" if self.name.startswith("loss/") else "max"
        return self.statistic


@dataclass(frozen=True)
class RunField:
    """A column of a run's row."""

    name: str
    kind: FieldKind


Field = RunField | ConfigField | MetricField


def resolve(name: str) -> Field:
    """The field of this name; fields, and settings of Callboard's own, ignore case.

    Raises:
        UnknownField: there is none. Whether a metric was ever recorded, or an external run has a setting, is
            not checked.
    """
    if not name:
        raise UnknownField("must not be empty")
    lower = name.lower()
    is_setting = lower.startswith(_SETTING_PREFIXES)
    if ("/" in name and not is_setting) or lower.startswith(_METRIC_PREFIX):
        metric = metric_of(name[len(_METRIC_PREFIX) :] if lower.startswith(_METRIC_PREFIX) else name)
        if not _NAME.fullmatch(metric.name):
            raise UnknownField(f"{quoted(name)} is not the name of a metric")
        return metric
    if lower in RUN_FIELDS:
        return RunField(lower, RUN_FIELDS[lower])
    config_field = config_fields().get(lower)
    if config_field is not None:
        return config_field
    prefix, _, setting = name.partition(".")
    if prefix.lower() == "config" and len(setting) <= MAX_SETTING_NAME and _NAME.fullmatch(setting):
        return ConfigField(f"config.{setting}", "any", setting)
    raise UnknownField(unknown(name))


def field_of_metric(metric: str) -> str:
    """The field that is this metric's last value."""
    plain = "/" in metric and not metric.lower().startswith((*_SETTING_PREFIXES, _METRIC_PREFIX))
    field = metric if plain else f"{_METRIC_PREFIX}{metric}"
    return field if metric_of(metric).name == metric else f"{field}.last"


def metric_of(name: str) -> MetricField:
    """A metric's name, with or without a statistic."""
    metric, _, last = name.rpartition(".")
    for statistic in STATISTICS:
        if metric and last.lower() == statistic:
            return MetricField(metric, statistic)
    return MetricField(name)


@cache
def config_fields() -> dict[str, ConfigField]:
    """Every setting that a spec can have, by its path."""
    fields: dict[str, ConfigField] = {}
    for prefix, model in _models():
        for name, schema in model.model_json_schema()["properties"].items():
            own = _config_field(f"{prefix}.{name}", schema)
            earlier = fields.setdefault(own.name, own)
            if earlier != own:
                fields[own.name] = _either(earlier, own)
    properties = RunSpec.model_json_schema()["properties"]
    return fields | {name: _config_field(name, properties[name]) for name in _SPEC_SCALARS}


def setting_title(path: str) -> str:
    """What figures call a setting: its title with the unit; of an external run, its own name."""
    field = config_fields().get(path)
    if field is None:
        return path.removeprefix("config.")
    return f"{field.title} ({field.unit})" if field.unit else field.title


def _models() -> Iterator[tuple[str, Any]]:
    for algorithm in ALGORITHMS.values():
        yield "config", algorithm.config
    for config in dict.fromkeys([*(entry.config for entry in ENVIRONMENTS.values()), CustomConfig]):
        yield "environment_config", config
    yield "stop", StopSpec


def _config_field(path: str, schema: dict[str, Any]) -> ConfigField:
    options = [schema, *schema.get("anyOf", ())]
    types = {option.get("type") for option in options}
    values = tuple(str(value) for option in options for value in option.get("enum", ()))
    kind: FieldKind = "number" if types & {"number", "integer"} else "flag" if "boolean" in types else "text"
    if kind == "flag":
        values = ("true", "false")
    title = schema.get("title") or path.rpartition(".")[2].replace("_", " ").capitalize()
    return ConfigField(path, kind, title, schema.get("unit"), values)


def _either(field: ConfigField, other: ConfigField) -> ConfigField:
    """A setting that several algorithms have."""
    kind = field.kind if field.kind == other.kind else "text"
    values = tuple(dict.fromkeys(field.values + other.values)) if field.values and other.values else ()
    return ConfigField(field.name, kind, field.title, field.unit, values)


def unknown(name: str) -> str:
    """Why there is no field of this name, and what was probably meant."""
    known = [*RUN_FIELDS, *config_fields()]
    section, _, own = name.lower().rpartition(".")
    # A common section makes no name similar.
    by_name: dict[str, list[str]] = {}
    for known_name in known:
        by_name.setdefault(known_name.rpartition(".")[2], []).append(known_name)
    likely = dict.fromkeys([own, *similar_names(own, by_name, cutoff=0.7)])
    alike = [known_name for last in likely for known_name in by_name.get(last, ())]
    if section:
        alike.sort(key=lambda known_name: not known_name.startswith(f"{section}."))
    if alike:
        return f"unknown field {quoted(name)}: did you mean {' or '.join(alike[:3])}?"
    return (
        f"unknown field {quoted(name)}; use one of {', '.join(RUN_FIELDS)}, a setting such as "
        "config.learning_rate, or a metric such as eval/noop_starts/mean_return"
    )
