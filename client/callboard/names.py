"""Names of metrics and settings: as given, if they can be stored; no two names become one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable

from callboard.limits import MAX_METRIC_CHARACTERS, MAX_PROJECT

_UNSTORABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, separators of lines, and lone surrogates. A name may have any other character."""
_PROJECT = re.compile(r'[^\s."\\]([^"\\]*[^\s"\\])?')
_DIGITS = 16
_FORMULA = re.compile("'*[ \t\r\n\u00a0\u3000]*[-=+@\t\r\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]")


def is_storable(text: str) -> bool:
    """Whether a line of text has only characters that the server stores in names and tags."""
    return _UNSTORABLE.search(text) is None


def stored_name(given: str, most: int) -> str:
    """The name itself if it can be stored; else a storable one that ends in `~` and a checksum of it."""
    name = _UNSTORABLE.sub("\ufffd", given)
    if name == given and 0 < len(name) <= most:
        return name
    return with_checksum(name, given, most)


def with_checksum(name: str, given: str, most: int) -> str:
    """A name, cut if it is too long, with a checksum of what was given."""
    digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name[: most - _DIGITS - 1]}~{digest}"


def is_project(text: str) -> bool:
    """Whether the server stores a text as the name of a project."""
    return _PROJECT.fullmatch(text) is not None and is_storable(text) and len(text) <= MAX_PROJECT


def project_of(text: str) -> str | None:
    """The project of the server for that of another tool: without what no name of a project has; None if
    nothing is left."""
    kept = _UNSTORABLE.sub("", text.replace('"', "").replace("\\", "/")).strip().lstrip(".").lstrip()
    return kept[:MAX_PROJECT].rstrip() or None


def as_cell(text: str) -> str:
    """A text as the server writes it into CSV files: an apostrophe before what spreadsheets would execute."""
    return f"'{text}" if _FORMULA.match(text) else text


def of_cell(cell: str) -> str:
    """The text of a cell of a CSV file of the server."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


class Names:
    """The stored names of a run, by what was given. If two would get one name, the first of them keeps it."""

    def __init__(self, most: int = MAX_METRIC_CHARACTERS) -> None:
        self._most = most
        self._stored: dict[Hashable, str] = {}
        self._taken: set[str] = set()

    def stored(self, given: Hashable) -> str:
        """The name under which a text, or another object, is stored."""
        key = given if type(given) is str else (type(given), given)
        name = self._stored.get(key)
        if name is None:
            name = stored_name(str(given), self._most)
            while name in self._taken:
                name = with_checksum(name, repr((name, key)), self._most)
            self._taken.add(name)
            self._stored[key] = name
        return name
