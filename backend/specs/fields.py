"""Declaration of settings: default, bounds, unit, symbol, group and description of a field in one call.

The form, the API schema and the validation messages are generated from these declarations.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

STORABLE = r"^[^\x00]*$"
WITHOUT_CONTROLS = r"^[^\x00-\x1f]*$"
WITHOUT_QUOTES = r'^[^"\\\x00-\x1f]*$'
ULID = r"^[0-9A-HJKMNP-TV-Z]{26}$"
NAME = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$"
"""Names that scripts choose, of metrics, settings and tags: they are kept as they are."""
_NOT_IN_LABELS = r'"\\\x00-\x1f\x7f-\x9f\u2028\u2029'
LABEL = rf"^[^\s.{_NOT_IN_LABELS}]([^{_NOT_IN_LABELS}]{{0,98}}[^\s{_NOT_IN_LABELS}])?$"
"""Names of projects and views, which stand in addresses and filters."""
SHA256 = r"^[0-9a-f]{64}$"
MD5 = r"^[0-9a-f]{32}$"
SLUG = r"^[a-z0-9][a-z0-9-]{0,60}$"
SET_NAME = "[a-z0-9][a-z0-9-]{0,23}"
"""Names of start sets."""
CHOSEN_CHECKPOINT = r"^(best|latest|[0-9A-HJKMNP-TV-Z]{26})$"
LICENCE = r"^[a-z0-9][a-z0-9.+-]{0,49}$"
SUFFIX = r"^(\.[a-z0-9]{1,10})?$"
ENVIRONMENT_PREFIX = "Custom/"
"""Prefix of the ids of hosts' custom environments."""
CUSTOM_ID = rf"^{ENVIRONMENT_PREFIX}[A-Za-z0-9][A-Za-z0-9_-]{{0,60}}-v[0-9]{{1,4}}$"
COMMIT = "^[0-9a-f]{40,64}$"
ENTRY_POINT = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
PATTERNS = {
    STORABLE: "must not contain null characters",
    WITHOUT_CONTROLS: "must not contain control characters",
    WITHOUT_QUOTES: "must not contain double quotes, backslashes or control characters",
    ULID: "must be an id of 26 digits and capital letters (a ULID)",
    NAME: "must not be empty, or contain control characters or separators of lines",
    LABEL: "must not contain double quotes, backslashes or control characters, nor begin with a dot or a "
    "blank, nor end with a blank",
    SHA256: "must be 64 hexadecimal digits in lower case",
    COMMIT: "must be a commit: 40 to 64 hexadecimal digits in lower case",
    MD5: "must be 32 hexadecimal digits in lower case",
    SLUG: "must have up to 61 lower-case letters, digits and hyphens, with no hyphen first",
    rf"^{SET_NAME}$": "must have up to 24 lower-case letters, digits and hyphens, with no hyphen first",
    CHOSEN_CHECKPOINT: "must be best, latest or the id of a checkpoint",
    LICENCE: "must be the identifier of a licence in lower case, such as mit or cc-by-4.0",
    SUFFIX: "must be empty, or a dot and up to 10 lower-case letters or digits, such as .zip",
    CUSTOM_ID: "must be Custom/, up to 61 letters, digits, _ or -, and a version, such as Custom/Grid-v0",
    ENTRY_POINT: "must be a module and a class or function of it, such as my_environments.grid:Grid",
}
"""Pattern -> what text must be to match it."""

Text = Annotated[str, StringConstraints(pattern=STORABLE)]
"""Text that every database can store: PostgreSQL stores no null bytes."""

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


class Schema(BaseModel):
    """Base class of what the API receives and sends: the text below a field describes it to clients."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Frozen(Schema):
    """Base class: immutable, no unknown fields, finite numbers only."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def whole(value: Any) -> Any:
    """A float without a fraction as an integer: JSON has one number type, where 5.0 and 5 are the same."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Strict(Frozen):
    """Base class of request bodies: `"5"` and `true` are not numbers, but 5.0 is an integer."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, data: Any) -> Any:
        return {name: whole(value) for name, value in data.items()} if isinstance(data, dict) else data


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
    common: bool = False,
) -> Any:
    """Declare one field of a settings model.

    Args:
        default: the value if none is given.
        title: label in the form.
        group: section of the form.
        description: help text in the form and in the API schema.
        symbol: the paper's symbol, in Unicode.
        unit: unit of the number.
        ge: minimum.
        gt: exclusive minimum.
        le: maximum.
        lt: exclusive maximum.
        live: whether the setting can change while a run trains.
        shape: whether the setting determines the shapes of the network's parameters, so that a fork keeps it.
        common: whether the form shows the setting without unfolding all of them.
    """
    extra: dict[str, Any] = {"group": group}
    if live:
        extra["live"] = True
    if shape:
        extra["shape"] = True
    if common:
        extra["common"] = True
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


def marked_fields(model: type[BaseModel], mark: Literal["live", "shape"]) -> frozenset[str]:
    """Names of the fields of a settings model that are declared `live`, or `shape`."""
    extras = {name: field.json_schema_extra for name, field in model.model_fields.items()}
    return frozenset(name for name, extra in extras.items() if isinstance(extra, dict) and extra.get(mark))
