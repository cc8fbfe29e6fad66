"""Several seeds as one curve with the band of its interval; too few for an interval each as a line."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.figures.curve import axes_layout, plain
from backend.figures.figure import Figure
from backend.figures.theme import Theme, faint, layout, look, plain_text
from backend.metrics.catalogue import describe
from backend.metrics.chunks import Array, Columns
from backend.metrics.grouping import CENTRES, Spread, draws_seeds, interval_name
from backend.runs.styles import group_styles

_BAND_OPACITY = 0.18
_SEED_WIDTH = 1.5


@dataclass(frozen=True)
class SeedGroup:
    """Runs that differ in their seed alone."""

    id: str
    name: str
    """Legend entry."""
    n_seeds: int
    metric: str
    source: str
    columns: Columns | None
    """`x`, `mean`, `median`, `iqm`, `low`, `high` and `n`; None for a figure without data."""
    seed_values: Sequence[Array] = ()
    """The values of each seed, if they are too few for an interval."""
    n_total: int = 0
    n_shown: int = 0


def seed_curve_figure(
    groups: Sequence[SeedGroup],
    *,
    metric: str,
    x: str,
    spread: Spread,
    order: Sequence[str] = (),
    smooth: str = "",
    title: str | None = None,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """Each group's centre over its seeds as a line, with a band around it; with too few seeds for the band,
    each seed as a line.

    A trace's `meta` has the group, metric, source and column (`y`) that it shows, so that a client can fill
    in the data; for `seed_values` also the position of the seed.

    Args:
        groups: one colour each.
        metric: their metric.
        x: one of `catalogue.X_AXES`.
        spread: the line and the band.
        order: ids of all compared groups, in the order in which colours are assigned; default: `groups`.
        smooth: description of the moving average of each seed; empty for none.
        title: default: the metric's title.
        theme: light or dark.
        width_px: width for which the title is wrapped; None if unknown.
    """
    heading = title or describe(metric).title
    subtitle = _subtitle(groups, spread, smooth)
    figure = Figure(layout(heading, theme, width_px, subtitle) | axes_layout(metric, x))
    styles = group_styles([*order, *(group.id for group in groups)])
    for group in groups:
        if draws_seeds(group.n_seeds, spread):
            _draw_seeds(figure, group, *look(styles[group.id], theme))
        else:
            _draw_band(figure, group, spread.centre, *look(styles[group.id], theme))
    return figure


def _draw_band(figure: Figure, group: SeedGroup, centre: str, colour: str, dash: str) -> None:
    edge = {"color": faint(colour, 0.0), "width": 0}
    values = group.columns
    for column, drawn in (
        ("low", {"line": edge}),
        ("high", {"line": edge, "fill": "tonexty", "fillcolor": faint(colour, _BAND_OPACITY)}),
        (centre, {"line": {"color": colour, "width": 2, "dash": dash}}),
    ):
        main = column == centre
        figure.add_scatter(
            x=plain(values["x"]) if values else [],
            y=plain(values[column]) if values else [],
            customdata=values["n"].tolist() if values and main else None,
            mode="lines",
            name=_name(group),
            legendgroup=f"{group.id} {group.source}",
            showlegend=main,
            hoverinfo=None if main else "skip",
            hovertemplate=f"%{{y:.5~g}} ({centre} of %{{customdata}})" if main else None,
            meta={"group": group.id, "metric": group.metric, "source": group.source, "y": column},
            **drawn,
        )


def _draw_seeds(figure: Figure, group: SeedGroup, colour: str, dash: str) -> None:
    width = 2 if group.n_seeds == 1 else _SEED_WIDTH
    meta = {"group": group.id, "metric": group.metric, "source": group.source, "y": "seed_values"}
    for seed in range(group.n_seeds):
        figure.add_scatter(
            x=plain(group.columns["x"]) if group.columns else [],
            y=plain(group.seed_values[seed]) if group.columns else [],
            mode="lines",
            name=_name(group),
            legendgroup=f"{group.id} {group.source}",
            showlegend=seed == 0,
            hovertemplate="%{y:.5~g}",
            line={"color": colour, "width": width, "dash": dash},
            meta=meta | {"seed": seed},
        )


def _name(group: SeedGroup) -> str:
    return f"{plain_text(group.name)}, {group.n_seeds} seed{'s' if group.n_seeds > 1 else ''}"


def _subtitle(groups: Sequence[SeedGroup], spread: Spread, smooth: str) -> str:
    parts = []
    several = [group.n_seeds for group in groups if group.n_seeds > 1]
    if banded := [n for n in several if not draws_seeds(n, spread)]:
        parts.append(f"{CENTRES[spread.centre]} over seeds")
        parts.append(f"band: {interval_name(banded[0], spread)}")
    if few := [n for n in several if draws_seeds(n, spread)]:
        parts.append(interval_name(few[0], spread))
    if smooth:
        parts.append(f"each seed smoothed {smooth}")
    total = sum(group.n_total for group in groups)
    if total:
        parts.append(f"{sum(group.n_shown for group in groups):,} grid points from {total:,} points")
    return " · ".join(parts)
