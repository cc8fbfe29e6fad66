"""What the bodies of several resources share."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from backend.specs.fields import Schema


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_finite)]
"""A measured number: null if there is none, or if it is not finite."""


Id = Annotated[str, Field(examples=["01JD3QZ6W9K0Y5T8H2V4B7N1XC"])]
"""An id."""


@dataclass(frozen=True)
class DescribedBy:
    """Annotates an object whose fields a service validates: the OpenAPI document shows it as this model."""

    model: type[BaseModel]

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema of the model."""
        return handler(self.model.__pydantic_core_schema__)


class Page(Schema):
    """One page of a list: a subclass adds its `items`."""

    next_cursor: str | None = Field(
        default=None, examples=["eyJpZCI6ICIwMUpEM1FaNlc5SzBZNVQ4SDJWNEI3TjFYQyJ9"]
    )
    """Pass it as `cursor` to get the next page; null on the last page."""
