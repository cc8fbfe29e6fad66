"""Texts compared whatever their case, in every script, equally on both databases.

SQLite's `lower` knows ASCII only, PostgreSQL's what the locale of the database knows. For every other letter
of the searched text, its capitals in the column are therefore replaced by that letter.
"""

import json
from typing import Any

from sqlalchemy import ColumnElement, func

MAX_FOLDED = 64
"""Different letters of a searched text whose capitals are replaced; of more, the first ones in Unicode."""


_OTHER_FORMS = {"σ": "ς"}
"""Letters that have two small forms."""


def lowered(text: str) -> str:
    """A text in lower case, letter by letter: of the same length, and each letter in one form."""
    lower = (character.lower() if len(character.lower()) == 1 else character for character in text)
    return "".join(lower).translate({ord(other): letter for letter, other in _OTHER_FORMS.items()})


def contains(held: Any, text: str) -> ColumnElement[bool]:
    """Whether a column has a text in it."""
    text = lowered(text)
    return _contains(_fold(held, text, json_text=False), text)


def json_contains(held: Any, text: str) -> ColumnElement[bool]:
    """Whether a column of JSON as text, in which letters outside ASCII are escaped, has a text in it."""
    text = lowered(text)
    return _contains(_fold(held, text, json_text=True), _escaped(text))


def equals(held: Any, text: str) -> ColumnElement[bool]:
    """Whether a column has this text."""
    text = lowered(text)
    same: ColumnElement[bool] = _fold(held, text, json_text=False) == text
    return same


def folded_json(held: Any, text: str) -> ColumnElement[str]:
    """A column of JSON as text, folded for a comparison with `text`, which is in lower case."""
    return _fold(held, text, json_text=True)


def _contains(held: ColumnElement[str], text: str) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = held.contains(text, autoescape=True)
    return condition


def _fold(held: Any, text: str, *, json_text: bool) -> ColumnElement[str]:
    folded: ColumnElement[str] = func.lower(held)
    for letter in sorted({character for character in text if not character.isascii()})[:MAX_FOLDED]:
        for capital in sorted({letter.upper(), letter.title(), *_OTHER_FORMS.get(letter, "")} - {letter}):
            if len(capital) == 1:
                old, new = (_escaped(capital), _escaped(letter)) if json_text else (capital, letter)
                folded = func.replace(folded, old, new)
    return folded


def _escaped(text: str) -> str:
    """A text inside a string of JSON, as it is stored."""
    return json.dumps(text)[1:-1]
