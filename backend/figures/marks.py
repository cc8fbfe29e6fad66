"""Events of runs marked over the course of training, with one legend entry per kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from backend.figures.figure import Figure
from backend.figures.palette import Theme
from backend.figures.theme import faint, muted

MarkKind = Literal["checkpoints", "restarts", "setting changes"]

_LINES: dict[str, tuple[str, float]] = {"restarts": ("dot", 0.8), "setting changes": ("dashdot", 0.8)}
"""Kinds that are drawn as vertical lines: dash and opacity."""

_TICK_OPACITY = 0.5
_FOOT = 0.01


@dataclass(frozen=True)
class Mark:
    """An event of a run at some x."""

    run: str
    x: float
    label: str


def add_marks(
    figure: Figure, kind: MarkKind, marks: Sequence[Mark], colours: Mapping[str, str], theme: Theme
) -> None:
    """Draw marks of one kind, in the colours of their runs.

    Args:
        figure: gets a second y axis, so that marks do not depend on the values.
        kind: checkpoints are faint ticks at the bottom, the others vertical lines.
        marks: shown with their label on hover; marks of runs that are not in `colours` are left out.
        colours: `#rrggbb` by run.
        theme: light or dark.
    """
    ordered = sorted((mark for mark in marks if mark.run in colours), key=lambda mark: (mark.run, mark.x))
    if not ordered:
        return
    figure.layout["yaxis2"] = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
    shared: dict[str, Any] = {"name": kind, "legendgroup": kind}
    # One legend entry in a neutral colour: it stands for all runs. It is on the first y axis, which
    # may have no other trace: Plotly draws the lines of an axis without one at NaN.
    figure.add_scatter(x=[None], y=[None], meta={"kind": "legend"}, **_look(kind, muted(theme)), **shared)
    for run, some in groupby(ordered, key=lambda mark: mark.run):
        x: list[float | None] = []
        y: list[float | None] = []
        texts: list[str] = []
        for mark in some:
            points = [(mark.x, 0.0), (mark.x, 1.0), (None, None)] if kind in _LINES else [(mark.x, _FOOT)]
            x += [at for at, _ in points]
            y += [height for _, height in points]
            texts += [mark.label] * len(points)
        figure.add_scatter(
            x=x,
            y=y,
            text=texts,
            showlegend=False,
            hovertemplate="%{text}<extra></extra>",
            meta={"kind": "marks", "run": run, "marks": kind},
            yaxis="y2",
            **_look(kind, colours[run]),
            **shared,
        )


def _look(kind: MarkKind, colour: str) -> dict[str, Any]:
    if kind in _LINES:
        dash, opacity = _LINES[kind]
        return {"mode": "lines", "line": {"color": faint(colour, opacity), "width": 1, "dash": dash}}
    marker = {"symbol": "line-ns-open", "size": 10, "color": faint(colour, _TICK_OPACITY)}
    return {"mode": "markers", "marker": marker}
