"""What is wrong with input: one problem per field, in the words of this project."""

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from backend.specs.fields import PATTERNS, Frozen


class FieldProblem(Frozen):
    """An error of one field."""

    field: str
    """Dotted path from the root of the request, such as `config.n_e`."""
    message: str


class InvalidSpec(ValueError):
    """An invalid specification; `problems` has one entry per invalid field."""

    def __init__(self, problems: list[FieldProblem]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in problems))
        self.problems = problems


NO_FIELD = "no such field"

_MESSAGES = dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be an object")
_MESSAGES |= dict.fromkeys(("list_type", "tuple_type", "set_type"), "must be a list")
_MESSAGES |= dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be an integer")
_MESSAGES |= dict.fromkeys(("float_type", "float_parsing"), "must be a number")
_MESSAGES |= dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false")
_MESSAGES |= {"extra_forbidden": NO_FIELD, "string_type": "must be text", "missing": "is required"}
"""By the type of pydantic's errors; other messages are pydantic's, in the words of this project."""

_SORT_PATTERN = re.compile(r"\^-\?\((.+)\)\$")


def message_of(error: Mapping[str, Any], *, secret: bool = False) -> str:
    """What one of pydantic's errors means to whoever sent the input.

    Args:
        error: as in `ValidationError.errors()`.
        secret: whether the value, which may be a password, is left out.
    """
    value, details = error["input"], error.get("ctx", {})
    if error["type"] in ("too_short", "too_long"):
        return _length_message(details, value)
    if isinstance(value, bytes):
        return "must be JSON, sent with the header Content-Type: application/json"
    message = _MESSAGES.get(error["type"]) or _pattern_message(details.get("pattern")) or error["msg"]
    message = message.removeprefix("Value error, ")
    message = re.sub(r"^(Input|String|List|Tuple) should ", "must ", message)
    message = message.replace("be greater than or equal to", "be at least")
    message = message.replace("be less than or equal to", "be at most")
    message = message[0].lower() + message[1:]
    if error["type"] in ("missing", "extra_forbidden") or secret or isinstance(value, dict | list):
        return message
    if error["type"] == "string_too_long":
        return f"{message}, has {len(value):,}"
    return f"{message}, got {json.dumps(value, default=repr):.80}"


def _length_message(bounds: Mapping[str, Any], value: Any) -> str:
    if "max_length" in bounds:
        return f"must have at most {bounds['max_length']:,} items, has {len(value):,}"
    least = bounds["min_length"]
    return "must not be empty" if least == 1 else f"must have at least {least:,} items"


def _pattern_message(pattern: str | None) -> str | None:
    if pattern is None or pattern in PATTERNS:
        return PATTERNS.get(pattern or "")
    if names := _SORT_PATTERN.fullmatch(pattern):
        return f"must be one of {names[1].replace('|', ', ')}, or one of them after - for descending order"
    return None


def problems_of(error: ValidationError, prefix: str = "") -> list[FieldProblem]:
    """One problem per error, with the names of this project."""
    found = []
    for item in error.errors(include_url=False):
        path = ".".join([prefix, *(str(part) for part in item["loc"])] if prefix else map(str, item["loc"]))
        found.append(FieldProblem(field=path or "body", message=message_of(item)))
    return found


def unknown_field(path: str, known: Iterable[str], kind: str = "field") -> str:
    """What is wrong with a field that does not exist, with those that may be meant.

    Args:
        path: the dotted path of the field.
        known: the names of the fields beside it.
        kind: what it is called.
    """
    known = list(known)
    if not known:
        return f"no such {kind}; there are none here"
    similar = get_close_matches(path.rpartition(".")[2], known, n=3)
    if similar:
        return f"no such {kind}; did you mean {' or '.join(similar)}?"
    return f"no such {kind}; the {kind}s are {', '.join(known)}"
