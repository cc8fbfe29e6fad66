"""Pages of a sorted list that stay right while rows come and go: each goes on after the last row's key."""

import base64
import json
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import BigInteger, ColumnElement, Select, and_, or_
from sqlalchemy.orm import InstrumentedAttribute, Session

M = TypeVar("M")


class BadCursor(ValueError):
    """A cursor that no page of this list ended with."""


def page(
    session: Session,
    statement: Select[M],
    *,
    by: InstrumentedAttribute[Any],
    row_id: InstrumentedAttribute[Any],
    descending: bool,
    limit: int,
    cursor: str | None,
) -> tuple[list[M], str | None]:
    """One page of `statement`'s entities, and the cursor of the next page, none after the last.

    Args:
        session: any session.
        statement: selects entities, filtered but neither sorted nor limited.
        by: the column to sort by; rows without a value come last in both directions.
        row_id: a unique column that settles ties, in the same direction.
        descending: largest first.
        limit: at most this many rows.
        cursor: from the page before.

    Raises:
        BadCursor: not a cursor of a list sorted so.
    """
    if cursor is not None:
        statement = statement.where(_after(by, row_id, descending, *_decode(cursor, by, row_id)))
    order = [by.desc(), row_id.desc()] if descending else [by.asc(), row_id.asc()]
    if by.property.columns[0].nullable:
        order.insert(0, by.is_(None))  # type: ignore[arg-type]
    rows = list(session.scalars(statement.order_by(*order).limit(limit + 1)))
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], _encode(getattr(last, by.key), getattr(last, row_id.key))


def _after(
    by: InstrumentedAttribute[Any],
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


def _encode(value: Any, row_id: str | int) -> str:
    plain = value.isoformat() if isinstance(value, datetime) else value
    return base64.urlsafe_b64encode(json.dumps([plain, row_id]).encode()).decode().rstrip("=")


def _decode(
    cursor: str, by: InstrumentedAttribute[Any], row_id: InstrumentedAttribute[Any]
) -> tuple[Any, Any]:
    try:
        value, last_id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return _typed(value, by), _typed(last_id, row_id)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise BadCursor(cursor) from None


def _typed(value: Any, column: InstrumentedAttribute[Any]) -> Any:
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
        raise TypeError("another column's value")
    # What the column cannot hold was never a row's value.
    bits = 63 if isinstance(column.type, BigInteger) else 31
    if isinstance(value, int) and not -(2**bits) <= value < 2**bits:
        raise ValueError("out of range")
    if isinstance(value, str):
        value.encode()
        if "\0" in value:
            raise ValueError("null byte")
    return value
