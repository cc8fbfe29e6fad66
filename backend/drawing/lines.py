"""Several metrics or formulas of runs or groups in one chart, over training or against another metric.

A run or group has its colour, and each metric or formula its dash; of a single run or group every line has a
colour of its own. No two lines look alike: there are as many dashes as a chart has metrics at most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.drawing.catalogue import X_AXES, describe, is_exact
from backend.drawing.curve import (
    Band,
    CurveLine,
    add_line,
    add_note_of_large,
    drawn_band,
    name_band,
    summarise_lines,
)
from backend.drawing.figure import Figure
from backend.drawing.gaps import add_gap_notes
from backend.drawing.palette import Look, Theme, look, source_styles
from backend.drawing.seed_curve import SeedGroup, add_groups, summarise_groups
from backend.drawing.theme import faint, ground, layout, muted, plain_text
from backend.statistics.grouping import Spread

DASHES = (
    "",
    "dash",
    "dot",
    "dashdot",
    "longdash",
    "longdashdot",
    "10px,2px,2px,2px,2px,2px",
    "5px,2px",
    "2px,6px",
    "14px,3px,6px,3px",
)
"""Of the metrics and formulas of a chart, by Plotly's names, in their order."""
_MAX_AXIS_CHARACTERS = 30


@dataclass(frozen=True)
class LineText:
    """A metric or formula of a chart."""

    text: str
    """Its name, or the formula."""
    is_formula: bool = False

    @property
    def axis(self) -> str:
        """Title of its axis."""
        return self.text if self.is_formula else describe(self.text).axis


@dataclass(frozen=True)
class Sheet:
    """What a chart of several metrics has apart from its lines."""

    drawn: Sequence[LineText]
    """Every metric and formula, with dashes in this order."""
    x: str
    """One of `catalogue.X_AXES`."""
    x_metric: str | None
    """The metric of the horizontal axis, in place of `x`."""
    title: str
    smooth: str
    """Description of the moving average; empty for none."""
    empty: Sequence[str] = ()
    """The metrics and formulas that no run has values of."""
    theme: Theme = "light"
    width_px: int | None = None


def titles_of(drawn: Sequence[LineText]) -> list[str]:
    """What each is called in legends: no two alike."""
    titles = [entry.text if entry.is_formula else describe(entry.text).title for entry in drawn]
    return [
        title if titles.count(title) == 1 else entry.text for title, entry in zip(titles, drawn, strict=True)
    ]


def lines_figure(
    lines: Sequence[CurveLine], sheet: Sheet, *, styles: Mapping[str, int], band: Band = "auto"
) -> Figure:
    """Each metric of each run as a line.

    Args:
        lines: of each run, its metrics and formulas; `metric` is the text of a `LineText`.
        sheet: the rest.
        styles: by run.
        band: what is drawn around up to `curve.MANY` lines.
    """
    around = drawn_band(lines, "", sheet.smooth, band)
    figure = _empty_figure(sheet, summarise_lines(lines, sheet.smooth, around), n_lines=len(lines))
    add_gap_notes(figure, [line.columns for line in lines], sheet.theme)
    add_note_of_large(figure, lines, sheet.theme)
    figure.n_total = sum(line.n_total for line in lines)
    figure.n_shown = sum(line.n_shown for line in lines)
    looks = _looks([line.run for line in lines], [line.metric for line in lines], sheet, styles)
    has_ranges = False
    for line, drawn in zip(lines, looks, strict=True):
        exact = is_exact(line.metric)
        has_ranges |= add_line(
            figure,
            line,
            drawn,
            is_smooth=bool(sheet.smooth) and not exact,
            band="none" if exact else around,
            has_points=len(lines) == 1 and bool(sheet.smooth) and not exact and sheet.x_metric is None,
            theme=sheet.theme,
        )
    if around != "none":
        name_band(figure, lines, around, sheet.theme, has_ranges=has_ranges)
    return figure


def group_lines_figure(
    groups: Sequence[SeedGroup], sheet: Sheet, *, spread: Spread, styles: Mapping[str, int]
) -> Figure:
    """Each metric of each group of seeds as a line with a band, as `seed_curve_figure` draws one metric.

    Args:
        groups: of each group of runs, its metrics and formulas; `metric` is the text of a `LineText`.
        sheet: the rest.
        spread: the lines and the bands.
        styles: by the id of a group.
    """
    figure = _empty_figure(sheet, summarise_groups(groups, spread, sheet.smooth), n_lines=len(groups))
    figure.layout["legend"]["traceorder"] = "normal"
    looks = _looks([group.id for group in groups], [group.metric for group in groups], sheet, styles)
    add_groups(figure, groups, spread=spread, order=[], looks=looks, theme=sheet.theme)
    return figure


def _looks(
    owners: Sequence[str], metrics: Sequence[str], sheet: Sheet, styles: Mapping[str, int]
) -> list[Look]:
    """How each line is drawn, given its run or group and its metric."""
    if len(set(owners)) <= 1:
        return [look(style, sheet.theme) for style in source_styles(owners, styles)]
    dashes = {entry.text: DASHES[at % len(DASHES)] for at, entry in enumerate(sheet.drawn)}
    return [
        look(styles[owner], sheet.theme)._replace(dash=dashes[metric])
        for owner, metric in zip(owners, metrics, strict=True)
    ]


def _empty_figure(sheet: Sheet, subtitle: str, *, n_lines: int) -> Figure:
    figure = Figure(layout(sheet.title, sheet.theme, sheet.width_px, subtitle))
    figure.x = None if sheet.x_metric else sheet.x
    figure.layout |= _axes(sheet)
    if sheet.x_metric:
        figure.layout["hovermode"] = "closest"
    if sheet.empty:
        _say_empty(figure, sheet, is_alone=not n_lines)
    return figure


def _axes(sheet: Sheet) -> dict[str, Any]:
    axes = list(dict.fromkeys(entry.axis for entry in sheet.drawn if entry.text not in sheet.empty))
    y = ", ".join(axes)
    if len(y) > _MAX_AXIS_CHARACTERS:
        y = axes[0][: _MAX_AXIS_CHARACTERS - 1] + "…" if len(axes) == 1 else ""
    vertical = {"title": {"text": plain_text(y)}, "exponentformat": "SI"}
    if sheet.x_metric:
        title = plain_text(describe(sheet.x_metric).axis)
        return {"xaxis": {"title": {"text": title}, "exponentformat": "SI"}, "yaxis": vertical}
    axis = X_AXES[sheet.x]
    horizontal = {
        "title": {"text": axis.axis},
        "tickformat": "~s",
        "hoverformat": axis.hover_format,
        "rangemode": "tozero",
    }
    return {"xaxis": horizontal, "yaxis": vertical}


def _say_empty(figure: Figure, sheet: Sheet, *, is_alone: bool) -> None:
    """A text that names what no run has values of."""
    figure.add_annotation(
        name="no_values",
        text="<br>".join(f"No values of {plain_text(text)}" for text in sheet.empty),
        x=0.5 if is_alone else 0.01,
        xref="x domain",
        xanchor="center" if is_alone else "left",
        y=0.5 if is_alone else 0.01,
        yref="y domain",
        yanchor="middle" if is_alone else "bottom",
        align="left",
        showarrow=False,
        font={"color": muted(sheet.theme), "size": 13 if is_alone else 11},
        bgcolor=faint(ground(sheet.theme), 0.8),
        borderpad=1,
    )
    if is_alone:
        for axis in ("xaxis", "yaxis"):
            figure.layout[axis]["visible"] = False
