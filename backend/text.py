"""Text of requests that every database can store."""

from typing import Any

from backend.specs.fields import Text

__all__ = ["UNSTORABLE", "Text", "is_storable", "unstorable_paths"]


UNSTORABLE = "must not contain null characters or unpaired surrogates"
"""Message about text that is not storable."""


def is_storable(text: str) -> bool:
    """Whether `text` has no null byte and no lone surrogate, which has no UTF-8 form."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def unstorable_paths(value: Any) -> list[str]:
    """Dotted paths of the strings in JSON, keys included, that cannot be stored."""
    found = []
    waiting: list[tuple[str, Any]] = [
        ("", value)
    ]  # not recursive: a request may be nested deeper than the stack
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, str) and not is_storable(part):
            found.append(path)
        elif isinstance(part, dict):
            inside = {key: f"{path}.{key}" if path else key for key in part}
            found += [inside[key] for key in part if not is_storable(key)]
            waiting += [(inside[key], inner) for key, inner in part.items()]
        elif isinstance(part, list):
            waiting += [(f"{path}.{i}" if path else str(i), inner) for i, inner in enumerate(part)]
    return sorted(found)
