"""Texts as cells of CSV files, which spreadsheets open."""

import re

FORMULA = "^'*[ \t\r\n\u00a0\u3000]*[-=+@\t\r\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]"
"""Beginning of a text that a spreadsheet may take for a formula: apostrophes, white space, then a sign in any
of its widths."""
_FORMULA = re.compile(FORMULA)


def as_cell(text: str) -> str:
    """A text as a cell of a CSV file: what a spreadsheet would execute gets an apostrophe.

    `of_cell` takes it away again.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def of_cell(cell: str) -> str:
    """The text of a cell that `as_cell` has written."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
