"""JSON columns whose values have a declared form: damage is read as an empty value, so that one damaged row
breaks no list."""

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import JSON
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeDecorator, TypeEngine

DAMAGED = "its row in the database is damaged"
"""What a list says of a row whose values cannot be what this service has written."""


class UnreadableSpec(dict[str, Any]):
    """What is shown in place of a specification that cannot be read here. It must not be stored: what is
    stored may be what a person, or another version, can still read.

    Args:
        shown: what lists show of it, with the parts that every specification has.
        reason: why it cannot be read.
    """

    def __init__(self, shown: Mapping[str, Any], reason: str) -> None:
        super().__init__(shown)
        self.reason = reason

    @property
    def refusal(self) -> str:
        """The answer to what cannot be done with it."""
        return f"{self.reason}: it can be read, exported and deleted, but nothing else"


@cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


class CheckedJson(TypeDecorator[Any]):
    """JSON of one form. What is no JSON or has another form, which only damage leaves, is read as `empty`.

    Args:
        form: a type as pydantic reads it. One that may be None has None as its empty value, a list an empty
            list, and any other an empty object.
    """

    impl = JSON
    cache_ok = True
    should_evaluate_none = True
    """As of JSON: None is stored as the JSON value null."""

    def __init__(self, form: Any) -> None:
        super().__init__()
        self.form = form

    @property
    def empty(self) -> Any:
        """What stands for a damaged value."""
        if NoneType in get_args(self.form):
            return None
        return [] if get_origin(self.form) is list else {}

    def is_damaged(self, value: Any) -> bool:
        """Whether a stored value has another form."""
        try:
            _adapter(self.form).validate_python(value)
        except ValidationError:
            return True
        return False

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Read a stored value: the JSON as it is, or `empty`."""
        parse = self.impl_instance.result_processor(dialect, coltype)

        def read(stored: Any) -> Any:
            if stored is None:
                return None
            try:
                value = stored if parse is None else parse(stored)
            except (ValueError, RecursionError):
                return self.empty
            return self.empty if self.is_damaged(value) else value

        return read

    def coerce_compared_value(self, op: OperatorType | None, value: Any) -> TypeEngine[Any]:
        """Compare parts of the value as parts of JSON are compared."""
        return self.impl_instance.coerce_compared_value(op, value)
