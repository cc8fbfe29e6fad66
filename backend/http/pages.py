"""What the requests and answers of every resource share."""

from typing import Annotated, Generic, TypeVar

from fastapi import Path, Query
from pydantic import BaseModel
from starlette.requests import HTTPConnection

from backend.specs.fields import ULID

T = TypeVar("T")

Ulid = Annotated[str, Path(pattern=ULID)]
"""The id of a run, an episode, a checkpoint or an evaluation in an address."""

Limit = Annotated[int, Query(ge=1, le=1_000, description="Maximum number of items.")]
Cursor = Annotated[str | None, Query(max_length=2_000, description="`next_cursor` of the previous page.")]

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods of requests that change nothing."""
MAX_ADDRESS = 64
"""Longer than any address."""


def address_of(connection: HTTPConnection) -> str:
    """The client's address, as far as it is known."""
    return connection.client.host[:MAX_ADDRESS] if connection.client else ""


class Page(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: str | None = None
    """Pass it as `cursor` to get the next page; null on the last page."""
