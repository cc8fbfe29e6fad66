"""What is wrong with input: one problem per field, in the words of this project."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from backend.specs.fields import PATTERNS, Frozen

MAX_PROBLEMS = 20
"""The most that are reported: whoever sent the input fixes the first ones first."""


class FieldProblem(Frozen):
    """An error of one field."""

    field: str
    """Dotted path from the root of the request, such as `config.n_e`."""
    message: str
    """What is wrong with the field, and what to send instead."""


class InvalidSpec(Exception):
    """An invalid specification; `problems` has one entry per invalid field, up to `MAX_PROBLEMS`.

    It is no `ValueError`, which pydantic would put into an error of its own if a validator raised it.
    """

    def __init__(self, problems: list[FieldProblem]) -> None:
        self.problems = problems[:MAX_PROBLEMS]
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in self.problems))


NO_FIELD = "no such field"
_EMPTY = "must not be empty"

_MESSAGES = dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be an object")
_MESSAGES |= dict.fromkeys(("list_type", "tuple_type", "set_type"), "must be a list")
_MESSAGES |= dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be an integer")
_MESSAGES |= dict.fromkeys(("float_type", "float_parsing"), "must be a number")
_MESSAGES |= dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false")
_MESSAGES |= dict.fromkeys(
    ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"),
    "must be a date and time, such as 2026-01-31T12:00:00Z",
)
_MESSAGES |= {
    "extra_forbidden": NO_FIELD,
    "missing": "is required",
    "string_type": "must be text",
    "string_unicode": "must be text without unpaired surrogates",
    "timezone_aware": "must state its time zone, such as 2026-01-31T12:00:00Z",
}
"""By the type of pydantic's errors; other messages are pydantic's, in the words of this project."""

_LONG_NUMBER = re.compile(r"(?<![\d.])\d{5,}")
_SORT_PATTERN = re.compile(r"\^-\?\((.+)\)\$")

MAX_EXPLAINED = 10
_MAX_NAME = 64
"""Longer names are like no field's. This and `MAX_EXPLAINED` bound the cost of a request: comparing names is
slow."""
_MAX_QUOTED = 80
_MAX_SIMILAR = 5
_MIN_PART = 3
"""Shorter names are part of too many ids."""


def quoted(value: Any) -> str:
    """A value of the input as JSON on one line for a message; only the start of a long one."""
    if isinstance(value, str):
        text = _json(value[:_MAX_QUOTED])
        return text if len(value) <= _MAX_QUOTED else f'{text[:-1]}…"'
    text = _json(value)
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"


def _json(value: Any) -> str:
    text = json.dumps(value, default=repr, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def message_of(error: Mapping[str, Any], *, secret: bool = False) -> str:
    """What one of pydantic's errors means to whoever sent the input.

    Args:
        error: a problem as in `ValidationError.errors()`.
        secret: whether the value, which may be a password, is left out.
    """
    value, details = error["input"], error.get("ctx", {})
    if error["type"] in ("too_short", "too_long"):
        return _length_message(details, value)
    if (error["type"], details.get("min_length")) == ("string_too_short", 1):
        return _EMPTY
    if isinstance(value, bytes):
        return "must be JSON, sent with the header Content-Type: application/json"
    message = _MESSAGES.get(error["type"]) or _pattern_message(details.get("pattern", "")) or error["msg"]
    message = message.removeprefix("Value error, ")
    message = re.sub(r"^(Input|String|List|Tuple) should ", "must ", message)
    message = message.replace("be greater than or equal to", "be at least")
    message = message.replace("be less than or equal to", "be at most")
    if error["type"] in ("literal_error", "enum"):
        message = message.replace("'", "")
    if not details.keys().isdisjoint(("ge", "gt", "le", "lt", "max_length")):
        message = _LONG_NUMBER.sub(lambda digits: f"{int(digits[0]):,}", message)
    message = message[0].lower() + message[1:]
    if error["type"] in ("missing", "extra_forbidden") or secret or isinstance(value, dict | list):
        return message
    if error["type"] == "string_too_long":
        return f"{message}, has {len(value):,}"
    return f"{message}, got {quoted(value)}"


def _length_message(bounds: Mapping[str, Any], value: Any) -> str:
    if "max_length" in bounds:
        most = bounds["max_length"]
        return f"must have at most {most:,} {'item' if most == 1 else 'items'}, has {len(value):,}"
    least = bounds["min_length"]
    return _EMPTY if least == 1 else f"must have at least {least:,} items"


def _pattern_message(pattern: str) -> str | None:
    if names := _SORT_PATTERN.fullmatch(pattern):
        return f"must be one of {names[1].replace('|', ', ')}; put - before it for descending order"
    return PATTERNS.get(pattern)


def problems_of(error: ValidationError, prefix: str = "") -> list[FieldProblem]:
    """One problem per error, in the words of this project; only the first `MAX_PROBLEMS`."""
    problems = []
    for item in error.errors(include_url=False)[:MAX_PROBLEMS]:
        path = ".".join([prefix, *(str(part) for part in item["loc"])] if prefix else map(str, item["loc"]))
        problems.append(FieldProblem(field=path or "body", message=message_of(item)))
    return problems


def explain(problems: Iterable[FieldProblem], known: Iterable[str]) -> list[FieldProblem]:
    """The problems; those of fields that do not exist also name the fields that may be meant.

    Args:
        problems: problems of one object, as from `problems_of`.
        known: the names of its fields.
    """
    problems = list(problems)
    unknown = iter(
        unknown_fields([problem.field for problem in problems if problem.message == NO_FIELD], known)
    )
    return [next(unknown) if problem.message == NO_FIELD else problem for problem in problems]


def explain_in(problems: Iterable[FieldProblem], kind: Any) -> list[FieldProblem]:
    """As `explain`, for problems of a value with models inside it.

    Args:
        problems: problems of the value, at any depth.
        kind: the type of the value, such as a model or a list of models.
    """
    problems = list(problems)
    unknown = [problem for problem in problems if problem.message == NO_FIELD][:MAX_EXPLAINED]
    meant = {}
    for problem in unknown:
        *parents, name = problem.field.split(".")
        known = _fields_at(kind, parents)
        [meant[problem]] = unknown_fields([problem.field], known)
        if name in known:  # sent with dots; with several dots it is unknown which are objects
            what = f'; send {{"{parents[0]}": {{"{name}": …}}}}' if len(parents) == 1 else ""
            meant[problem] = problem.model_copy(update={"message": NO_FIELD + what})
    return [meant.get(problem, problem) for problem in problems]


def _fields_at(kind: Any, path: Sequence[str]) -> list[str]:
    """The fields of the models that a type may be at this path; none if it has none."""
    models = list(_models_in(kind))
    fields = {field.alias or name: field for model in models for name, field in model.model_fields.items()}
    if not path or _has_keys(kind):  # the rest is a key, which may have dots
        return list(fields)
    if path[0].isdecimal():
        return _fields_at(kind, path[1:])
    return _fields_at(fields[path[0]].annotation, path[1:]) if path[0] in fields else []


def _has_keys(kind: Any) -> bool:
    return get_origin(kind) is dict or any(_has_keys(part) for part in get_args(kind))


def _models_in(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _models_in(part)


def paths_by_name(sections: Mapping[str, type[BaseModel]], request: Iterable[str]) -> dict[str, str]:
    """The path of every field of a run's request by its name, and by the path itself.

    Args:
        sections: the models of the sections, as far as they are known.
        request: the fields of the request itself.
    """
    paths = {name: name for name in request}
    for section, model in sections.items():
        in_section = {field: f"{section}.{field}" for field in model.model_fields}
        paths |= in_section | {path: path for path in in_section.values()}
    return paths


def point_elsewhere(
    problems: Iterable[FieldProblem], section: str, paths: Mapping[str, str]
) -> list[FieldProblem]:
    """A section's problems; those of fields that belong elsewhere also name the path that is meant.

    Args:
        problems: problems of the section, as from `problems_of`.
        section: name of the section.
        paths: the paths of each name, as from `paths_by_name`.
    """
    return [
        _with_hint(problem, f"did you mean {path}?")
        if problem.message == NO_FIELD
        and (path := paths.get(problem.field.removeprefix(f"{section}.")))
        and path.partition(".")[0] != section
        else problem
        for problem in problems
    ]


def point_into_sections(
    problems: Iterable[FieldProblem], sections: Mapping[str, type[BaseModel]], request: Iterable[str]
) -> list[FieldProblem]:
    """The request's problems; those of fields that do not exist also name the section or the fields that
    are meant.

    Args:
        problems: problems of the request itself, as from `problems_of`.
        sections: the models of the sections, as far as they are known.
        request: the fields of the request itself.
    """
    hints = {"preset": "send the preset's settings, which GET /api/v1/algorithms lists"}
    for section, model in sections.items():
        for field in model.model_fields:
            hints[field] = f"did you mean {section}.{field}?"
            hints[f"{section}.{field}"] = f'send {{"{section}": {{"{field}": …}}}}'
    pointed = [
        _with_hint(problem, hints[problem.field])
        if problem.message == NO_FIELD and problem.field in hints
        else problem
        for problem in problems
    ]
    return explain(pointed, request)


def _with_hint(problem: FieldProblem, hint: str) -> FieldProblem:
    return problem.model_copy(update={"message": f"{NO_FIELD}; {hint}"})


def unknown_fields(paths: Iterable[str], known: Iterable[str], no_such: str = NO_FIELD) -> list[FieldProblem]:
    """One problem per field that does not exist; the first ten name the fields that may be meant.

    Args:
        paths: the dotted path of each.
        known: the names of the fields that exist there.
        no_such: what is wrong.
    """
    known = list(known)
    return [
        FieldProblem(
            field=path,
            message=no_such + _meant(path.rpartition(".")[2], known) if place < MAX_EXPLAINED else no_such,
        )
        for place, path in enumerate(paths)
    ]


def _meant(name: str, known: list[str]) -> str:
    if similar := similar_names(name, known):
        return f"; did you mean {' or '.join(similar)}?"
    if not known:
        return ""
    return f"; use {'one of ' if len(known) > 1 else ''}{', '.join(known)}"


def similar_ids(name: str, known: Iterable[str]) -> list[str]:
    """Up to five known ids that contain this one, or else up to three like it, whatever the case."""
    by_lower_case = {known_id.lower(): known_id for known_id in known}
    similar = []
    if len(name) >= _MIN_PART:
        similar = [known_id for known_id in by_lower_case if name.lower() in known_id][:_MAX_SIMILAR]
    return [by_lower_case[known_id] for known_id in similar or similar_names(name.lower(), by_lower_case)]


def similar_names(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Up to three known names like this one, the most similar first; none for a very long one."""
    return get_close_matches(name, known, n=3, cutoff=cutoff) if len(name) <= _MAX_NAME else []
