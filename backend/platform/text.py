"""Text of requests that every database can store."""

import re
from typing import Any

from backend.specs.fields import Text
from backend.specs.problems import MAX_PROBLEMS

__all__ = ["FORMULA", "UNSTORABLE", "Text", "as_cell", "is_storable", "of_cell", "unstorable_paths"]

FORMULA = "^'*[ \t\r\n\u00a0\u3000]*[-=+@\t\r\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]"
"""Beginning of a text that a spreadsheet may take for a formula: apostrophes, white space, then a sign in any
of its widths."""
_FORMULA = re.compile(FORMULA)


_MAX_SHOWN_NAME = 100

_Place = tuple[str, "_Place | None"]
"""A key or number, and the place of the object or list that has it."""

UNSTORABLE = "must not contain null characters or unpaired surrogates"
"""Message about text that is not storable."""


def as_cell(text: str) -> str:
    """A text as a cell of a CSV file: what a spreadsheet would execute gets an apostrophe.

    `of_cell` takes it away again.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def of_cell(cell: str) -> str:
    """The text of a cell that `as_cell` has written."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def is_storable(text: str) -> bool:
    """Whether `text` has no null byte and no lone surrogate, which has no UTF-8 form."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def unstorable_paths(value: Any) -> list[str]:
    """Dotted paths of the first strings in JSON, keys included, that cannot be stored."""
    places: list[_Place] = []
    # Not recursive: a request may be nested deeper than the stack. Paths become text only where needed.
    waiting: list[tuple[_Place | None, Any]] = [(None, value)]
    while waiting and len(places) < MAX_PROBLEMS:
        place, part = waiting.pop()
        if isinstance(part, str) and not is_storable(part):
            places.append(place or ("", None))
        elif isinstance(part, dict):
            places += [(key, place) for key in part if not is_storable(key)]
            waiting += [((key, place), inner) for key, inner in part.items()]
        elif isinstance(part, list):
            waiting += [((str(i), place), inner) for i, inner in enumerate(part)]
    return sorted(map(_path, places[:MAX_PROBLEMS]))


def _path(place: _Place | None) -> str:
    """A place as text; of long names only the start."""
    names = []
    while place is not None:
        name, place = place
        names.append(name[:_MAX_SHOWN_NAME])
    return ".".join(reversed(names))
