"""The values of fields and settings of a run."""

from typing import Any

from backend.db import Run
from backend.errors import Invalid
from backend.runs.fields import ConfigField, MetricField, RunField, UnknownField, resolve
from backend.runs.groups import configs_of
from backend.specs.problems import quoted


def setting(name: str) -> RunField | ConfigField:
    """The field or setting of this name.

    Raises:
        Invalid: there is none.
    """
    try:
        field = resolve(name)
    except UnknownField as error:
        raise Invalid.field("x", str(error)) from None
    if isinstance(field, MetricField):
        raise Invalid.field("x", f"{quoted(name)} is a metric: use a setting, such as config.learning_rate")
    return field


def value_of(run: Run, field: RunField | ConfigField) -> Any:
    """A run's value of a field or setting; None if it has none."""
    if isinstance(field, RunField):
        return getattr(run, field.name, None)
    value: Any = run.spec | configs_of(run.spec)
    for key in field.path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
