"""Several seeds as one curve with the band of its interval; with too few for an interval, each as a line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.drawing.catalogue import describe
from backend.drawing.curve import MAX_MARKED, axes_layout
from backend.drawing.figure import Figure, Label
from backend.drawing.gaps import in_words
from backend.drawing.palette import Look, Theme, distinct_styles, look, source_styles
from backend.drawing.theme import faint, layout, plain_text
from backend.statistics.columns import Array, Columns
from backend.statistics.grouping import CENTRES, Spread, draws_seeds, interval_name

_BAND_OPACITY = 0.18
_SEED_WIDTH = 1.5
_THIN_OPACITY = 0.45
_PARTIAL_LINE = {"width": 1, "dash": "dot"}
"""Of the line over fewer than all seeds, which jumps where one leaves or joins."""
PARTIAL = "thin and dotted where not all seeds have a value"


@dataclass(frozen=True)
class SeedGroup:
    """Runs that differ in their seed alone."""

    id: str
    label: Label
    """Legend entry."""
    runs: Sequence[str]
    """Its runs, one per seed."""
    metric: str
    source: str
    columns: Columns
    """`x`, `mean`, `median`, `iqm`, `low`, `high` and `n`, from grid point `start` on."""
    seed_values: Sequence[Array] = ()
    """The values of each seed, if they are too few for an interval, or on request."""
    n_total: int = 0
    n_shown: int = 0
    start: int | None = None
    """The first grid point that the client lacks; None if it gets the whole curve."""
    is_partial: bool = False
    """Whether the centre is anywhere that of fewer than all seeds."""
    not_finite: Sequence[int] = (0, 0, 0)
    """Numbers of the values that are not finite, by kind."""

    @property
    def n_seeds(self) -> int:
        """Number of seeds."""
        return len(self.runs)

    @property
    def mode(self) -> str:
        """The mode of its lines."""
        return "lines+markers" if 0 < self.n_shown <= MAX_MARKED else "lines"


def seed_curve_figure(
    groups: Sequence[SeedGroup],
    *,
    metric: str,
    x: str,
    spread: Spread,
    order: Sequence[str] = (),
    wanted: Mapping[str, int] | None = None,
    smooth: str = "",
    title: str | None = None,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """Each group's centre over its seeds as a line with a band around it; on request also each seed, thinly.
    Where not all seeds have a value, the centre of the others is a thin dotted line without a band, since it
    jumps there. With too few seeds for the band, each seed is a line.

    Args:
        groups: one style each; a further source of a group gets the first free one.
        metric: their metric.
        x: one of `catalogue.X_AXES`.
        spread: the line and the band.
        order: ids of all compared groups, in the order in which they get styles; default: `groups`.
        wanted: by the id of a group, the style that it gets instead.
        smooth: description of the moving average of each seed; empty for none.
        title: default: the metric's title.
        theme: light or dark.
        width_px: width for which the title is wrapped; None if unknown.
    """
    heading = title or describe(metric).title
    subtitle = summarise_groups(groups, spread, smooth)
    figure = Figure(layout(heading, theme, width_px, subtitle) | axes_layout(metric, x), x)
    # Plotly would reverse it, since the bands are filled.
    figure.layout["legend"]["traceorder"] = "normal"
    add_groups(figure, groups, spread=spread, order=order, wanted=wanted, theme=theme)
    return figure


def add_groups(
    figure: Figure,
    groups: Sequence[SeedGroup],
    *,
    spread: Spread,
    order: Sequence[str],
    wanted: Mapping[str, int] | None = None,
    looks: Sequence[Look] | None = None,
    theme: Theme,
) -> None:
    """Add the traces of `seed_curve_figure`, or what a client with a part of them lacks; with the `looks` of
    all groups, where these do not follow from their styles."""
    figure.n_total = sum(group.n_total for group in groups)
    figure.n_shown = sum(group.n_shown for group in groups)
    figure.bands = _bands(groups, spread)
    counts = [sum(kinds) for kinds in zip(*(group.not_finite for group in groups), strict=True)]
    if sum(counts):
        figure.bands.append(f"{in_words(counts)} not drawn")
    if looks is None:
        styles = distinct_styles([*order, *(group.id for group in groups)], wanted)
        looks = [look(style, theme) for style in source_styles((group.id for group in groups), styles)]
    for group, drawn in zip(groups, looks, strict=True):
        if draws_seeds(group.n_seeds, spread):
            _draw_seeds(figure, group, drawn)
        else:
            if spread.seeds and group.n_seeds > 1:
                _draw_thin_seeds(figure, group, drawn.colour)
            _draw_band(figure, group, spread.centre, drawn)


def _draw_band(figure: Figure, group: SeedGroup, centre: str, looks: Look) -> None:
    edge = {"showlegend": False, "hoverinfo": "skip", "line": {"color": faint(looks.colour, 0.0), "width": 0}}
    band = edge | {"fill": "tonexty", "fillcolor": faint(looks.colour, _BAND_OPACITY)}
    line = {
        "showlegend": True,
        "hovertemplate": f"%{{y:.5~g}} ({centre} of %{{customdata}})",
        "line": looks.line,
        **_symbols(looks),
    }
    columns = group.columns
    is_whole = columns["n"] >= group.n_seeds
    low, high, middle = (np.where(is_whole, columns[name], np.nan) for name in ("low", "high", centre))
    _add(figure, group, "low", {"y": low}, edge, "range")
    _add(figure, group, "high", {"y": high}, band, "range")
    centres = {"y": middle, "customdata": columns["n"]}
    _add(figure, group, centre, centres, line, "line", {"low": low, "high": high, "n": columns["n"]})
    if group.n_seeds > 1:
        _draw_partial(figure, group, centre, line | {"mode": "lines"})


def _draw_partial(figure: Figure, group: SeedGroup, centre: str, line: dict[str, Any]) -> None:
    partial = (group.columns["n"] < group.n_seeds) & np.isfinite(group.columns[centre])
    # After each stretch a gap; a client may have a stretch that ends before the first point that it gets.
    ends = ~partial & np.concatenate([[group.start is not None], partial[:-1]])[: len(partial)]
    rows = np.flatnonzero(partial | ends)
    style = line | {"showlegend": False, "line": line["line"] | _PARTIAL_LINE}
    _add(
        figure,
        group,
        f"{centre} of some",
        {
            "y": np.where(ends, np.nan, group.columns[centre])[rows],
            "customdata": group.columns["n"][rows],
        },
        style,
        "partial",
        {"n": group.columns["n"][rows]},
        rows,
    )


def _symbols(looks: Look) -> dict[str, Any]:
    return {"mode": looks.mode, "marker": looks.marker} if looks.symbol else {}


def _draw_seeds(figure: Figure, group: SeedGroup, looks: Look) -> None:
    width = 2 if group.n_seeds == 1 else _SEED_WIDTH
    for run, values in zip(group.runs, group.seed_values, strict=True):
        line = {
            "showlegend": run == group.runs[0],
            "hovertemplate": "%{y:.5~g}",
            "line": looks.line | {"width": width},
            **_symbols(looks),
        }
        _add(figure, group, run, {"y": values}, line, "line")


def _draw_thin_seeds(figure: Figure, group: SeedGroup, colour: str) -> None:
    style = {
        "showlegend": False,
        "hoverinfo": "skip",
        "line": {"color": faint(colour, _THIN_OPACITY), "width": 1},
    }
    for run, values in zip(group.runs, group.seed_values, strict=True):
        _add(figure, group, run, {"y": values}, style, "seed")


def _add(
    figure: Figure,
    group: SeedGroup,
    column: str,
    numbers: dict[str, Array],
    style: dict[str, Any],
    kind: str,
    details: dict[str, Array] | None = None,
    rows: Array | None = None,
) -> None:
    """Add a trace of a group.

    Args:
        figure: gets it.
        group: the group.
        column: names the trace within the group.
        numbers: of each grid point, by property.
        style: its look.
        kind: what it shows.
        details: more numbers.
        rows: which of the group's grid points it has; None for all.
    """
    start, n = group.start or 0, len(numbers["y"])
    is_all = rows is None
    rows = np.arange(n) if rows is None else rows
    named: dict[str, Any] = {"name": plain_text(group.label.text), "mode": style.get("mode", group.mode)}
    key = f"{group.id} {group.metric} {group.source}"
    members = " ".join(group.runs)  # with other ones, nothing that the client has of the curve is right

    def whole() -> dict[str, Any]:
        meta = {
            "kind": kind,
            "group": group.id,
            "metric": group.metric,
            "source": group.source,
            "label": group.label.parts(),
        }
        return {**named, **style, "legendgroup": key, "meta": meta}

    figure.add_growing(
        f"{key} {members} {column}",
        start + rows,
        group.start,
        whole,
        {"x": group.columns["x"][rows], **numbers},
        details=details,
        changed=named if n and is_all else {},
        may_shrink=not is_all,
    )


def summarise_groups(groups: Sequence[SeedGroup], spread: Spread, smooth: str) -> str:
    """What is drawn of the groups, and of how many points, for a subtitle."""
    parts = []
    several = [group.n_seeds for group in groups if group.n_seeds > 1]
    if banded := [n for n in several if not draws_seeds(n, spread)]:
        parts.append(f"{CENTRES[spread.centre]} over seeds")
        parts.append(f"band: {interval_name(banded[0], spread)}")
        if _has_partial(groups, spread):
            parts.append(PARTIAL)
    if few := [n for n in several if draws_seeds(n, spread)]:
        parts.append(interval_name(few[0], spread))
    if smooth:
        parts.append(f"each seed smoothed {smooth}")
    total = sum(group.n_total for group in groups)
    if total:
        parts.append(f"{sum(group.n_shown for group in groups):,} grid points from {total:,} points")
    return " · ".join(parts)


def _has_partial(groups: Sequence[SeedGroup], spread: Spread) -> bool:
    """Whether a centre is drawn over fewer than all seeds."""
    return any(group.is_partial and not draws_seeds(group.n_seeds, spread) for group in groups)


def _bands(groups: Sequence[SeedGroup], spread: Spread) -> list[str]:
    """What is drawn of the groups of several seeds, each once."""
    several = [group.n_seeds for group in groups if group.n_seeds > 1]
    named = [("" if draws_seeds(n, spread) else "band: ") + interval_name(n, spread) for n in several]
    if _has_partial(groups, spread):
        named.append(PARTIAL)
    return list(dict.fromkeys(named))
