"""Values within a JSON column as SQL expressions that mean the same on SQLite and PostgreSQL: NULL where the
column is damaged. On PostgreSQL, `json_number` reads jsonb only."""

import json
import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Double, Text, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement


class _JsonNumber(FunctionElement[float]):
    name = "json_number"
    type = Double()
    inherit_cache = True


class _JsonText(FunctionElement[str]):
    name = "json_text"
    type = Text()
    inherit_cache = True


class _JsonNumberOfKey(_JsonNumber):
    """A `_JsonNumber` at a key that SQLite's paths cannot name."""

    name = "json_number_of_key"
    inherit_cache = True


class _JsonTextOfKey(_JsonText):
    """A `_JsonText` at a key that SQLite's paths cannot name."""

    name = "json_text_of_key"
    inherit_cache = True


_PLAIN = re.compile(r"[ !#-\[\]-~]*")
"""Printable ASCII without quotes and backslashes: other keys are escaped in the JSON that SQLite stores."""


def json_number(column: Any, path: Sequence[str]) -> Any:
    """The number at `path`; NULL if there is none.

    Args:
        column: a JSON column.
        path: keys from the root; only the last one may be any text.
    """
    return (_JsonNumber if _PLAIN.fullmatch(path[-1]) else _JsonNumberOfKey)(column, *_paths(path))


def json_text(column: Any, path: Sequence[str]) -> Any:
    """The text, number or flag at `path` as text; NULL if there is none. Arguments as of `json_number`."""
    return (_JsonText if _PLAIN.fullmatch(path[-1]) else _JsonTextOfKey)(column, *_paths(path))


def _paths(path: Sequence[str]) -> tuple[Any, Any, Any, Any]:
    """The path as SQLite and PostgreSQL's `jsonpath` write it, as PostgreSQL's array of text, and in two
    parts: the path of all keys but the last, and that key."""
    quoted = [json.dumps(key, ensure_ascii=False) for key in path]
    return (
        literal(".".join(["$", *quoted])),
        literal("{" + ",".join(quoted) + "}"),
        literal(".".join(["$", *quoted[:-1]])),
        literal(path[-1]),
    )


def _sqlite(element: Any, compiler: Any, **options: Any) -> tuple[str, str]:
    column, path, *_ = element.clauses
    return compiler.process(column, **options), compiler.process(path, **options)


def _sqlite_of_key(element: Any, compiler: Any, value: str, **options: Any) -> str:
    column, _, _, parent, key = (compiler.process(part, **options) for part in element.clauses)
    entries = f"json_each(CASE WHEN json_valid({column}) THEN {column} END, {parent}) AS entry"
    return f"(SELECT {value} FROM {entries} WHERE entry.key = {key})"  # noqa: S608 - names of parameters


@compiles(_JsonNumber, "sqlite")
def _sqlite_number(element: Any, compiler: Any, **options: Any) -> str:
    column, path = _sqlite(element, compiler, **options)
    kind, value = f"json_type({column}, {path})", f"json_extract({column}, {path})"
    number = f"CASE WHEN {kind} IN ('integer', 'real') THEN CAST({value} AS REAL) END"
    return f"CASE WHEN json_valid({column}) THEN {number} END"


@compiles(_JsonNumberOfKey, "sqlite")
def _sqlite_number_of_key(element: Any, compiler: Any, **options: Any) -> str:
    value = "CASE WHEN entry.type IN ('integer', 'real') THEN CAST(entry.value AS REAL) END"
    return _sqlite_of_key(element, compiler, value, **options)


@compiles(_JsonText, "sqlite")
def _sqlite_text(element: Any, compiler: Any, **options: Any) -> str:
    column, path = _sqlite(element, compiler, **options)
    kind, value = f"json_type({column}, {path})", f"json_extract({column}, {path})"
    shown = f"CASE WHEN {kind} IN ('true', 'false') THEN {kind} ELSE CAST({value} AS TEXT) END"
    return f"CASE WHEN json_valid({column}) THEN {shown} END"


@compiles(_JsonTextOfKey, "sqlite")
def _sqlite_text_of_key(element: Any, compiler: Any, **options: Any) -> str:
    value = "CASE WHEN entry.type IN ('true', 'false') THEN entry.type ELSE CAST(entry.value AS TEXT) END"
    return _sqlite_of_key(element, compiler, value, **options)


@compiles(_JsonNumber, "postgresql")
def _postgresql_number(element: Any, compiler: Any, **options: Any) -> str:
    # One function call reads the row's value once: it may be compressed.
    column, path, *_ = (compiler.process(part, **options) for part in element.clauses)
    numbers = f"CAST({path} || ' ? (@.type() == \"number\")' AS jsonpath)"
    return f"CAST(jsonb_path_query_first({column}, {numbers}) AS double precision)"


@compiles(_JsonText, "postgresql")
def _postgresql_text(element: Any, compiler: Any, **options: Any) -> str:
    column, _, path, *_ = (compiler.process(part, **options) for part in element.clauses)
    return f"({column} #>> CAST({path} AS text[]))"
