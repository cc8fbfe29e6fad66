"""A table of a study as a file: CSV, and LaTeX for a paper."""

import csv
import io

from backend.figures.export_series import printable
from backend.studies.reduction import in_tables
from backend.studies.tables import Column, Table, TableCell
from backend.text import as_cell

_DETAILS = {
    "low": "lower bound (95 %)",
    "high": "upper bound (95 %)",
    "n": "runs in",
    "planned": "runs planned",
}
"""What a table's value may have besides, by field of `TableCell`."""
_COMMANDS = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "−": "$-$", "×": r"$\times$", "∞": r"$\infty$", "ₑ": r"\textsubscript{e}",
} | {character: rf"\{character}" for character in "#$%&_{}"}  # fmt: skip
"""What LaTeX takes for something else, and what its usual fonts lack."""


def table_csv(table: Table) -> str:
    """A table with the source of each column in its second row; after the columns of the page those of the
    intervals and numbers of runs."""
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
    writer.writerow(as_cell(printable(title)) for title in [*titles, *of_details])
    sources = [f"{column.source}: {column.how}".rstrip(": ") for column in table.columns]
    writer.writerow(as_cell(printable(source)) for source in [*sources, *("" for _ in details)])
    for row in rows:
        values = [cell.value for cell in row.cells]
        values += [getattr(row.cells[at - 1], name) for at, name, _ in details]
        cells = ["" if value is None else value for value in values]
        writer.writerow([as_cell(printable(row.label)), *cells])
    return text.getvalue()


def table_latex(table: Table, caption: str) -> str:
    """A table for a paper, with the values that the page shows; it needs the package booktabs.

    Args:
        table: the table.
        caption: what it shows, as sentences. The protocol, rule and source of its columns follow.
    """
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_latex(' '.join([caption, *_notes(table)]))}}}",
        rf"  \begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"    \toprule",
        _latex_row([_title(column) for column in table.columns]),
    ]
    for rows in (table.rows, table.foot):
        if rows:
            lines.append(r"    \midrule")
            lines += [_latex_row([row.label, *map(_shown, row.cells)]) for row in rows]
    lines += [r"    \bottomrule", r"  \end{tabular}", r"\end{table}", ""]
    return "\n".join(lines)


def _title(column: Column) -> str:
    return column.title if column.unit in ("", "score") else f"{column.title} ({column.unit})"


def _notes(table: Table) -> list[str]:
    """Protocol, rule and source of the columns, those that have the same in one sentence."""
    titles: dict[tuple[str, str], list[str]] = {}
    for column in table.columns[1:]:
        titles.setdefault((column.source, column.how), []).append(column.title)
    return [
        f"{', '.join(names)}: {'published, ' if source == 'published' else ''}{how.removesuffix('.')}."
        for (source, how), names in titles.items()
    ]


def _shown(cell: TableCell) -> str:
    if cell.value is None:
        return "–"
    if cell.low is None or cell.high is None:
        return in_tables(cell.value)
    return f"{in_tables(cell.value)} [{in_tables(cell.low)}, {in_tables(cell.high)}]"


def _latex_row(texts: list[str]) -> str:
    return f"    {' & '.join(map(_latex, texts))} \\\\"


def _latex(text: str) -> str:
    """A text in which nothing is a command: nor is a bracket or a star after the end of the row before."""
    line = printable(text).replace("\n", " ")
    escaped = "".join(_COMMANDS.get(character, character) for character in line)
    return f"{{}}{escaped}" if escaped[:1] in ("[", "*") else escaped
