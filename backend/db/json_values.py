"""Values within a JSON column as SQL expressions that mean the same on SQLite and PostgreSQL (jsonb)."""

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


def json_number(column: Any, path: Sequence[str]) -> Any:
    """The number at `path`; NULL if there is none.

    Args:
        column: a JSON column.
        path: keys from the root, without quotes and braces.
    """
    return _JsonNumber(column, *_paths(path))


def json_text(column: Any, path: Sequence[str]) -> Any:
    """The text, number or flag at `path` as text; NULL if there is none. Arguments as of `json_number`."""
    return _JsonText(column, *_paths(path))


def _paths(path: Sequence[str]) -> tuple[Any, Any]:
    """The path as SQLite and PostgreSQL's `jsonpath` write it, and as PostgreSQL's array of text."""
    return literal("$." + ".".join(f'"{key}"' for key in path)), literal("{" + ",".join(path) + "}")


def _sqlite(element: Any, compiler: Any, **options: Any) -> tuple[str, str]:
    column, path, _ = element.clauses
    return compiler.process(column, **options), compiler.process(path, **options)


@compiles(_JsonNumber, "sqlite")
def _sqlite_number(element: Any, compiler: Any, **options: Any) -> str:
    column, path = _sqlite(element, compiler, **options)
    kind, value = f"json_type({column}, {path})", f"json_extract({column}, {path})"
    return f"CASE WHEN {kind} IN ('integer', 'real') THEN CAST({value} AS REAL) END"


@compiles(_JsonText, "sqlite")
def _sqlite_text(element: Any, compiler: Any, **options: Any) -> str:
    column, path = _sqlite(element, compiler, **options)
    kind, value = f"json_type({column}, {path})", f"json_extract({column}, {path})"
    return f"CASE WHEN {kind} IN ('true', 'false') THEN {kind} ELSE CAST({value} AS TEXT) END"


@compiles(_JsonNumber, "postgresql")
def _postgresql_number(element: Any, compiler: Any, **options: Any) -> str:
    # One function call reads the row's value once: it may be compressed.
    column, path, _ = (compiler.process(part, **options) for part in element.clauses)
    numbers = f"CAST({path} || ' ? (@.type() == \"number\")' AS jsonpath)"
    return f"CAST(jsonb_path_query_first({column}, {numbers}) AS double precision)"


@compiles(_JsonText, "postgresql")
def _postgresql_text(element: Any, compiler: Any, **options: Any) -> str:
    column, _, path = (compiler.process(part, **options) for part in element.clauses)
    return f"({column} #>> CAST({path} AS text[]))"
