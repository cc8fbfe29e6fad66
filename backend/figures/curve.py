"""A metric of one or several runs over the course of training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from backend.figures.theme import BESIDE, DASHES, Theme, colours, faint, layout, plain_text, styles
from backend.metrics.catalogue import X_AXES, describe
from backend.metrics.chunks import Array, Columns

MANY = 10
"""Of more lines than that only they themselves are drawn: what is behind them would hide them."""

_OUTLINE_OPACITY = 0.35
_BAND_OPACITY = 0.14


@dataclass(frozen=True)
class Line:
    """One series of one run."""

    run: str
    name: str
    """In the legend."""
    metric: str
    source: str
    columns: Columns | None
    """`x`, `mean`, `min`, `max` and perhaps `smoothed`; none to leave the numbers out."""
    n_total: int = 0
    n_shown: int = 0


def curve(
    lines: Sequence[Line],
    *,
    metric: str,
    x: str,
    runs: Sequence[str] = (),
    smooth: float = 0.0,
    title: str | None = None,
    theme: Theme = "light",
    width_px: int | None = None,
) -> "go.Figure":
    """Each series as a line; behind it, unless there are `MANY`, faint, what its buckets span.

    A trace's `meta` says which run, metric, source and column (`y`) it draws, so that a reader of a figure
    without numbers can put them in.

    Args:
        lines: the series; one colour a run, or where there is but one, a part of it.
        metric: what they are of.
        x: one of `chunks.X_COLUMNS`.
        runs: all that are compared, in the order in which they choose their colours; those of the lines by
            default.
        smooth: weight of the moving average they were smoothed with, 0 for none.
        title: the metric's own by default.
        theme: light or dark.
        width_px: for a title that fits; none where the reader decides.
    """
    heading = title or describe(metric).title
    figure = go.Figure(
        layout=layout(heading, theme, width_px, _subtitle(lines, smooth)) | axes_layout(metric, x)
    )
    if _are_parts(lines):
        figure.update_layout(legend=BESIDE)
    for line, look in zip(lines, _looks(lines, runs, theme), strict=True):
        _draw(figure, line, *look, smooth, spans=len(lines) <= MANY)
    return figure


def _are_parts(lines: Sequence[Line]) -> bool:
    """Whether they are what several parts of one run said."""
    return len(lines) > 1 and len({line.run for line in lines}) == 1


def _looks(lines: Sequence[Line], runs: Sequence[str], theme: Theme) -> list[tuple[str, str]]:
    """Colour and dash of each: a run's own, and from it on the next for each further part of one run."""
    own = styles([*runs, *(line.run for line in lines)], theme)
    if not _are_parts(lines):
        return [own[line.run] for line in lines]
    palette = colours(theme)
    first = palette.index(own[lines[0].run][0])
    return [
        (palette[(first + n) % len(palette)], DASHES[n // len(palette) % len(DASHES)])
        for n in range(len(lines))
    ]


def axes_layout(metric: str, x: str) -> dict[str, Any]:
    """Both axes of a metric over training, with what they count."""
    axis = X_AXES[x]
    return {
        "xaxis": {
            "title": {"text": axis.axis},
            "tickformat": "~s",
            "hoverformat": axis.hover_format,
            "rangemode": "tozero",
        },
        "yaxis": {"title": {"text": describe(metric).axis}, "exponentformat": "SI", "minexponent": 4},
    }


def plain(values: Array) -> list[Any]:
    """Numbers for JSON: null for what is not finite."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _draw(figure: "go.Figure", line: Line, colour: str, dash: str, smooth: float, *, spans: bool) -> None:
    main = "smoothed" if smooth > 0 else "mean"
    edge = {"color": faint(colour, _OUTLINE_OPACITY), "width": 1}
    for column, look in (
        # Where a bucket is one point, both edges are the raw curve.
        ("min", {"line": edge}),
        ("max", {"line": edge, "fill": "tonexty", "fillcolor": faint(colour, _BAND_OPACITY)}),
        (main, {"line": {"color": colour, "width": 2, "dash": dash}}),
    ):
        behind = column != main
        if behind and not spans:
            continue
        values = line.columns
        figure.add_scatter(
            x=plain(values["x"]) if values else [],
            y=plain(values[column]) if values else [],
            mode="lines",
            name=plain_text(line.name),
            legendgroup=f"{line.run} {line.source}",
            showlegend=not behind,
            hoverinfo="skip" if behind else None,
            hovertemplate=None if behind else "%{y:.5~g}",
            meta={"run": line.run, "metric": line.metric, "source": line.source, "y": column},
            **look,
        )


def _subtitle(lines: Sequence[Line], smooth: float) -> str:
    shown, total = sum(line.n_shown for line in lines), sum(line.n_total for line in lines)
    if not total:
        return ""
    parts = [f"{shown:,} of {total:,} points" if shown < total else f"{total:,} points"]
    if smooth > 0:
        parts.append(f"smoothed {smooth:g}")
    if shown < total and len(lines) <= MANY:
        parts.append("faint: least to greatest")
    elif smooth > 0 and len(lines) <= MANY:
        parts.append("faint: as measured")
    return " · ".join(parts)
