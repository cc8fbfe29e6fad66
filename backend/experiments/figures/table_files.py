"""A table of a study as a file: CSV, and LaTeX for a paper."""

import csv
import io

from backend.drawing.cells import as_cell
from backend.drawing.export_series import printable
from backend.drawing.latex import latex, latex_table
from backend.experiments.figures.tables import Column, Table, TableCell
from backend.experiments.figures.words import in_tables

_DETAILS = {
    "low": "lower bound (95 %)",
    "high": "upper bound (95 %)",
    "n": "runs in",
    "planned": "runs planned",
}
"""What a table's value may have besides, by field of `TableCell`."""


def table_csv(table: Table) -> str:
    """A table with the source of each column in its second row; after the columns of the page those of the
    intervals and numbers of runs. Published columns whose titles are not theirs alone have their protocol."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rows = [*table.rows, *table.foot]
    details = [
        (at, name, words)
        for at in range(1, len(table.columns))
        for name, words in _DETAILS.items()
        if any(getattr(row.cells[at - 1], name) is not None for row in rows)
    ]
    titles = [_title(column) for column in table.columns]
    of_details = [f"{table.columns[at].title}: {words}" for at, _, words in details]
    titles = [
        f"{title}, published, {column.how.partition(';')[0]}"
        if column.source == "published" and titles.count(title) > 1
        else title
        for column, title in zip(table.columns, titles, strict=True)
    ]
    writer.writerow(as_cell(printable(title)) for title in [*titles, *of_details])
    sources = [f"{column.source}: {column.how}".rstrip(": ") for column in table.columns]
    writer.writerow(as_cell(printable(source)) for source in [*sources, *("" for _ in details)])
    for row in rows:
        values = [cell.value for cell in row.cells]
        values += [getattr(row.cells[at - 1], name) for at, name, _ in details]
        cells = ["" if value is None else value for value in values]
        writer.writerow([as_cell(printable(row.label)), *cells])
    return text.getvalue()


def table_latex(table: Table, name: str, caption: str) -> str:
    """A table for a paper; it needs the package booktabs.

    Values are as on the page, with their intervals, and with the number of runs where not all are in.

    Args:
        table: the table.
        name: for references to it in the paper.
        caption: what it shows, as sentences. A mark at each column's title leads to its protocol, rule and
            source, which follow.
    """
    [first, *columns] = table.columns
    sources = dict.fromkeys((column.source, column.how) for column in columns)
    mark_of = {source: rf"\textsuperscript{{{number}}}" for number, source in enumerate(sources, 1)}
    titles = [latex(_title(column)) + mark_of[column.source, column.how] for column in columns]
    if any(cell.low is not None for row in (*table.rows, *table.foot) for cell in row.cells):
        caption += " In brackets: 95 % confidence intervals."
    notes = [
        mark + latex(f"{'published, ' if source == 'published' else ''}{how.removesuffix('.')}.")
        for (source, how), mark in mark_of.items()
    ]
    return latex_table(
        name,
        " ".join([latex(caption), *notes]),
        [latex(_title(first)), *titles],
        [
            [[latex(row.label), *(latex(_shown(cell)) for cell in row.cells)] for row in rows]
            for rows in (table.rows, table.foot)
        ],
    )


def _title(column: Column) -> str:
    return column.title if column.unit in ("", "score") else f"{column.title} ({column.unit})"


def _shown(cell: TableCell) -> str:
    if cell.value is None:
        return "–"
    text = in_tables(cell.value)
    if cell.low is not None and cell.high is not None:
        text += f" [{in_tables(cell.low)}, {in_tables(cell.high)}]"
    if cell.n is not None and cell.planned is not None and cell.n < cell.planned:
        text += f" ({cell.n} of {cell.planned} runs)"
    return text
