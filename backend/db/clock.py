"""The database's clock, the one clock that all hosts share.

Separate from the tables, because statements of every resource use it.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from backend.db.base import UtcDateTime


class utc_now(FunctionElement[datetime]):  # noqa: N801 - reads as the SQL function it is
    """The time at which the statement runs (not the start of its transaction), in UTC."""

    type = UtcDateTime()
    inherit_cache = True
    name = "utc_now"


@compiles(utc_now, "sqlite")
def _sqlite(element: utc_now, compiler: SQLCompiler, **kw: Any) -> str:
    # The format in which SQLAlchemy stores times, so that they compare as text.
    return "(strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')"


@compiles(utc_now, "postgresql")
def _postgresql(element: utc_now, compiler: SQLCompiler, **kw: Any) -> str:
    return "clock_timestamp()"


def database_now(session: Session) -> datetime:
    """The current time of the database's clock."""
    return session.scalars(select(utc_now())).one()
