"""Text of requests that every database can store."""

from typing import Any

from backend.specs.fields import Text
from backend.specs.problems import MAX_PROBLEMS

__all__ = ["UNSTORABLE", "Text", "is_storable", "unstorable_paths"]

_MAX_SHOWN_NAME = 100

_Place = tuple[str, "_Place | None"]
"""A key or number, and the place of the object or list that has it."""

UNSTORABLE = "must not contain null characters or unpaired surrogates"
"""Message about text that is not storable."""


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
