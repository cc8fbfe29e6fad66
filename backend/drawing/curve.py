"""A metric of one or several runs over the course of training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from backend.drawing.catalogue import X_AXES, describe, is_exact
from backend.drawing.figure import Figure, Label
from backend.drawing.gaps import add_gap_notes, add_gaps
from backend.drawing.palette import Look, Theme, distinct_styles, look, source_styles
from backend.drawing.theme import LEGEND_AT_RIGHT, error, faint, ground, layout, muted, plain_text
from backend.statistics.columns import Array, Columns, merge_at_equal_x

Band = Literal["auto", "sd", "min_max", "none"]
"""What is drawn around the lines of runs: `auto` is `sd` for a figure of one line, else `none`."""

MANY = 10
"""With more lines than this, only the lines are drawn: bands would hide them."""
MIN_ENVELOPE = 8
"""Points of a bucket from which its range is drawn; the mean of fewer is drawn as a point."""
BAND_NAMES: dict[Band, str] = {"sd": "± 1 s.d.", "min_max": "min–max"}
LARGEST = 1e300
"""Beyond about 1.8e304 Plotly takes values for missing ones, and draws the line at 0."""
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
    """`x`, `mean`, `min`, `max`, `count` and optionally `smoothed`, the columns of `charts.WINDOW`, and the
    numbers of values that are `nan`, `inf` and `neg_inf`. With a column `bucket`, buckets at one x are merged
    already."""
    n_total: int = 0
    n_shown: int = 0
    start: int | None = None
    """The first bucket that the client lacks; None if it gets the whole line. `columns` may begin with the
    last bucket that the client keeps."""

    @property
    def key(self) -> str:
        """Names the line within a figure."""
        return f"{self.run} {self.metric} {self.source}".rstrip()

    def select_sent(self, columns: Columns) -> Columns:
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
    return merge_at_equal_x(numbered, "x")


@dataclass(frozen=True)
class DrawnCurve:
    """The points of a line."""

    x: Array
    y: Array
    details: dict[str, Array]
    """Of each point `low`, `high` and `n`: of a window mean the standard deviation below and above it, of
    other values the range, and the number of values."""

    def last(self, n: int) -> "DrawnCurve":
        """The last `n` points."""
        new = slice(len(self.x) - n, None)
        return DrawnCurve(self.x[new], self.y[new], {name: part[new] for name, part in self.details.items()})


def drawn_points(columns: Columns, *, smooth: bool) -> DrawnCurve:
    """The points of a line through the buckets, smoothed with `smooth`; NaN where the line has a gap."""
    if smooth and "window_mean" in columns:
        low, high = _drawable(columns["window_low"]), _drawable(columns["window_high"])
        details = {"low": low, "high": high, "n": columns["window_n"]}
        return DrawnCurve(columns["window_x"], _drawable(columns["window_mean"]), details)
    low, high = _drawable(columns["min"]), _drawable(columns["max"])
    details = {"low": low, "high": high, "n": columns["count"]}
    return DrawnCurve(columns["x"], _drawable(columns["smoothed" if smooth else "mean"]), details)


def _drawable(values: Array) -> Array:
    """The values, NaN for finite ones that the drawing library cannot place. Infinite ones, which become null
    when they are sent, stay."""
    is_large = np.abs(values) > LARGEST  # or infinite
    return np.where(is_large & np.isfinite(values), np.nan, values) if is_large.any() else values


def add_note_of_large(figure: Figure, lines: Sequence[CurveLine], theme: Theme) -> None:
    """A text that says that values are too large to be drawn, if any are."""
    ends = [np.abs(line.columns[name]) for line in lines for name in ("min", "max")]
    if not any(bool((np.isfinite(end) & (end > LARGEST)).any()) for end in ends):
        return
    figure.add_annotation(
        name="too_large",
        text=f"Values beyond {LARGEST:.0e} are not drawn".replace("+", ""),
        x=0.99,
        xref="x domain",
        xanchor="right",
        y=0.99,
        yref="y domain",
        yanchor="top",
        showarrow=False,
        font={"color": error(theme), "size": 11},
        bgcolor=faint(ground(theme), 0.8),
        borderpad=1,
    )


def curve_figure(
    lines: Sequence[CurveLine],
    *,
    metric: str,
    x: str,
    smooth: str = "",
    band: Band = "auto",
    title: str | None = None,
    styles: Mapping[str, int] | None = None,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """Each series as a line. A single one has its points behind it, and the standard deviation of the points
    of each window around it. Buckets at one x are merged first.

    Args:
        lines: the series.
        metric: their metric. Evaluations and learning rates are drawn as they are, not smoothed.
        x: one of `catalogue.X_AXES`.
        smooth: description of the moving average; empty for none.
        band: what is drawn around up to `MANY` lines; a standard deviation only around means of windows.
        title: default: the metric's title.
        styles: by run; default: in the order of `lines`. The first source of a run has its style, each
            further one the first free style.
        theme: light or dark.
        width_px: width for which the title is wrapped; None if unknown.
    """
    heading = title or describe(metric).title
    smooth = "" if is_exact(metric) else smooth
    subtitle = summarise_lines(lines, smooth, drawn_band(lines, metric, smooth, band))
    figure = Figure(layout(heading, theme, width_px, subtitle) | axes_layout(metric, x), x)
    if _are_sources(lines):
        figure.layout["legend"] |= LEGEND_AT_RIGHT
    add_gap_notes(figure, [line.columns for line in lines], theme)
    add_note_of_large(figure, lines, theme)
    add_lines(figure, lines, metric=metric, smooth=smooth, band=band, styles=styles, theme=theme)
    return figure


def drawn_band(lines: Sequence[CurveLine], metric: str, smooth: str, band: Band) -> Band:
    """What is drawn around the lines."""
    if is_exact(metric) or not lines or len(lines) > MANY or (band == "auto" and len(lines) > 1):
        return "none"
    if band in ("auto", "sd"):
        return "sd" if smooth and "window_mean" in lines[0].columns else "none"
    return band


def add_lines(
    figure: Figure,
    lines: Sequence[CurveLine],
    *,
    metric: str,
    smooth: str,
    band: Band = "auto",
    styles: Mapping[str, int] | None = None,
    theme: Theme,
) -> None:
    """Add the traces of `curve_figure`, or what a client with a part of them lacks."""
    is_smooth = bool(smooth) and not is_exact(metric)
    figure.n_total = sum(line.n_total for line in lines)
    figure.n_shown = sum(line.n_shown for line in lines)
    around = drawn_band(lines, metric, smooth, band)
    if around != "none":
        figure.bands = [f"band: {BAND_NAMES[around]}"]
    has_ranges = False
    for line, looks in zip(lines, _looks(lines, styles, theme), strict=True):
        has_points = is_smooth and len(lines) == 1
        has_ranges |= add_line(
            figure, line, looks, is_smooth=is_smooth, band=around, has_points=has_points, theme=theme
        )
    if around != "none":
        name_band(figure, lines, around, theme, has_ranges=has_ranges)


def add_line(
    figure: Figure,
    line: CurveLine,
    looks: Look,
    *,
    is_smooth: bool,
    band: Band,
    has_points: bool = False,
    theme: Theme,
) -> bool:
    """Add the traces of one line, or what a client with a part of them lacks.

    Args:
        figure: gets them.
        line: the series.
        looks: how it is drawn.
        is_smooth: whether its smoothed values are drawn.
        band: what is drawn around it; not `auto`.
        has_points: whether its points are drawn behind it.
        theme: light or dark.

    Returns:
        Whether any band is drawn.
    """
    columns = merged_columns(line)
    sent = line.select_sent(columns)
    points = drawn_points(columns, smooth=is_smooth)
    n_new = len(sent["x"])
    has_ranges = False
    if band != "none":
        edges = drawn_points(columns, smooth=False) if is_smooth and band == "min_max" else points
        has_ranges = _add_band(figure, line, columns, edges, n_new, looks.colour, band)
    if has_points:
        _add_points(figure, line, sent, looks.colour)
    if "nan" in columns:
        add_gaps(figure, line.key, line.facts("not_finite"), columns, n_new, line.start, theme)
    _add_line(figure, line, columns, points.last(n_new), looks)
    return has_ranges


def _are_sources(lines: Sequence[CurveLine]) -> bool:
    """Whether they are several sources of one run."""
    return len(lines) > 1 and len({line.run for line in lines}) == 1


def _looks(lines: Sequence[CurveLine], styles: Mapping[str, int] | None, theme: Theme) -> list[Look]:
    given = distinct_styles(line.run for line in lines) if styles is None else styles
    return [look(style, theme) for style in source_styles((line.run for line in lines), given)]


def axes_layout(metric: str, x: str) -> dict[str, Any]:
    """Both axes of a metric over training, with their titles."""
    axis, about = X_AXES[x], describe(metric)
    from_zero = {"rangemode": "tozero"} if about.divisor != 1.0 else {}
    return {
        "xaxis": {
            "title": {"text": axis.axis},
            "tickformat": "~s",
            "hoverformat": axis.hover_format,
            "rangemode": "tozero",
        },
        "yaxis": {"title": {"text": plain_text(about.axis)}, "exponentformat": "SI"} | from_zero,
    }


def _add_line(figure: Figure, line: CurveLine, columns: Columns, new: DrawnCurve, looks: Look) -> None:
    mode: dict[str, Any] = {} if looks.symbol else line.mode(columns)

    def line_look() -> dict[str, Any]:
        return {
            "mode": looks.mode,
            **mode,
            "name": plain_text(line.label.text),
            "legendgroup": line.key,
            "hovertemplate": "%{y:.5~g}",
            "showlegend": True,
            "line": looks.line,
            "marker": looks.marker,
            "meta": line.facts("line"),
        }

    figure.add_growing(
        line.key,
        columns["bucket"][len(columns["bucket"]) - len(new.x) :],
        line.start,
        line_look,
        {"x": new.x, "y": new.y},
        details=new.details,
        changed=mode,
    )


def _add_band(
    figure: Figure,
    line: CurveLine,
    columns: Columns,
    points: DrawnCurve,
    n_new: int,
    colour: str,
    band: Band,
) -> bool:
    """Draw the standard deviation of windows, or the ranges of buckets with many values; return if any is
    drawn."""
    edges = {"x": points.x, "min": points.details["low"], "max": points.details["high"]}
    has_band = columns["count"] >= (MIN_ENVELOPE if band == "min_max" else 1)
    is_drawn = has_band & np.isfinite(edges["min"]) & np.isfinite(edges["max"])
    x, y, buckets = _outline(edges | {"bucket": columns["bucket"]}, is_drawn, n_new, line.start)

    def band_look() -> dict[str, Any]:
        return {
            "mode": "lines",
            "fill": "toself",
            "fillcolor": faint(colour, _BAND_OPACITY),
            "line": {"color": faint(colour, 0.0), "width": 0},
            "name": BAND_NAMES[band],
            "legendgroup": BAND_NAMES[band],
            "showlegend": False,
            "hoverinfo": "skip",
            "meta": line.facts("range"),
        }

    # A bucket may lose its range: it gets more values, and one of them may be infinite.
    may_shrink = bool((has_band & ~is_drawn)[len(is_drawn) - n_new :].any())
    figure.add_growing(
        f"{line.key} range", buckets, line.start, band_look, {"x": x, "y": y}, may_shrink=may_shrink
    )
    return len(x) > 0


def _add_points(figure: Figure, line: CurveLine, sent: Columns, colour: str) -> None:
    """Draw the buckets of few values as points."""
    is_point = sent["count"] < MIN_ENVELOPE

    def points_look() -> dict[str, Any]:
        return {
            "mode": "markers",
            "marker": {"color": faint(colour, _POINT_OPACITY), "size": _POINT_PX},
            "name": "unsmoothed",
            "legendgroup": line.key,
            "showlegend": False,
            "hoverinfo": "skip",
            "meta": line.facts("points"),
        }

    figure.add_growing(
        f"{line.key} points",
        sent["bucket"][is_point],
        line.start,
        points_look,
        {"x": sent["x"][is_point], "y": _drawable(sent["mean"][is_point])},
        may_shrink=not is_point.all(),
    )


def name_band(
    figure: Figure, lines: Sequence[CurveLine], band: Band, theme: Theme, *, has_ranges: bool
) -> None:
    """One legend entry for all bands, if there are any."""
    name = BAND_NAMES[band]

    def legend_look() -> dict[str, Any]:
        return {
            "mode": "lines",
            "fill": "toself",
            "fillcolor": faint(muted(theme), _BAND_OPACITY),
            "line": {"color": faint(muted(theme), 0.0), "width": 0},
            "name": name,
            "legendgroup": name,
            "showlegend": has_ranges,
            "hoverinfo": "skip",
            "meta": {"kind": "legend"},
        }

    start = 0 if any(line.start is not None for line in lines) else None
    nowhere = np.full(1 if start is None else 0, np.nan)
    changed = {"showlegend": True} if has_ranges else {}
    figure.add_growing(
        name, np.arange(len(nowhere)), start, legend_look, {"x": nowhere, "y": nowhere}, changed=changed
    )


def _outline(columns: Columns, is_drawn: Array, n_new: int, start: int | None) -> tuple[Array, Array, Array]:
    """The outlines of all stretches of drawn buckets, with a gap before each, and the bucket of each corner.

    Args:
        columns: the buckets.
        is_drawn: which of them are drawn.
        n_new: number of the buckets that the client gets.
        start: the first bucket that the client lacks. A stretch that continues one of the client's starts at
            the bucket before, so that they join; its corners there belong to bucket `start`.
    """
    n_joining = len(is_drawn) - n_new
    if not is_drawn[n_joining:].any():
        return _NOWHERE
    is_drawn = is_drawn.copy()
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


def summarise_lines(lines: Sequence[CurveLine], smooth: str, band: Band) -> str:
    """How many points are drawn, and how they are smoothed, for a subtitle."""
    shown, total = sum(line.n_shown for line in lines), sum(line.n_total for line in lines)
    if not total:
        return ""
    parts = [f"{shown:,} of {total:,} points" if shown < total else f"{total:,} points"]
    if smooth:
        parts.append(("mean " if smooth.startswith("over") else "smoothed ") + smooth)
    if band != "none":
        parts.append(f"band: {BAND_NAMES[band]}")
    return " · ".join(parts)
