"""A metric of one or several runs over the course of training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.figures.figure import Figure, Label
from backend.figures.palette import Look, Theme, look
from backend.figures.theme import LEGEND_AT_RIGHT, faint, layout, muted, plain_text
from backend.metrics.catalogue import X_AXES, describe, is_exact
from backend.metrics.chunks import Array, Columns
from backend.metrics.rollups import merged_at_equal_x
from backend.runs.styles import N_STYLES, distinct_styles

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
    styles: Mapping[str, int] | None = None,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """Each series as a line; behind it, unless there are more than `MANY`, faint points and the range of
    buckets of many points. Buckets at one x are merged before.

    Args:
        lines: the series.
        metric: their metric. Evaluations and learning rates are drawn as they are, not smoothed.
        x: one of `catalogue.X_AXES`.
        smooth: description of the moving average; empty for none.
        title: default: the metric's title.
        styles: by run; default: in the order of `lines`. Sources of a single run have its style and the next.
        theme: light or dark.
        width_px: width for which the title is wrapped; None if unknown.
    """
    heading = title or describe(metric).title
    smooth = "" if is_exact(metric) else smooth
    figure = Figure(layout(heading, theme, width_px, _subtitle(lines, smooth)) | axes_layout(metric, x), x)
    if _are_sources(lines):
        figure.layout["legend"] |= LEGEND_AT_RIGHT
    add_lines(figure, lines, metric=metric, smooth=smooth, styles=styles, theme=theme)
    return figure


def add_lines(
    figure: Figure,
    lines: Sequence[CurveLine],
    *,
    metric: str,
    smooth: str,
    styles: Mapping[str, int] | None = None,
    theme: Theme,
) -> None:
    """The traces of `curve_figure`, which a client may have a part of."""
    is_smooth = bool(smooth) and not is_exact(metric)
    figure.n_total = sum(line.n_total for line in lines)
    figure.n_shown = sum(line.n_shown for line in lines)
    has_ranges = False
    for line, looks in zip(lines, _looks(lines, styles, theme), strict=True):
        columns = merged_columns(line)
        sent = line.sent(columns)
        if len(lines) <= MANY:
            has_ranges |= _add_behind(figure, line, columns, sent, looks.colour, points=is_smooth)
        _add_line(figure, line, columns, sent, looks, "smoothed" if is_smooth else "mean")
    if len(lines) <= MANY:
        _name_ranges(figure, lines, theme, has_ranges=has_ranges)


def _are_sources(lines: Sequence[CurveLine]) -> bool:
    """Whether they are several sources of one run."""
    return len(lines) > 1 and len({line.run for line in lines}) == 1


def _looks(lines: Sequence[CurveLine], styles: Mapping[str, int] | None, theme: Theme) -> list[Look]:
    given = distinct_styles(line.run for line in lines) if styles is None else styles
    further = range(len(lines)) if _are_sources(lines) else [0] * len(lines)
    return [look((given[line.run] + n) % N_STYLES, theme) for line, n in zip(lines, further, strict=True)]


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


def _add_line(
    figure: Figure, line: CurveLine, columns: Columns, sent: Columns, looks: Look, column: str
) -> None:
    mode: dict[str, Any] = {} if looks.symbol else line.mode(columns)

    def line_look() -> dict[str, Any]:
        return {
            "mode": looks.mode,
            **mode,
            "name": plain_text(line.label.text),
            "legendgroup": f"{line.run} {line.source}",
            "hovertemplate": "%{y:.5~g}",
            "showlegend": True,
            "line": {"color": looks.colour, "width": 2},
            "marker": looks.marker,
            "meta": line.facts("line"),
        }

    figure.add_growing(
        line.key,
        sent["bucket"],
        line.start,
        line_look,
        {"x": sent["x"], "y": sent[column]},
        details=details_of(sent),
        changed=mode,
    )


def _add_behind(
    figure: Figure, line: CurveLine, columns: Columns, sent: Columns, colour: str, *, points: bool
) -> bool:
    """Draw the ranges of buckets with many values, and the others as points; return if a range is drawn."""
    is_many = columns["count"] >= MIN_ENVELOPE
    n_new = len(sent["count"])
    x, y, buckets = _outline(columns, is_many, n_new, line.start)
    is_point = ~is_many[len(is_many) - n_new :]
    # A bucket gets more values: its point becomes a range, and an infinite value ends its range.
    may_shrink = not is_point.all()

    def range_look() -> dict[str, Any]:
        return {
            "mode": "lines",
            "fill": "toself",
            "fillcolor": faint(colour, _BAND_OPACITY),
            "line": {"color": faint(colour, 0.0), "width": 0},
            "name": ENVELOPE,
            "legendgroup": ENVELOPE,
            "showlegend": False,
            "hoverinfo": "skip",
            "meta": line.facts("range"),
        }

    def points_look() -> dict[str, Any]:
        return {
            "mode": "markers",
            "marker": {"color": faint(colour, _POINT_OPACITY), "size": _POINT_PX},
            "name": "unsmoothed",
            "legendgroup": f"{line.run} {line.source}",
            "showlegend": False,
            "hoverinfo": "skip",
            "meta": line.facts("points"),
        }

    figure.add_growing(
        f"{line.key} range", buckets, line.start, range_look, {"x": x, "y": y}, may_shrink=may_shrink
    )
    if points:
        figure.add_growing(
            f"{line.key} points",
            sent["bucket"][is_point],
            line.start,
            points_look,
            {"x": sent["x"][is_point], "y": sent["mean"][is_point]},
            may_shrink=may_shrink,
        )
    return len(x) > 0


def _name_ranges(figure: Figure, lines: Sequence[CurveLine], theme: Theme, *, has_ranges: bool) -> None:
    """One legend entry for all ranges, if there are any."""

    def legend_look() -> dict[str, Any]:
        return {
            "mode": "lines",
            "fill": "toself",
            "fillcolor": faint(muted(theme), _BAND_OPACITY),
            "line": {"color": faint(muted(theme), 0.0), "width": 0},
            "name": ENVELOPE,
            "legendgroup": ENVELOPE,
            "showlegend": has_ranges,
            "hoverinfo": "skip",
            "meta": {"kind": "legend"},
        }

    start = 0 if any(line.start is not None for line in lines) else None
    nowhere = np.full(1 if start is None else 0, np.nan)
    changed = {"showlegend": True} if has_ranges else {}
    figure.add_growing(
        ENVELOPE, np.arange(len(nowhere)), start, legend_look, {"x": nowhere, "y": nowhere}, changed=changed
    )


def _outline(columns: Columns, is_many: Array, n_new: int, start: int | None) -> tuple[Array, Array, Array]:
    """The outline of each stretch of drawn buckets, after a gap each, and the bucket of each corner.

    Args:
        columns: the buckets.
        is_many: which of them have many values; without finite ones they are not drawn either.
        n_new: number of the buckets that the client gets.
        start: the first bucket that the client lacks. A stretch that continues one of the client's starts at
            the bucket before, so that they join; its corners there belong to bucket `start`.
    """
    n_joining = len(is_many) - n_new
    if not is_many[n_joining:].any():
        return _NOWHERE
    is_drawn = is_many & np.isfinite(columns["min"]) & np.isfinite(columns["max"])
    is_drawn[:n_joining] &= is_drawn[n_joining : n_joining + 1].any()
    drawn = np.flatnonzero(is_drawn)
    firsts = drawn[np.concatenate([drawn[:1] >= 0, drawn[1:] > drawn[:-1] + 1])]
    rows = np.concatenate([firsts, drawn, drawn[::-1]])
    # Of each stretch: a gap, the way forth along the maxima, the way back along the minima.
    order = np.argsort(np.searchsorted(firsts, rows, side="right"), kind="stable")
    if start is None:  # nothing to be separated from
        order = order[1:]
    corners = {name: columns[name][rows[order]] for name in ("x", "min", "max", "bucket")}
    is_gap = order < len(firsts)
    x = np.where(is_gap, np.nan, corners["x"])
    y = np.where(order < len(firsts) + len(drawn), corners["max"], corners["min"])
    return x, np.where(is_gap, np.nan, y), np.maximum(corners["bucket"], start or 0)


def _subtitle(lines: Sequence[CurveLine], smooth: str) -> str:
    shown, total = sum(line.n_shown for line in lines), sum(line.n_total for line in lines)
    if not total:
        return ""
    parts = [f"{shown:,} of {total:,} points" if shown < total else f"{total:,} points"]
    if smooth:
        parts.append(f"smoothed {smooth}")
    return " · ".join(parts)
