"""A metric of one or several runs over the course of training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.figures.figure import Figure
from backend.figures.theme import DASHES, LEGEND_AT_RIGHT, Theme, colours, faint, layout, look, plain_text
from backend.metrics.catalogue import X_AXES, describe
from backend.metrics.chunks import Array, Columns
from backend.metrics.rollups import merged_at_equal_x
from backend.runs.styles import run_style

MANY = 10
"""With more lines than this, only the lines are drawn: points and bands would hide them."""
MIN_ENVELOPE = 8
"""Points of a bucket from which its range is drawn; the mean of fewer is drawn as a point."""
ENVELOPE = "min–max"

_POINT_OPACITY = 0.25
_POINT_PX = 4
_BAND_OPACITY = 0.14


@dataclass(frozen=True)
class CurveLine:
    """One series of one run."""

    run: str
    name: str
    """Legend entry."""
    metric: str
    source: str
    columns: Columns | None
    """`x`, `mean`, `min`, `max`, `count` and optionally `smoothed`; None for a figure without data."""
    n_total: int = 0
    n_shown: int = 0


def curve_figure(
    lines: Sequence[CurveLine],
    *,
    metric: str,
    x: str,
    smooth: str = "",
    title: str | None = None,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """Each series as a line; behind it, unless there are more than `MANY`, faint points and the range of
    buckets of many points.

    A trace's `meta` has the run, metric, source and column (`y`) that it shows, so that a client can fill in
    the data. The points are those of buckets with less than `below` values; the range is a polygon from
    column `low` to `y` over buckets with at least `from` values. Buckets at one x are merged before.

    Args:
        lines: the series; in the colour of their run, or one per source if there is only one run.
        metric: their metric.
        x: one of `catalogue.X_AXES`.
        smooth: description of the moving average; empty for none.
        title: default: the metric's title.
        theme: light or dark.
        width_px: width for which the title is wrapped; None if unknown.
    """
    heading = title or describe(metric).title
    figure = Figure(layout(heading, theme, width_px, _subtitle(lines, smooth)) | axes_layout(metric, x))
    if _are_sources(lines):
        figure.layout["legend"] |= LEGEND_AT_RIGHT
    for line, style in zip(lines, _looks(lines, theme), strict=True):
        merged = merged_at_equal_x(line.columns, "x") if line.columns else None
        if len(lines) <= MANY:
            _draw_behind(figure, line, merged, style[0], points=bool(smooth))
        _draw_line(figure, line, merged, *style, "smoothed" if smooth else "mean")
    return figure


def _are_sources(lines: Sequence[CurveLine]) -> bool:
    """Whether they are several sources of one run."""
    return len(lines) > 1 and len({line.run for line in lines}) == 1


def _looks(lines: Sequence[CurveLine], theme: Theme) -> list[tuple[str, str]]:
    """Colour and dash of each line: the run's, and for sources of a single run the next ones."""
    if not _are_sources(lines):
        return [look(run_style(line.run), theme) for line in lines]
    palette = colours(theme)
    first = run_style(lines[0].run)
    return [
        (palette[(first + n) % len(palette)], DASHES[n // len(palette) % len(DASHES)])
        for n in range(len(lines))
    ]


def axes_layout(metric: str, x: str) -> dict[str, Any]:
    """Both axes of a metric over training, with their titles."""
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
    """Numbers for JSON: null for values that are not finite."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _draw_line(
    figure: Figure, line: CurveLine, values: Columns | None, colour: str, dash: str, column: str
) -> None:
    figure.add_scatter(
        x=plain(values["x"]) if values else [],
        y=plain(values[column]) if values else [],
        mode="lines",
        name=plain_text(line.name),
        legendgroup=f"{line.run} {line.source}",
        hovertemplate="%{y:.5~g}",
        showlegend=True,
        line={"color": colour, "width": 2, "dash": dash},
        meta=_meta(line, column),
    )


def _draw_behind(
    figure: Figure, line: CurveLine, values: Columns | None, colour: str, *, points: bool
) -> None:
    many = values["count"] >= MIN_ENVELOPE if values else np.empty(0, bool)
    x, y = _polygon(values, many) if values else ([], [])
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        fill="toself",
        fillcolor=faint(colour, _BAND_OPACITY),
        line={"color": faint(colour, 0.0), "width": 0},
        name=ENVELOPE,
        legendgroup=ENVELOPE,
        # One legend entry for all of them, if there are any.
        showlegend=bool(x) and not any(t["name"] == ENVELOPE and t["showlegend"] for t in figure.data),
        hoverinfo="skip",
        meta=_meta(line, "max") | {"low": "min", "from": MIN_ENVELOPE},
    )
    if points:
        figure.add_scatter(
            x=plain(values["x"][~many]) if values else [],
            y=plain(values["mean"][~many]) if values else [],
            mode="markers",
            marker={"color": faint(colour, _POINT_OPACITY), "size": _POINT_PX},
            name="unsmoothed",
            legendgroup=f"{line.run} {line.source}",
            showlegend=False,
            hoverinfo="skip",
            meta=_meta(line, "mean") | {"below": MIN_ENVELOPE},
        )


def _meta(line: CurveLine, column: str) -> dict[str, Any]:
    return {"run": line.run, "metric": line.metric, "source": line.source, "y": column}


def _polygon(values: Columns, shown: Array) -> tuple[list[Any], list[Any]]:
    """The outline of each stretch of shown buckets, separated by gaps."""
    shown = shown & np.isfinite(values["min"]) & np.isfinite(values["max"])
    x: list[Any] = []
    y: list[Any] = []
    for stretch in np.split(np.arange(len(shown)), np.flatnonzero(np.diff(shown)) + 1):
        if len(stretch) and shown[stretch[0]]:
            at = values["x"][stretch].tolist()
            gap = [None] if x else []
            x += [*gap, *at, *reversed(at)]
            y += [*gap, *values["max"][stretch].tolist(), *values["min"][stretch][::-1].tolist()]
    return x, y


def _subtitle(lines: Sequence[CurveLine], smooth: str) -> str:
    shown, total = sum(line.n_shown for line in lines), sum(line.n_total for line in lines)
    if not total:
        return ""
    parts = [f"{shown:,} of {total:,} points" if shown < total else f"{total:,} points"]
    if smooth:
        parts.append(f"smoothed {smooth}")
    return " · ".join(parts)
