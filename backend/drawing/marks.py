"""Events of runs over the course of training, in a lane under the curves, with one legend entry per kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from backend.drawing.figure import Figure
from backend.drawing.palette import Theme
from backend.drawing.theme import muted

MarkKind = Literal["checkpoints", "evaluations", "restarts", "setting changes", "notes", "symptoms"]

_SYMBOLS: dict[MarkKind, str] = {
    "checkpoints": "line-ns-open",
    "evaluations": "diamond",
    "restarts": "triangle-right",
    "setting changes": "circle-open",
    "notes": "star",
    "symptoms": "x",
}
_SYMBOL_PX = 9
_MIDDLE = 0.5

LANE_TOP, CURVES_BOTTOM = 0.09, 0.13
"""Shares of the plot's height: the lane is below, the curves are above."""


@dataclass(frozen=True)
class Mark:
    """An event of a run at some x."""

    run: str
    x: float
    label: str


def add_marks(
    figure: Figure,
    kind: MarkKind,
    marks: Sequence[Mark],
    colours: Mapping[str, str],
    theme: Theme,
    *,
    named: bool = True,
) -> None:
    """Draw marks of one kind, in the colours of their runs.

    Args:
        figure: gets a second y axis of its own under the first, so that no mark covers a curve.
        kind: each has a symbol.
        marks: shown with their label on hover; marks of runs that are not in `colours` are left out.
        colours: `#rrggbb` by run.
        theme: light or dark.
        named: whether the legend has an entry for them.
    """
    ordered = sorted((mark for mark in marks if mark.run in colours), key=lambda mark: (mark.run, mark.x))
    if not ordered:
        return
    _add_lane(figure)
    shared: dict[str, Any] = {"name": kind, "legendgroup": kind}
    # One legend entry in a neutral colour: it stands for all runs. It is on the first y axis, which may have
    # no other trace: Plotly draws the lines of an axis without one at NaN.
    entry = _look(kind, muted(theme)) | {"showlegend": named}
    figure.add_scatter(x=[None], y=[None], meta={"kind": "legend"}, **entry, **shared)
    for run, run_marks in groupby(ordered, key=lambda mark: mark.run):
        points = list(run_marks)
        figure.add_scatter(
            x=[mark.x for mark in points],
            y=[_MIDDLE] * len(points),
            text=[mark.label for mark in points],
            showlegend=False,
            hovertemplate="%{text}<extra></extra>",
            meta={"kind": "marks", "run": run, "marks": kind},
            yaxis="y2",
            cliponaxis=False,
            **_look(kind, colours[run]),
            **shared,
        )


def _add_lane(figure: Figure) -> None:
    """The axes of the lane; the x axis is at its bottom."""
    lane = {"domain": [0.0, LANE_TOP], "range": [0, 1], "visible": False, "fixedrange": True, "anchor": "x"}
    figure.layout["yaxis2"] = lane
    figure.layout["yaxis"] = figure.layout.get("yaxis", {}) | {"domain": [CURVES_BOTTOM, 1.0]}
    figure.layout["xaxis"] = figure.layout.get("xaxis", {}) | {"anchor": "y2"}


def _look(kind: MarkKind, colour: str) -> dict[str, Any]:
    line = {"width": 1.5} if _SYMBOLS[kind].endswith("-open") else {"width": 0}
    marker = {"symbol": _SYMBOLS[kind], "size": _SYMBOL_PX, "color": colour, "line": line}
    return {"mode": "markers", "marker": marker}
