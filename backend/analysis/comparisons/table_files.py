"""The tables of a comparison as files: CSV, and LaTeX for a paper."""

import csv
import io
from typing import Literal

from backend.analysis.comparisons.schemas import Comparison, EstimateOut
from backend.drawing.cells import as_cell
from backend.drawing.export_series import printable
from backend.drawing.latex import latex, latex_table

TableName = Literal["scores", "differences"]
"""The scores of all groups, or how they differ from the baselines, or from each other."""

_Cell = str | int | float | EstimateOut | None
_BOUNDS = ("lower bound (95 %)", "upper bound (95 %)")
_SCORES = {"training": "mean of the last 100 training returns", "evaluation": "latest evaluation"}


def comparison_csv(comparison: Comparison, table: TableName) -> str:
    """One row a group or pair; numbers have all their digits, and their bounds follow them."""
    titles, rows = _TABLES[table](comparison)
    has_bounds = [any(isinstance(row[at], EstimateOut) for row in rows) for at in range(len(titles))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        as_cell(printable(cell))
        for title, bounded in zip(titles, has_bounds, strict=True)
        for cell in (title, *(f"{title}: {bound}" for bound in _BOUNDS if bounded))
    )
    for row in rows:
        cells: list[str | int | float | None] = []
        for cell, bounded in zip(row, has_bounds, strict=True):
            if isinstance(cell, EstimateOut):
                cells += [cell.value, cell.low, cell.high]
            else:
                cells += [as_cell(printable(cell)) if isinstance(cell, str) else cell]
                cells += [None, None] if bounded else []
        writer.writerow("" if cell is None else cell for cell in cells)
    return text.getvalue()


def comparison_latex(comparison: Comparison, table: TableName) -> str:
    """A table for a paper, with four digits and a caption."""
    titles, rows = _TABLES[table](comparison)
    about = f"{comparison.shared_name}. " if comparison.shared_name else ""
    caption = f"{about}Scores ({_SCORES[comparison.score]}) {_where(comparison)}."
    return latex_table(
        f"comparison-{table}",
        latex(f"{caption} {comparison.method}."),
        [latex(title) for title in titles],
        [[[latex(_shown(cell)) for cell in row] for row in rows]],
    )


def _scores(comparison: Comparison) -> tuple[list[str], list[list[_Cell]]]:
    several = len({group.environment for group in comparison.groups}) > 1
    titles = ["Config", *(["Environment"] if several else []), "n", "Median", "IQM"]
    rows: list[list[_Cell]] = [
        [
            group.name,
            *([group.environment] if several else []),
            group.n,
            group.median,
            group.iqm and group.iqm.value,
        ]
        for group in comparison.groups
    ]
    return titles, rows


def _differences(comparison: Comparison) -> tuple[list[str], list[list[_Cell]]]:
    names = {group.id: group.name for group in comparison.groups}
    sizes = {group.id: group.n for group in comparison.groups}
    titles = ["A", "B", "n", "Difference", "P(A > B)", "p (Holm)"]
    rows: list[list[_Cell]] = [
        [
            names[pair.a],
            names[pair.b],
            f"{sizes[pair.a]} + {sizes[pair.b]}",
            pair.difference,
            pair.probability.value,
            pair.p_adjusted,
        ]
        for pair in comparison.improvements
    ]
    return titles, rows


_TABLES = {"scores": _scores, "differences": _differences}


def _where(comparison: Comparison) -> str:
    if not comparison.lengths:
        return "at the last step of each run"
    steps = [f"{length.at_agent_steps:,}" for length in comparison.lengths]
    return f"at {' and '.join(dict.fromkeys(steps))} agent steps"


def _shown(cell: _Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, EstimateOut):
        bounds = (
            None if cell.low is None or cell.high is None else f" [{_shown(cell.low)}, {_shown(cell.high)}]"
        )
        return f"{_shown(cell.value)}{bounds or ''}"
    return f"{cell:.4g}".replace("-", "−") if isinstance(cell, float) else str(cell)
