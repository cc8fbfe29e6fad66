"""Fields and filters of runs as SQL expressions and conditions, for repositories."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Text,
    and_,
    cast,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.orm import Session
from sqlalchemy.sql import operators

from backend.db import Run, Series, folding
from backend.db.json_values import json_number, json_text
from backend.db.run import is_whole
from backend.runs.runs.fields import ConfigField, Field, MetricField, RunField, resolve
from backend.runs.runs.filters import All, Either, Node, Not, Term, Word
from backend.specs.run_fields import EXTERNAL

_LATEST_EXTERNAL = 200
_LATEST_LABELLED = 1000


def condition(node: Node) -> ColumnElement[bool]:
    """The condition under which a row of `runs` matches `node`."""
    match node:
        case All(parts):
            return and_(true(), *map(condition, parts))
        case Either(parts):
            return or_(*map(condition, parts))
        case Not(part):
            # A comparison with NULL is unknown, and so is its negation.
            return not_(func.coalesce(condition(part), false()))
        case Word(text):
            places = [Run.name, Run.notes, Run.algorithm, Run.environment, Run.group]
            in_tags = folding.json_contains(cast(Run.tags, Text), text)
            return or_(*(folding.contains(place, text) for place in places), in_tags)
        case Term("tag", operator, value):
            # Exact, unlike LIKE on SQLite: removing the quoted tag from the JSON text changes it.
            tags: ColumnElement[str] = cast(Run.tags, Text)
            tag: ColumnElement[str] = literal(json.dumps(value))
            if operator == ":":
                wanted = folding.lowered(str(value))
                tags, tag = folding.folded_json(tags, wanted), literal(json.dumps(wanted))
            without = func.replace(tags, tag, "")
            return without == tags if operator == "!=" else without != tags
        case Term(name, operator, value):
            field = resolve(name)
            kind = None if isinstance(field, MetricField) else field.kind
            held: Any = expression(field)
            if isinstance(field, ConfigField):
                if kind == "any" and isinstance(value, str) and value.removeprefix("-").isdecimal():
                    return _equals_whole(field, operator, value)
                if kind == "any" and not isinstance(value, float):
                    held, kind = json_text(Run.spec, field.path), "text"
                if isinstance(value, bool):
                    value = "true" if value else "false"
            if operator == ":" and kind == "text" and isinstance(field, RunField):
                return folding.contains(held, str(value))
            if operator == ":" and kind in ("id", "text"):
                return folding.equals(held, str(value))
            if type(value) is int:
                value = literal(value, BigInteger())  # else PostgreSQL refuses one beyond the column's type
            compared: ColumnElement[bool] = _OPERATORS[operator](held, value)
            return compared


def _equals_whole(field: ConfigField, operator: str, digits: str) -> ColumnElement[bool]:
    """Whether a setting equals a whole number beyond 2^53, or with `!=` does not: compared as text, unless
    the setting is a float."""
    text, number = json_text(Run.spec, field.path), json_number(Run.spec, field.path)
    is_float = and_(or_(text.contains("."), text.contains("e")), number == float(digits))
    is_equal = func.coalesce(or_(text == digits, is_float), false())
    return not_(is_equal) if operator == "!=" else is_equal


def expression(field: Field) -> Any:
    """The value of a field of a row of `runs`; NULL if the run has none."""
    match field:
        case RunField(name):
            return Run.__mapper__.columns[name]
        case ConfigField():
            of_number = field.kind in ("number", "any")
            return (json_number if of_number else json_text)(Run.spec, field.path)
        case MetricField(name):
            column = {
                "last": Series.last_value,
                "mean": Series.mean_value,
                "min": Series.min_value,
                "max": Series.max_value,
            }[field.stored]
            of_run = select(column).where(Series.run_id == Run.id, Series.metric == name, Series.source == "")
            return of_run.correlate(Run).scalar_subquery()


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ":": operators.eq,
    "=": operators.eq,
    "!=": operators.is_distinct_from,
    ">": operators.gt,
    ">=": operators.ge,
    "<": operators.lt,
    "<=": operators.le,
}


def unrecorded_metrics(session: Session, names: Iterable[str]) -> list[str]:
    """The metrics among these that no run has recorded."""
    recorded = select(Series.id).where(Series.source == "").limit(1)
    return [name for name in names if session.scalar(recorded.where(Series.metric == name)) is None]


def has_setting(session: Session, setting: ConfigField) -> bool:
    """Whether an external run has this setting."""
    held = json_text(Run.spec, setting.path).is_not(None)
    return session.scalar(select(Run.id).where(Run.origin == EXTERNAL, held).limit(1)) is not None


def labels(session: Session) -> dict[str, list[str]]:
    """The groups, the projects and the tags of the latest runs, each in alphabetical order."""
    latest = session.execute(
        select(Run.group, Run.project, Run.tags)
        .where(Run.demo.is_(False))
        .order_by(Run.id.desc())
        .limit(_LATEST_LABELLED)
    ).all()
    groups = {group for group, _, _ in latest if group}
    projects = {project for _, project, _ in latest}
    tags = {tag for _, _, tags in latest for tag in tags}
    return {"group": sorted(groups), "project": sorted(projects), "tag": sorted(tags)}


def external_settings(session: Session) -> list[str]:
    """The names of the settings of the latest external runs, in alphabetical order."""
    specs = select(Run.spec).where(Run.origin == EXTERNAL).order_by(Run.id.desc()).limit(_LATEST_EXTERNAL)
    return sorted({name for spec in session.scalars(specs) if is_whole(spec) for name in spec["config"]})
