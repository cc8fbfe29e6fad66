"""A metric of one or several runs over the course of training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.figures.figure import Figure, Label
from backend.figures.theme import (
    DASHES,
    LEGEND_AT_RIGHT,
    Theme,
    colours,
    faint,
    layout,
    look,
    muted,
    plain_text,
)
from backend.metrics.catalogue import X_AXES, describe, is_exact
from backend.metrics.chunks import Array, Columns
from backend.metrics.rollups import merged_at_equal_x
from backend.runs.styles import run_style

MANY = 10
"""With more lines than this, only the lines are drawn: points and bands would hide them."""
MIN_ENVELOPE = 8
"""Points of a bucket from which its range is drawn; the mean of fewer is drawn as a point."""
ENVELOPE = "min–max"
MAX_MARKED = 8
"""A line of up to this many points has markers; a line through one point would be invisible."""

_POINT_OPACITY = 0.25
_POINT_PX = 4
_BAND_OPACITY = 0.14


@dataclass(frozen=True)
class CurveLine:
    """One series of one run."""

    run: str
    label: Label
    """Legend entry."""
    metric: str
    source: str
    columns: Columns
    """`x`, `mean`, `min`, `max`, `count` and optionally `smoothed`; with `bucket`, those at one x are merged
    already."""
    n_total: int = 0
    n_shown: int = 0
    start: int | None = None
    """The first bucket that the client lacks, which the last that it keeps may precede; None if it gets the
    whole line."""

    @property
    def key(self) -> str:
        """Names the line within a figure."""
        return f"{self.run} {self.metric} {self.source}".rstrip()

    def sent(self, columns: Columns) -> Columns:
        """The buckets that the client gets."""
        n_kept = 0 if self.start is None else int(np.searchsorted(columns["bucket"], self.start))
        return {name: values[n_kept:] for name, values in columns.items()}

    def mode(self, columns: Columns) -> dict[str, str]:
        """The mode of a line through the buckets; empty if their number is not known."""
        if self.start is not None and not (len(columns["bucket"]) and columns["bucket"][0] == 0):
            return {}
        return {"mode": "lines+markers" if 0 < len(columns["x"]) <= MAX_MARKED else "lines"}

    def facts(self, kind: str) -> dict[str, Any]:
        """What a client may want to know about one of its traces."""
        named = {"run": self.run, "metric": self.metric, "source": self.source, "label": self.label.parts()}
        return {"kind": kind} | named


_NOWHERE = (np.empty(0), np.empty(0), np.empty(0, int))


def merged_columns(line: CurveLine) -> Columns:
    """The line's buckets; those at one x are merged."""
    if "bucket" in line.columns:  # merged when they were read
        return line.columns
    numbered = line.columns | {"bucket": np.arange(len(line.columns["x"]))}
    return merged_at_equal_x(numbered, "x")


def details_of(columns: Columns) -> dict[str, Array]:
    """The range and number of the values of each bucket."""
    return {"low": columns["min"], "high": columns["max"], "n": columns["count"]}


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
    buckets of many points. Buckets at one x are merged before.

    Args:
        lines: the series; in the colour of their run, or one per source if there is only one run.
        metric: their metric. Evaluations and learning rates are drawn as they are, not smoothed.
        x: one of `catalogue.X_AXES`.
        smooth: description of the moving average; empty for none.
        title: default: the metric's title.
        theme: light or dark.
        width_px: width for which the title is wrapped; None if unknown.
    """
    heading = title or describe(metric).title
    smooth = "" if is_exact(metric) else smooth
    figure = Figure(layout(heading, theme, width_px, _subtitle(lines, smooth)) | axes_layout(metric, x))
    figure.n_total = sum(line.n_total for line in lines)
    figure.n_shown = sum(line.n_shown for line in lines)
    if _are_sources(lines):
        figure.layout["legend"] |= LEGEND_AT_RIGHT
    has_ranges = False
    for line, style in zip(lines, _looks(lines, theme), strict=True):
        columns = merged_columns(line)
        if len(lines) <= MANY:
            has_ranges |= _draw_behind(figure, line, columns, style[0], points=bool(smooth))
        _draw_line(figure, line, columns, *style, "smoothed" if smooth else "mean")
    if len(lines) <= MANY:
        _name_ranges(figure, lines, theme, has_ranges=has_ranges)
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


def _draw_line(
    figure: Figure, line: CurveLine, columns: Columns, colour: str, dash: str, column: str
) -> None:
    mode: dict[str, Any] = line.mode(columns)
    sent = line.sent(columns)
    figure.add_growing(
        line.key,
        sent["bucket"],
        line.start,
        x=sent["x"],
        y=sent[column],
        name=plain_text(line.label.text),
        legendgroup=f"{line.run} {line.source}",
        hovertemplate="%{y:.5~g}",
        showlegend=True,
        line={"color": colour, "width": 2, "dash": dash},
        meta=line.facts("line"),
        details=details_of(sent),
        changed=mode,
        **({"mode": "lines"} | mode),
    )


def _draw_behind(figure: Figure, line: CurveLine, columns: Columns, colour: str, *, points: bool) -> bool:
    """Draw the ranges of buckets with many values, and the others as points; return if a range is drawn."""
    has_many = columns["count"] >= MIN_ENVELOPE
    x, y, buckets = _outline(columns, has_many, line.start)
    sent = line.sent(columns)
    is_point = sent["count"] < MIN_ENVELOPE
    # A bucket gets more values: its point becomes a range, and an infinite value ends its range.
    may_shrink = not is_point.all()
    figure.add_growing(
        f"{line.key} range",
        buckets,
        line.start,
        x=x,
        y=y,
        mode="lines",
        fill="toself",
        fillcolor=faint(colour, _BAND_OPACITY),
        line={"color": faint(colour, 0.0), "width": 0},
        name=ENVELOPE,
        legendgroup=ENVELOPE,
        showlegend=False,
        hoverinfo="skip",
        meta=line.facts("range"),
        may_shrink=may_shrink,
    )
    if points:
        figure.add_growing(
            f"{line.key} points",
            sent["bucket"][is_point],
            line.start,
            x=sent["x"][is_point],
            y=sent["mean"][is_point],
            mode="markers",
            marker={"color": faint(colour, _POINT_OPACITY), "size": _POINT_PX},
            name="unsmoothed",
            legendgroup=f"{line.run} {line.source}",
            showlegend=False,
            hoverinfo="skip",
            meta=line.facts("points"),
            may_shrink=may_shrink,
        )
    return len(x) > 0


def _name_ranges(figure: Figure, lines: Sequence[CurveLine], theme: Theme, *, has_ranges: bool) -> None:
    """One legend entry for all ranges, if there are any."""
    start = 0 if any(line.start is not None for line in lines) else None
    nowhere = np.full(1 if start is None else 0, np.nan)
    figure.add_growing(
        ENVELOPE,
        np.arange(len(nowhere)),
        start,
        x=nowhere,
        y=nowhere,
        mode="lines",
        fill="toself",
        fillcolor=faint(muted(theme), _BAND_OPACITY),
        line={"color": faint(muted(theme), 0.0), "width": 0},
        name=ENVELOPE,
        legendgroup=ENVELOPE,
        showlegend=has_ranges,
        hoverinfo="skip",
        meta={"kind": "legend"},
        changed={"showlegend": True} if has_ranges else {},
    )


def _outline(columns: Columns, is_drawn: Array, start: int | None) -> tuple[Array, Array, Array]:
    """The outline of each stretch of drawn buckets, separated by gaps, and the bucket of each corner.

    Args:
        columns: the buckets.
        is_drawn: which of them are drawn.
        start: the first bucket that the client lacks. A stretch that continues one of the client's starts at
            the bucket before, so that they join; its corners there belong to bucket `start`.
    """
    if not is_drawn.any():
        return _NOWHERE
    is_drawn = is_drawn & np.isfinite(columns["min"]) & np.isfinite(columns["max"])
    x: list[Array] = []
    y: list[Array] = []
    buckets: list[Array] = []
    for stretch in np.split(np.arange(len(is_drawn)), np.flatnonzero(np.diff(is_drawn)) + 1):
        if not len(stretch) or not is_drawn[stretch[0]]:
            continue
        of = np.maximum(columns["bucket"][stretch], start or 0)
        if start is not None and columns["bucket"][stretch[-1]] < start:
            continue
        if x or start is not None:
            x.append(np.full(1, np.nan))
            y.append(np.full(1, np.nan))
            buckets.append(of[:1])
        x += [columns["x"][stretch], columns["x"][stretch][::-1]]
        y += [columns["max"][stretch], columns["min"][stretch][::-1]]
        buckets += [of, of[::-1]]
    if not x:
        return _NOWHERE
    return np.concatenate(x), np.concatenate(y), np.concatenate(buckets)


def _subtitle(lines: Sequence[CurveLine], smooth: str) -> str:
    shown, total = sum(line.n_shown for line in lines), sum(line.n_total for line in lines)
    if not total:
        return ""
    parts = [f"{shown:,} of {total:,} points" if shown < total else f"{total:,} points"]
    if smooth:
        parts.append(f"smoothed {smooth}")
    return " · ".join(parts)
