"""Reads what a script logs. Nothing here but `pairs_of` raises, whatever the objects are and do.

A value that can be read as a number becomes that number. What cannot be read is named by its kind, so that it
can be counted and reported once for each kind.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from callboard.handlers import pass_on
from callboard.limits import MAX_STEPS

_MAX_SHOWN = 80
_MAX_NESTED = 8
"""Maximum depth of values in lists and arrays of one element."""
_MAX_TEXT = 1_000
"""Maximum number of characters of a text that is read as a number."""


class Number(NamedTuple):
    """A value as a number."""

    value: float | None
    """None if it cannot be read as one."""
    kind: str = ""
    """What it is instead, or what was changed; empty if it is a number that is kept as given."""


class Steps(NamedTuple):
    """A number of steps."""

    value: int | None
    """None if it cannot be read as a whole number that the server accepts."""
    kind: str = ""
    """What it is instead, or what was changed; empty if it is kept as given."""


def as_number(value: Any) -> Number:
    """A value as a float: a number, a text of one, or an array or list with one element of these."""
    if type(value) is float:
        return Number(value)
    try:
        return _number(value, _MAX_NESTED)
    except Exception as error:
        pass_on(error)
        return Number(None, kind_of(value))


def _number(value: Any, n_nested: int) -> Number:
    if is_masked(value):
        return Number(None, "masked")
    if isinstance(value, complex):
        return Number(value.real) if value.imag == 0 else Number(None, "complex")
    if isinstance(value, int):
        return _of_int(operator.index(value))
    if isinstance(value, (str, bytes, bytearray)):
        return _of_text(value)
    if isinstance(value, (list, tuple)):
        if len(value) != 1 or n_nested == 0:
            return Number(None, f"{kind_of(value)} of {len(value):,}" if len(value) != 1 else "nested list")
        return _number(value[0], n_nested - 1)
    if hasattr(value, "requires_grad") and hasattr(value, "detach"):
        value = value.detach()  # of torch: one that requires a gradient warns, or raises, otherwise
    if hasattr(value, "dtype") and hasattr(value, "item"):
        try:
            element = value.item()
        except Exception as error:
            pass_on(error)
            return Number(None, _array_kind(value))  # it has more than one element, or none
        if type(element) in (float, int, bool, complex, str, bytes):
            return _number(element, n_nested)
    try:
        return Number(float(value))
    except OverflowError:
        return Number(float("inf") if value > 0 else float("-inf"), "a number too large for a float")


def is_masked(value: Any) -> bool:
    """Whether an array has no value at one of its places, whose content is arbitrary."""
    # Not imported here, which a signal may interrupt: whoever has made such an array has imported it.
    ma: Any = sys.modules.get("numpy.ma")
    return isinstance(value, getattr(ma, "MaskedArray", ())) and bool(ma.is_masked(value))


def _of_int(value: int) -> Number:
    try:
        return Number(float(value))
    except OverflowError:
        return Number(float("inf") if value > 0 else float("-inf"), "a number too large for a float")


def _of_text(value: str | bytes | bytearray) -> Number:
    kind = "text" if isinstance(value, str) else "bytes"
    is_pythons = "_" in value if isinstance(value, str) else b"_" in value  # a date or a word elsewhere
    if len(value) > _MAX_TEXT or is_pythons:
        return Number(None, kind)
    try:
        return Number(float(value if isinstance(value, str) else bytes(value)))
    except ValueError:
        return Number(None, kind)


def _array_kind(value: Any) -> str:
    try:
        return f"{kind_of(value)} of the shape {tuple(value.shape)}"[:_MAX_SHOWN]
    except Exception as error:
        pass_on(error)
        return kind_of(value)


def as_steps(value: Any, *, minimum: int = 0) -> Steps:
    """A value as a whole number of steps; what is behind a decimal point is cut off."""
    if type(value) is int and minimum <= value <= MAX_STEPS:
        return Steps(value)
    try:
        if is_masked(value):
            return Steps(None, "masked")
        whole: int = operator.index(value)
    except Exception as error:
        pass_on(error)
        number, kind = as_number(value)
        if number is None:
            return Steps(None, kind)
        if number != number or number in (float("inf"), float("-inf")):
            return Steps(None, "NaN" if number != number else "infinite")
        whole = int(number)
        if whole != number and minimum <= whole <= MAX_STEPS:
            return Steps(whole, "a fraction")
    if whole < minimum:
        return Steps(None, "negative" if whole < 0 else "zero")
    if whole > MAX_STEPS:
        return Steps(None, f"above {MAX_STEPS:,}")
    return Steps(whole)


def as_text(value: Any) -> str:
    """A value as text; the name of its type if it has none."""
    if type(value) is str:
        return value
    try:
        text = str(value)
        return str.__str__(text)  # of a subclass, too
    except Exception as error:
        pass_on(error)
        return f"<{kind_of(value)}>"


def shown(value: Any) -> str:
    """A short form for messages."""
    try:
        text = str.__str__(repr(value))
    except Exception as error:
        pass_on(error)
        return f"<{kind_of(value)}>"
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


def kind_of(value: Any) -> str:
    """The name of a type."""
    if value is None:
        return "None"
    try:
        return str.__str__(type(value).__name__)[:_MAX_SHOWN]
    except Exception as error:
        pass_on(error)
        return "object"


def pairs_of(values: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """The items of a mapping, up to the first that cannot be read. Ends with an exception then."""
    for name in iter(values.keys()):
        yield name, values[name]
