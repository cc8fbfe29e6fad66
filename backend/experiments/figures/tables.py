"""A table of a study, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    title: str
    how: str
    """Protocol and rule of its scores, and where they were published."""
    source: Literal["name", "ours", "published"]
    unit: str = ""


@dataclass(frozen=True)
class TableCell:
    """A value, with its interval and its runs."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    """Runs that are in; None for a published score."""
    planned: int | None = None


@dataclass(frozen=True)
class TableRow:
    """A row: its label, and a cell for each further column."""

    label: str
    cells: Sequence[TableCell]


@dataclass(frozen=True)
class Table:
    """Columns, rows and the rows of the foot."""

    columns: Sequence[Column]
    rows: Sequence[TableRow]
    foot: Sequence[TableRow]
