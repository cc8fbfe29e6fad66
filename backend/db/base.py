"""The declarative base: naming convention for constraints, UTC times and ids."""

from datetime import UTC, datetime
from itertools import cycle, islice
from secrets import randbelow
from typing import Annotated, Any, ClassVar

from pydantic import Strict
from sqlalchemy import DateTime, MetaData
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator
from ulid import ULID

from backend.db.checked_json import CheckedJson

ID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_last_characters = islice(cycle(ID_ALPHABET), randbelow(len(ID_ALPHABET)), None)


def new_id() -> str:
    """A new ULID: 26 characters that sort by creation time."""
    return str(ULID())


def new_run_id() -> str:
    """A new ULID whose last character, which decides the colour of the run, differs from those of the 31 runs
    that this process created before."""
    return new_id()[:-1] + next(_last_characters)


def storable(text: str) -> str:
    """Replace null bytes, which PostgreSQL cannot store."""
    return text.replace("\0", "\ufffd")


class UtcDateTime(TypeDecorator[datetime]):
    """A timezone-aware UTC time on every database (SQLite stores no time zone)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    @property
    def python_type(self) -> type[datetime]:
        """The Python type of a value."""
        return datetime

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Reject naive times; store UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("naive datetime")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return timezone-aware UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base class of every table."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UtcDateTime,
        dict[str, Any]: CheckedJson(dict[str, Any]),
        list[dict[str, Any]]: CheckedJson(list[dict[str, Any]]),
        list[str]: CheckedJson(list[str]),
        list[float]: CheckedJson(list[Annotated[float, Strict()]]),
        list[int]: CheckedJson(list[Annotated[int, Strict()]]),
        dict[str, str]: CheckedJson(dict[str, str]),
    }
