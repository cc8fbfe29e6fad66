"""A score of runs against one of their settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from backend.figures.figure import Figure
from backend.figures.theme import Theme, layout, look, muted, plain_text
from backend.runs.styles import run_style
from backend.statistics.estimates import median

LOG_RATIO = 20
"""From this ratio of the largest to the smallest value on, the axis of settings is logarithmic."""
_MAX_TICKS = 12


@dataclass(frozen=True)
class Dot:
    """One run."""

    run: str
    name: str
    x: float | str
    y: float
    subject: str = ""
    """Equal for runs of an algorithm whose scores can be compared."""
    subject_name: str = ""


def scatter_figure(
    dots: Sequence[Dot],
    *,
    x: str,
    y: str,
    title: str,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """Each run as a dot in its colour, and the median of the runs of a subject with equal settings as a dash.

    Args:
        dots: the runs that have both values. Settings that are not all numbers are drawn as categories.
        x: title of the axis of settings.
        y: title of the axis of scores.
        title: title of the figure.
        theme: light or dark.
        width_px: width for which the title is wrapped; None if unknown.
    """
    figure = Figure(layout(title, theme, width_px))
    numeric = all(isinstance(dot.x, int | float) for dot in dots)
    ordered = sorted(
        dots, key=lambda dot: ("", float(dot.x), dot.subject) if numeric else (str(dot.x), 0.0, dot.subject)
    )
    several_subjects = len({dot.subject for dot in dots}) > 1
    figure.layout |= {
        "hovermode": "closest",
        "xaxis": {"title": {"text": plain_text(x)}, **_axis([dot.x for dot in ordered], numeric=numeric)},
        "yaxis": {"title": {"text": y}, "exponentformat": "SI", "minexponent": 4},
    }
    figure.add_scatter(
        x=[dot.x for dot in ordered],
        y=[dot.y for dot in ordered],
        mode="markers",
        marker={"color": [look(run_style(dot.run), theme)[0] for dot in ordered], "size": 9, "opacity": 0.8},
        text=[plain_text(dot.name) for dot in ordered],
        name="run",
        showlegend=False,
        hovertemplate="%{text}<br>%{x}: %{y:.5~g}<extra></extra>",
    )
    same = [list(some) for _, some in groupby(ordered, lambda dot: (dot.x, dot.subject))]
    several = [some for some in same if len(some) > 1]
    if several:
        figure.add_scatter(
            x=[some[0].x for some in several],
            y=[median(np.array([dot.y for dot in some])).value for some in several],
            text=[
                f"median of {len(some)} runs"
                + (f", {plain_text(some[0].subject_name)}" if several_subjects else "")
                for some in several
            ],
            mode="markers",
            marker={"symbol": "line-ew-open", "size": 26, "color": muted(theme), "line": {"width": 2}},
            name="median",
            showlegend=True,
            hovertemplate="%{text}<br>%{x}: %{y:.5~g}<extra></extra>",
        )
    return figure


def _axis(values: Sequence[float | str], *, numeric: bool) -> dict[str, Any]:
    if not numeric or not values:
        return {"type": "category"}
    numbers = [float(value) for value in values]
    low, high = min(numbers), max(numbers)
    ticks = sorted(set(numbers))
    shown = (
        {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]} if len(ticks) <= _MAX_TICKS else {}
    )
    return {"type": "log" if low > 0 and high >= LOG_RATIO * low else "linear", **shown}
