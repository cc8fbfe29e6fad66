"""What the response bodies of several resources share."""

import math
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator

T = TypeVar("T")


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_finite)]
"""A measured number: null if there is none, or if it is not finite."""


class Page(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: str | None = None
    """Pass it as `cursor` to get the next page; null on the last page."""
