"""What happened to runs, marked over the course of training: one legend entry a kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import plotly.graph_objects as go

from backend.figures.theme import Theme, faint, muted

Kind = Literal["checkpoints", "restarts", "setting changes"]

_LINES: dict[str, tuple[str, float]] = {"restarts": ("dot", 0.8), "setting changes": ("dashdot", 0.8)}
"""Kinds that are drawn from foot to top: dash and opacity."""

_TICK_OPACITY = 0.5
_FOOT = 0.01


@dataclass(frozen=True)
class Mark:
    """Something that happened to a run at some x."""

    run: str
    x: float
    label: str


def add_marks(
    figure: "go.Figure", kind: Kind, marks: Sequence[Mark], colours: Mapping[str, str], theme: Theme
) -> None:
    """Draw marks of one kind, in their runs' colours.

    Args:
        figure: gets a second y axis, so that marks stay where they are whatever the values are.
        kind: checkpoints are faint ticks at the foot, all else vertical lines.
        marks: told when pointed at; those of a run that is not in `colours` are left out.
        colours: `#rrggbb` by run.
        theme: light or dark.
    """
    ordered = sorted((mark for mark in marks if mark.run in colours), key=lambda mark: (mark.run, mark.x))
    if not ordered:
        return
    figure.update_layout(yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True})
    shared: dict[str, Any] = {"name": kind, "legendgroup": kind, "yaxis": "y2"}
    # One entry in no run's colour: what it says is true of all of them.
    figure.add_scatter(x=[None], y=[None], meta={"legend": kind}, **_look(kind, muted(theme)), **shared)
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
            meta={"run": run, "marks": kind},
            **_look(kind, colours[run]),
            **shared,
        )


def _look(kind: Kind, colour: str) -> dict[str, Any]:
    if kind in _LINES:
        dash, opacity = _LINES[kind]
        return {"mode": "lines", "line": {"color": faint(colour, opacity), "width": 1, "dash": dash}}
    marker = {"symbol": "line-ns-open", "size": 10, "color": faint(colour, _TICK_OPACITY)}
    return {"mode": "markers", "marker": marker}
