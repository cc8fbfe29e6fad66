"""How a setting is declared: one call gives its default, bounds, unit, symbol, group and help line.

Forms, the API schema, the docs and the validation messages all come from these declarations.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Group = Literal[
    "environment",
    "network",
    "optimisation",
    "exploration",
    "parallelism",
    "evaluation",
    "stopping",
    "placement",
]


class Frozen(BaseModel):
    """Base of everything one may ask for: immutable, no unknown fields, finite numbers only."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Strict(Frozen):
    """Base of what a request holds: `"5"` and `true` are not numbers, but 5.0 is a whole one."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, data: Any) -> Any:
        # JSON does not tell 5.0 from 5.
        if not isinstance(data, dict):
            return data
        return {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in data.items()
        }


def setting(
    default: Any,
    *,
    title: str,
    group: Group,
    description: str,
    symbol: str | None = None,
    unit: str | None = None,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    live: bool = False,
    shape: bool = False,
) -> Any:
    """Declare one field of a settings model.

    `symbol` is the paper's (Unicode, for the page); `unit` is the unit the number is in; a `live` field
    can be changed while a run trains; a `shape` field decides what a network's parameters look like, so
    that a checkpoint keeps it.
    """
    extra: dict[str, Any] = {"group": group}
    if live:
        extra["live"] = True
    if shape:
        extra["shape"] = True
    if symbol is not None:
        extra["symbol"] = symbol
    if unit is not None:
        extra["unit"] = unit
    return Field(
        default,
        title=title,
        description=description,
        ge=ge,
        gt=gt,
        le=le,
        lt=lt,
        json_schema_extra=extra,
    )


def marked(model: type[BaseModel], mark: Literal["live", "shape"]) -> frozenset[str]:
    """Names of the fields of a settings model that are declared `live`, or `shape`."""
    extras = {name: field.json_schema_extra for name, field in model.model_fields.items()}
    return frozenset(name for name, extra in extras.items() if isinstance(extra, dict) and extra.get(mark))
