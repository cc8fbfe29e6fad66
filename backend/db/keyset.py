"""Keyset pagination: each page starts after the last row's key, so that pages stay correct while rows
change.

Hand-written, because lists sort by computed values that many rows lack, such as a setting or a metric;
sqlakeyset needs columns that are not null.
"""

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import BigInteger, ColumnElement, Select, and_, nulls_last, or_
from sqlalchemy.orm import InstrumentedAttribute, Session

M = TypeVar("M")
T = TypeVar("T")

MAX_PAGE_BYTES = 2 * 2**20
"""Size of the texts and JSON of a page's rows: a page has fewer rows than asked for if they are long."""
_ROWS = 50
"""Rows that are read together."""


class BadCursor(ValueError):
    """A cursor that does not belong to this list."""


@dataclass(frozen=True)
class Computed:
    """An expression to sort by, which may be NULL."""

    key: str
    """Identifies the expression in cursors."""
    expression: Any
    kind: type[Any]
    """Python type of the column's values."""


def page(
    session: Session,
    statement: Select[M],
    *,
    by: InstrumentedAttribute[Any] | Computed,
    row_id: InstrumentedAttribute[Any],
    descending: bool,
    limit: int,
    cursor: str | None,
) -> tuple[list[M], str | None]:
    """One page of `statement`'s entities, and the cursor of the next page; None after the last page.

    Args:
        session: any session.
        statement: selects entities, filtered but neither sorted nor limited.
        by: the column or expression to sort by; rows without a value come last in both directions.
        row_id: a unique column that breaks ties, in the same direction.
        descending: largest first.
        limit: maximum number of rows.
        cursor: the cursor from the previous page.

    Raises:
        BadCursor: the cursor does not belong to a list sorted like this.
    """
    if isinstance(by, Computed):
        return _computed_page(session, statement, by, row_id, descending, limit, cursor)
    if cursor is not None:
        statement = statement.where(_after(by, row_id, descending, *_decode(cursor, by, row_id, descending)))
    order = [by.desc(), row_id.desc()] if descending else [by.asc(), row_id.asc()]
    if by.property.columns[0].nullable:
        order.insert(0, by.is_(None))  # type: ignore[arg-type]
    chosen = statement.order_by(*order).limit(limit + 1).execution_options(yield_per=_ROWS)
    with session.scalars(chosen) as result:
        rows, has_more = _take_page(result, limit, _size_bytes)
    if not has_more:
        return rows, None
    last = rows[-1]
    return rows, _encode(getattr(last, by.key), getattr(last, row_id.key), by, descending)


def _take_page(result: Iterable[T], limit: int, size_bytes: Callable[[T], int]) -> tuple[list[T], bool]:
    """The first rows, as many as a page may have, and whether there are more; at least one."""
    rows: list[T] = []
    n_bytes = 0
    for row in result:
        n_bytes += size_bytes(row)
        if len(rows) == limit or (rows and n_bytes > MAX_PAGE_BYTES):
            return rows, True
        rows.append(row)
    return rows, False


def _size_bytes(row: Any) -> int:
    """About the size of a row's texts and JSON."""
    n_bytes = 0
    for value in vars(row).values():
        if isinstance(value, str):
            n_bytes += len(value.encode(errors="replace"))
        elif isinstance(value, dict | list):
            n_bytes += len(json.dumps(value, default=str))
    return n_bytes


def _computed_page(
    session: Session,
    statement: Select[M],
    by: Computed,
    row_id: InstrumentedAttribute[Any],
    descending: bool,
    limit: int,
    cursor: str | None,
) -> tuple[list[M], str | None]:
    held = by.expression
    if cursor is not None:
        value, last_id = _raw(cursor, by, descending)
        try:
            value = None if value is None else _storable(by.kind(value))
            last_id = _convert(last_id, row_id)
        except (ValueError, TypeError, OverflowError):
            raise BadCursor(cursor) from None
        statement = statement.where(_after(held, row_id, descending, value, last_id))
    # By its label, so that the database computes it once for a row.
    label = held.label("sorted_by")
    order = [label.desc(), row_id.desc()] if descending else [label.asc(), row_id.asc()]
    chosen = statement.add_columns(label).order_by(nulls_last(order[0]), order[1]).limit(limit + 1)
    with session.execute(chosen.execution_options(yield_per=_ROWS)) as result:
        rows, has_more = _take_page(
            ((row[0], row[1]) for row in result), limit, lambda pair: _size_bytes(pair[0])
        )
    if not has_more:
        return [row for row, _ in rows], None
    last, value = rows[-1]
    return [row for row, _ in rows], _encode(value, getattr(last, row_id.key), by, descending)


def _after(
    by: Any,
    row_id: InstrumentedAttribute[Any],
    descending: bool,
    value: Any,
    last_id: Any,
) -> ColumnElement[bool]:
    further = row_id < last_id if descending else row_id > last_id
    if value is None:
        return and_(by.is_(None), further)
    beyond = by < value if descending else by > value
    return or_(beyond, and_(by == value, further), by.is_(None))


def _encode(
    value: Any, row_id: str | int, by: InstrumentedAttribute[Any] | Computed, descending: bool
) -> str:
    plain = value.isoformat() if isinstance(value, datetime) else value
    key = [plain, row_id, by.key, descending]
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def _decode(
    cursor: str, by: InstrumentedAttribute[Any], row_id: InstrumentedAttribute[Any], descending: bool
) -> tuple[Any, Any]:
    value, last_id = _raw(cursor, by, descending)
    try:
        return _convert(value, by), _convert(last_id, row_id)
    except (ValueError, TypeError, OverflowError):
        raise BadCursor(cursor) from None


def _raw(cursor: str, by: InstrumentedAttribute[Any] | Computed, descending: bool) -> tuple[Any, Any]:
    """The value and the id of the last row, if the cursor is of a list in this order."""
    try:
        value, last_id, *order = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, RecursionError):
        raise BadCursor(cursor) from None
    if order != [by.key, descending]:
        raise BadCursor(cursor)
    return value, last_id


def _convert(value: Any, column: InstrumentedAttribute[Any]) -> Any:
    if value is None and column.property.columns[0].nullable:
        return None
    kind = column.type.python_type
    if kind is datetime:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None:
            raise ValueError("naive")
        return time.astimezone(UTC)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise TypeError("not a value of this column")
    # A value that the column cannot hold was never in a row.
    bits = 63 if isinstance(column.type, BigInteger) else 31
    if isinstance(value, int) and not -(2**bits) <= value < 2**bits:
        raise ValueError("out of range")
    return _storable(value)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        value.encode()
        if "\0" in value:
            raise ValueError("null byte")
    return value
