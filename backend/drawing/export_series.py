"""What a figure draws, as series of rows: for CSV, and for a script that redraws it from the CSV.

Each trace is a series; the edges of a band and the outline of a range belong to the line that they surround,
as its `low` and `high`.
"""

import csv
import html
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np

from backend.drawing.cells import as_cell
from backend.drawing.figure import Figure

Cell = float | str | None
Cells = list[Cell]

COLUMNS = ("number", "series", "kind", "run", "metric", "source", "x", "y", "low", "high", "n", "text")
"""Of the CSV."""
_LINES = ("scatter", "scattergl")
TYPES = (*_LINES, "bar")
"""Traces that can be exported."""


@dataclass(frozen=True)
class DrawnSeries:
    """One series of a figure: rows, and the properties of its trace."""

    number: int
    """Of the trace in the figure."""
    label: str
    """Legend entry, as plain text."""
    kind: str
    """What it shows: `line`, `range`, `points`, `evaluations`, `marks`, `reference`, … as figures name it."""
    x: Cells
    y: Cells
    trace: dict[str, Any]
    """Its properties, by Plotly's names."""
    low: Cells = field(default_factory=list)
    """Lower edge of its band; empty for none. So is `high`."""
    high: Cells = field(default_factory=list)
    n: Cells = field(default_factory=list)
    """Number of values, or of seeds, at each row."""
    texts: Cells = field(default_factory=list)
    band: dict[str, Any] = field(default_factory=dict)
    """Properties of the trace that fills its band."""
    is_area: bool = False
    """Whether x and y are the corners of an area."""

    @property
    def meta(self) -> dict[str, Any]:
        """`meta` of its trace; empty without one."""
        return self.trace.get("meta") or {}

    def rows(self) -> Iterable[list[str]]:
        """The rows of the series in the CSV."""
        meta = self.meta
        names = [self.label, self.kind, *(str(meta.get(name) or "") for name in ("run", "metric", "source"))]
        columns = (self.x, self.y, self.low, self.high, self.n, self.texts)
        for at in range(len(self.x)):
            cells = (column[at] if column else None for column in columns)
            yield [str(self.number), *map(as_cell, names), *map(_write, cells)]


def drawn_series(figure: Figure) -> list[DrawnSeries]:
    """The series of a figure; those without rows stand for a legend entry.

    Raises:
        ValueError: it has a trace of a type that is not one of `TYPES`.
    """
    series: list[DrawnSeries] = []
    bands: list[DrawnSeries] = []
    stacks: dict[Cell, float] = {}
    previous: DrawnSeries | None = None
    for number, trace in enumerate(figure.data):
        if trace["type"] not in TYPES:
            raise ValueError(f"a figure with a trace of type {trace['type']} has no export")
        drawn = _series(number, trace)
        fill = trace.get("fill")
        if fill == "tonexty" and previous is not None and previous.x == drawn.x:
            series.remove(previous)
            bands.append(replace(drawn, y=[], low=previous.y, high=drawn.y, band=trace))
        elif fill == "toself":
            unfolded = _unfold(drawn)
            (bands if unfolded.low else series).append(unfolded)
        elif drawn.x or drawn.kind != "partial":
            series.append(_stack(drawn, stacks) if "stackgroup" in trace else drawn)
        previous = drawn
    for band in bands:
        place = next((at for at, line in enumerate(series) if _surrounds(band, line)), None)
        if place is None:
            series.append(replace(band, y=[None] * len(band.x)))
        else:
            series[place] = _with_band(series[place], band)
    return sorted(series, key=lambda drawn: drawn.number) + _reference_lines(figure)


def as_csv(figure: Figure) -> str:
    """What the figure draws, one row a point.

    Raises:
        ValueError: as for `drawn_series`.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for drawn in drawn_series(figure):
        writer.writerows(drawn.rows())
    return text.getvalue()


def plain(text: Any) -> str:
    """Text without Plotly's markup."""
    lines = re.sub(r"<br\s*/?>", "\n", str(text))
    return printable(html.unescape(re.sub(r"</?(b|i|em|sub|sup|span|a)\b[^>]*>", "", lines)))


def printable(text: str) -> str:
    """Text without control characters, which no PDF, SVG or terminal should get."""
    return re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", " ", text)


def _series(number: int, trace: dict[str, Any]) -> DrawnSeries:
    meta = trace.get("meta") or {}
    x, y = _cells(trace.get("x", [])), _cells(trace.get("y", []))
    is_horizontal = trace["type"] == "bar" and trace.get("orientation") == "h"
    if is_horizontal:
        x, y = y, x
    kind = meta.get("kind") or ("bars" if trace["type"] == "bar" else "points")
    if kind == "legend" or all(value is None for value in x):
        x = y = []
    low, high = _error_bars(y, trace.get("error_x" if is_horizontal else "error_y") or {})
    n = _column(meta["n"] if "n" in meta else trace.get("customdata"), len(x))
    texts = _column(trace.get("text"), len(x))
    return DrawnSeries(
        number,
        plain(trace.get("name", "")).replace("\n", " "),
        kind,
        x,
        y,
        trace,
        low,
        high,
        n if all(value is None or isinstance(value, float) for value in n) else [],
        [None if text is None else plain(text).replace("\n", " ") for text in texts],
    )


def _column(values: Any, length: int) -> Cells:
    """One cell for each row; empty unless `values` is a list or array with one item per row."""
    is_column = isinstance(values, list | tuple | np.ndarray) and len(values) == length
    return _cells(values) if is_column else []


def _cells(values: Any) -> Cells:
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [_cell(value) for value in listed]


def _cell(value: Any) -> Cell:
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    return number if isfinite(number) else None


def _write(cell: Cell) -> str:
    if cell is None:
        return ""
    return as_cell(cell) if isinstance(cell, str) else repr(cell).removesuffix(".0")


def _error_bars(y: Cells, bars: dict[str, Any]) -> tuple[Cells, Cells]:
    if "array" not in bars:
        return [], []
    above = _cells(bars["array"])
    below = _cells(bars.get("arrayminus", bars["array"]))
    return _add(y, below, -1.0), _add(y, above, 1.0)


def _add(values: Cells, more: Cells, sign: float) -> Cells:
    return [
        value + sign * other if isinstance(value, float) and isinstance(other, float) else None
        for value, other in zip(values, more, strict=True)
    ]


def _stack(drawn: DrawnSeries, below: dict[Cell, float]) -> DrawnSeries:
    """The series on top of those stacked before it: the area from `low` to `high`."""
    low: Cells = [below.get(x, 0.0) for x in drawn.x]
    high = _add(low, [y if isinstance(y, float) else 0.0 for y in drawn.y], 1.0)
    below.update((x, top) for x, top in zip(drawn.x, high, strict=True) if isinstance(top, float))
    return replace(drawn, low=low, high=high, band=drawn.trace)


def _unfold(drawn: DrawnSeries) -> DrawnSeries:
    """Turn an outline into `low` and `high`, with an empty row between stretches. An outline goes forth along
    one edge and back along the other; any other area keeps its corners."""
    x: Cells = []
    low: Cells = []
    high: Cells = []
    for xs, ys in _stretches(drawn.x, drawn.y):
        half = len(xs) // 2
        if len(xs) % 2 or xs[:half] != xs[half:][::-1]:
            return replace(drawn, is_area=True, band=drawn.trace)
        if x:
            x, low, high = [*x, None], [*low, None], [*high, None]
        x += xs[:half]
        edges = list(zip(ys[:half], ys[half:][::-1], strict=True))
        low += [min(pair) for pair in edges]
        high += [max(pair) for pair in edges]
    return (
        replace(drawn, x=x, y=[], low=low, high=high, band=drawn.trace) if x else replace(drawn, x=[], y=[])
    )


def _stretches(x: Cells, y: Cells) -> list[tuple[list[float], list[float]]]:
    """The parts between gaps."""
    stretches: list[tuple[list[float], list[float]]] = [([], [])]
    for at, value in zip(x, y, strict=True):
        if isinstance(at, float) and isinstance(value, float):
            stretches[-1][0].append(at)
            stretches[-1][1].append(value)
        elif stretches[-1][0]:
            stretches.append(([], []))
    return [stretch for stretch in stretches if stretch[0]]


def _surrounds(band: DrawnSeries, line: DrawnSeries) -> bool:
    """Whether a band is that of a line: of the same series, at its x, with gaps only where the line has a row
    without a band."""
    of_band = [band.meta.get(name) for name in ("run", "group", "metric", "source")]
    of_line = [line.meta.get(name) for name in ("run", "group", "metric", "source")]
    is_beside = line.trace.get("yaxis", "y") != band.trace.get("yaxis", "y")
    if line.kind != "line" or line.low or is_beside or of_band != of_line:
        return False
    places = {x: at for at, x in enumerate(line.x)}
    at_rows = [None if x is None else places.get(x, -1) for x in band.x]
    if len(places) < len(line.x) or -1 in at_rows:
        return False
    before: int | None = None
    is_gap = False
    for at in at_rows:
        if at is None:
            is_gap = True
            continue
        if before is not None and (at - before != 1) != is_gap:
            return False
        before, is_gap = at, False
    return True


def _with_band(line: DrawnSeries, band: DrawnSeries) -> DrawnSeries:
    low = dict(zip(band.x, band.low, strict=True))
    high = dict(zip(band.x, band.high, strict=True))
    lows, highs = [low.get(x) for x in line.x], [high.get(x) for x in line.x]
    return replace(line, low=lows, high=highs, band=band.band)


def _reference_lines(figure: Figure) -> list[DrawnSeries]:
    """Straight lines across the plot, such as published scores, named by the text at their height."""
    texts = figure.layout.get("annotations", [])
    lines = []
    for number, shape in enumerate(figure.layout.get("shapes", []), len(figure.data)):
        if shape.get("type") != "line" or shape["y0"] != shape["y1"] or "domain" in shape.get("yref", "y"):
            continue
        named = (shape.get("label") or {}).get("text") or shape.get("name") or _text_at(texts, shape["y0"])
        label = plain(named).replace("\n", " ")
        trace = {"type": "scatter", "yaxis": shape.get("yref", "y"), "line": shape.get("line", {})}
        lines.append(DrawnSeries(number, label, "reference", [None], [_cell(shape["y0"])], trace))
    return lines


def _text_at(annotations: Sequence[dict[str, Any]], y: float) -> str:
    return next(
        (str(annotation.get("text", "")) for annotation in annotations if annotation.get("y") == y), ""
    )
