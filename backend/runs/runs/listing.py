"""Which runs a list shows, and in which order: filters from the parameters of requests, and their checks."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from backend.platform.errors import Invalid
from backend.runs.runs import fields, filters, repository
from backend.runs.runs.conditions import has_setting, unrecorded_metrics
from backend.runs.runs.filters import All, Either, Node, Term, Word
from backend.specs.problems import quoted
from backend.specs.states import RunState

_DEMO = fields.resolve("demo")
_NO_DEMO = Term("demo", "=", False)
_ARCHIVED = fields.resolve("archived")
_NOT_ARCHIVED = Term("archived", "=", False)


def build_filter(
    *,
    ids: Sequence[str] = (),
    states: Sequence[RunState],
    algorithms: Sequence[str],
    environments: Sequence[str],
    tags: Sequence[str],
    group: str | None,
    project: str | None,
    archived: bool | None,
    search: str | None,
    filter_text: str | None,
) -> Node:
    """One filter from the parameters of a list, all of which must match.

    The demo run is left out unless the list is of ids without a filter, or the filter says which it wants.

    Raises:
        Invalid: the filter is invalid.
    """
    parts: list[Node] = [
        Either(tuple(Term(field, "=", value) for value in values))
        for field, values in (
            ("id", ids),
            ("state", states),
            ("algorithm", algorithms),
            ("environment", environments),
        )
        if values
    ]
    parts += [Term("tag", "=", tag) for tag in tags]
    if group is not None:
        parts.append(Term("group", "=", group))
    if project is not None:
        parts.append(Term("project", "=", project))
    if archived is not None:
        parts.append(Term("archived", "=", archived))
    if search:
        parts.append(Word(search))
    if filter_text:
        parts.append(parse_filter(filter_text))
    elif not ids:
        parts.append(_NO_DEMO)
    return All(tuple(parts))


def parse_filter(filter_text: str) -> Node:
    """A filter's tree, without the demo run unless the filter says which it wants.

    Raises:
        Invalid: the filter is invalid.
    """
    try:
        node = filters.parse(filter_text)
    except filters.BadFilter as error:
        raise Invalid.field("filter", str(error)) from None
    return node if _DEMO in filters.compared_fields(node) else All((node, _NO_DEMO))


def parse_selection(filter_text: str) -> Node:
    """A filter's tree that matches what `GET /runs` lists by the filter alone: no archived runs, unless it
    says which it wants.

    Raises:
        Invalid: the filter is invalid.
    """
    node = parse_filter(filter_text)
    return node if _ARCHIVED in filters.compared_fields(node) else All((node, _NOT_ARCHIVED))


def check_compared(session: Session, node: Node) -> None:
    """Reject a filter by a metric that no run has recorded, or a setting that none has: it was mistyped.

    Raises:
        Invalid: there is no such metric or setting.
    """
    for field in sorted(filters.compared_fields(node), key=lambda field: field.name):
        check_known(session, "filter", field)


def check_known(session: Session, parameter: str, field: fields.Field) -> None:
    """Reject a metric that no run has recorded, or a setting that none has, in a parameter of a request.

    Raises:
        Invalid: no run has this metric or setting.
    """
    if isinstance(field, fields.MetricField):
        for name in unrecorded_metrics(session, [field.name]):
            raise Invalid.field(parameter, f"no run has recorded the metric {quoted(name)}: check its name")
    if isinstance(field, fields.ConfigField) and field.kind == "any" and not has_setting(session, field):
        raise Invalid.field(parameter, fields.unknown(field.name))


def check_sort(session: Session, sort: str) -> None:
    """Reject a field that runs cannot be sorted by.

    Args:
        session: any session.
        sort: the field, without the sign of the direction.

    Raises:
        Invalid: it is unknown, or not sortable.
    """
    if sort in repository.SORTS:
        return
    try:
        field = fields.resolve(sort)
    except fields.UnknownField as error:
        raise Invalid.field("sort", str(error)) from None
    if isinstance(field, fields.RunField):
        raise Invalid.field("sort", f"runs cannot be sorted by {sort}")
    check_known(session, "sort", field)
