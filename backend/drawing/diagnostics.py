"""Diagnostics panels: several metrics of a run's method in one figure, as in its paper."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from backend.drawing.curve import CurveLine, axes_layout, drawn_points, merged_columns
from backend.drawing.figure import Figure
from backend.drawing.palette import N_STYLES, Look, Theme, look
from backend.drawing.theme import LEGEND_AT_RIGHT, faint, layout, plain_text
from backend.specs.algorithms import ALGORITHMS
from backend.specs.metrics import Panel

_SHARE_OPACITY = 0.55
_MAX_LEGEND_BELOW = 4
"""A legend with more lines is placed next to the plot; below, it would take too much of the height."""


BY_ID: dict[str, Panel] = {panel.id: panel for algorithm in ALGORITHMS.values() for panel in algorithm.panels}
"""The panels that the algorithms declare, in their order."""


def available_panels(metrics: set[str]) -> list[Panel]:
    """The panels for which a run with these metrics has data."""
    return [
        panel
        for panel in BY_ID.values()
        if not metrics.isdisjoint(panel.names if panel.needs is None else [panel.needs])
    ]


def diagnostic_figure(
    panel: Panel, lines: Sequence[CurveLine], *, x: str, smooth: str, title: str, theme: Theme = "light"
) -> Figure:
    """One panel: one line per metric or source, or stacked shares.

    Args:
        panel: the panel.
        lines: the run's series of its metrics.
        x: one of `catalogue.X_AXES`.
        smooth: description of the moving average; empty for none.
        title: title of the figure.
        theme: light or dark.
    """
    axes = axes_layout(next(iter(panel.names)), x)
    axes["yaxis"] |= {"title": {"text": panel.axis}, "rangemode": "tozero"}
    if panel.stacked:
        axes["yaxis"] |= {"range": [0, 1], "tickformat": ".0%"}
    figure = Figure(layout(title, theme, None) | axes, x)
    figure.layout["legend"]["traceorder"] = "normal"
    if len(lines) > _MAX_LEGEND_BELOW:
        order = "reversed" if panel.stacked else "normal"
        figure.layout["legend"] |= LEGEND_AT_RIGHT | {"traceorder": order}
    add_panel_lines(figure, panel, lines, smooth=smooth, theme=theme)
    return figure


def add_panel_lines(
    figure: Figure, panel: Panel, lines: Sequence[CurveLine], *, smooth: str, theme: Theme
) -> None:
    """Add the traces of `diagnostic_figure`, or what a client with a part of them lacks."""
    figure.n_total = sum(line.n_total for line in lines)
    figure.n_shown = sum(line.n_shown for line in lines)
    # Values that hold until the next change are not interpolated or smoothed.
    is_smooth = bool(smooth) and not panel.stepped
    metrics = list(panel.names)
    by_metric = len({line.metric for line in lines}) == len(lines)
    for place, line in enumerate(lines):
        number = metrics.index(line.metric) if by_metric else place
        _add_panel_line(figure, panel, line, look(number % N_STYLES, theme), smooth=is_smooth)


def _add_panel_line(figure: Figure, panel: Panel, line: CurveLine, looks: Look, *, smooth: bool) -> None:
    columns = merged_columns(line)
    sent = line.select_sent(columns)
    points = drawn_points(sent, smooth=smooth)
    has_symbols = bool(looks.symbol) and not panel.stacked
    mode: dict[str, Any] = {} if has_symbols else line.mode(columns)
    # A share that is always zero is left out of the legend, which has little room.
    is_named = not panel.stacked or bool(np.nan_to_num(points.y).any())
    named = {"showlegend": is_named} if panel.stacked else {}

    def properties() -> dict[str, Any]:
        shape = {"shape": "hv"} if panel.stepped else {}
        stroke: dict[str, Any] = {"line": {"color": looks.colour, "width": 2} | shape, "marker": looks.marker}
        if panel.stacked:
            stroke = {
                "stackgroup": "shares",
                "line": {"color": looks.colour, "width": 0},
                "fillcolor": faint(looks.colour, _SHARE_OPACITY),
            }
        return {
            "mode": "lines+markers" if has_symbols else "lines",
            **mode,
            **named,
            **stroke,
            "name": plain_text(line.source) or panel.names[line.metric],
            "hovertemplate": "%{y:.4~g}",
            "meta": line.facts("line"),
        }

    figure.add_growing(
        line.key,
        sent["bucket"],
        line.start,
        properties,
        {"x": points.x, "y": points.y},
        details=points.details,
        changed=mode | (named if is_named else {}),
    )
