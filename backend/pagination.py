"""Lists: `limit` and `cursor` in, `items` and `next_cursor` out."""

from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel

T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=1_000, description="At most this many items.")]
Cursor = Annotated[str | None, Query(max_length=2_000, description="`next_cursor` of the page before.")]


class Page(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: str | None = None
    """Give it as `cursor` for the next page; null on the last one."""
