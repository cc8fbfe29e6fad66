"""Bars of arms: one panel an environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backend.drawing.figure import Figure
from backend.drawing.palette import Theme, look
from backend.drawing.panels import Frame, grid_figure
from backend.drawing.theme import muted, plain_text


@dataclass(frozen=True)
class Bar:
    """The value of an arm on an environment: by a rule, or the mean of a metric."""

    arm: str
    panel: str
    value: float | None
    x: float | str
    """Its place: a setting, or the arm's label."""
    part: str = ""
    """What the bar shows, of several that are stacked or stand together."""
    n: int = 0
    low: float | None = None
    high: float | None = None


def bars_figure(
    bars: Sequence[Bar],
    *,
    panels: Sequence[str],
    parts: Sequence[str],
    x: str,
    y: str,
    stacked: bool,
    frame: Frame,
) -> Figure:
    """A bar for each arm, or one for each of several parts, stacked or side by side; one panel an
    environment.

    Args:
        bars: values by arm, panel and part.
        panels: titles of the environments.
        parts: the parts, in the order of the legend; `bars` with one part take the colours of their arms.
        x: title of the horizontal axes.
        y: title of the values.
        stacked: whether the parts of an arm are stacked.
        frame: title, arms, theme and width.
    """
    axis = {"title": {"text": plain_text(x)}, "type": "category"}
    vertical = {"title": {"text": plain_text(y)}, "exponentformat": "SI"}
    figure, grid = grid_figure(frame, panels, axis, vertical, len(parts))
    figure.layout["barmode"] = "stack" if stacked else "group"
    figure.layout["bargap"] = 0.25
    legend: set[str] = set()
    for number, part in enumerate(parts):
        for panel in panels:
            panel_bars = [
                bar for bar in bars if (bar.part, bar.panel) == (part, panel) and bar.value is not None
            ]
            if not panel_bars:
                continue
            x_name, y_name = grid.axes(panel)
            styles = (
                [look(frame.style(bar.arm), frame.theme).colour for bar in panel_bars]
                if len(parts) == 1
                else look(number, frame.theme).colour
            )
            figure.data.append(
                {
                    "type": "bar",
                    "x": [bar.x if isinstance(bar.x, str) else f"{bar.x:g}" for bar in panel_bars],
                    "y": [bar.value for bar in panel_bars],
                    **_whiskers(panel_bars, frame.theme),
                    "text": [f"{bar.n} run{'s' if bar.n != 1 else ''}" for bar in panel_bars],
                    "textposition": "none",
                    "marker": {"color": styles},
                    "name": plain_text(part),
                    "legendgroup": part,
                    "showlegend": part not in legend,
                    "hovertemplate": (
                        f"{plain_text(part)}<br>%{{x}}: %{{y:.4~g}} (%{{text}})<extra></extra>"
                    ),
                    "meta": {"source": panel},
                    "xaxis": x_name,
                    "yaxis": y_name,
                }
            )
            legend.add(part)
    figure.n_total = figure.n_shown = sum(bar.value is not None for bar in bars)
    return figure


def _whiskers(bars: Sequence[Bar], theme: Theme) -> dict[str, Any]:
    if not any(bar.low is not None and bar.high is not None for bar in bars):
        return {}
    return {
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [0 if bar.high is None else bar.high - (bar.value or 0) for bar in bars],
            "arrayminus": [0 if bar.low is None else (bar.value or 0) - bar.low for bar in bars],
            "color": muted(theme),
            "thickness": 1,
        }
    }
