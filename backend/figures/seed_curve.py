"""Seeds of one setting as one curve: their mean, and a band that says how far they agree."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from backend.figures.curve import axes_layout, plain
from backend.figures.theme import Theme, faint, layout, plain_text, styles
from backend.metrics.catalogue import describe
from backend.metrics.chunks import Columns

_BAND_OPACITY = 0.18


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed alone."""

    id: str
    name: str
    """In the legend."""
    n_seeds: int
    metric: str
    source: str
    columns: Columns | None
    """`x`, `mean`, `low`, `high` and `n`; none to leave the numbers out."""
    n_total: int = 0
    n_shown: int = 0


def seed_curve(
    groups: Sequence[Group],
    *,
    metric: str,
    x: str,
    interval: str,
    order: Sequence[str] = (),
    smooth: float = 0.0,
    title: str | None = None,
    theme: Theme = "light",
    width_px: int | None = None,
) -> "go.Figure":
    """Each group's mean over its seeds as a line, in its band.

    A trace's `meta` says which group, metric, source and column (`y`) it draws, so that a reader of a figure
    without numbers can put them in. A single seed has no band.

    Args:
        groups: one colour each.
        metric: what they are of.
        x: one of `chunks.X_COLUMNS`.
        interval: what the band is, in words.
        order: ids of all that are compared, in the order in which they choose their colours; those of
            `groups` by default.
        smooth: weight of the moving average each seed was smoothed with, 0 for none.
        title: the metric's own by default.
        theme: light or dark.
        width_px: for a title that fits; none where the reader decides.
    """
    heading = title or describe(metric).title
    subtitle = _subtitle(groups, interval, smooth)
    figure = go.Figure(layout=layout(heading, theme, width_px, subtitle) | axes_layout(metric, x))
    looks = styles([*order, *(group.id for group in groups)], theme)
    for group in groups:
        _draw(figure, group, *looks[group.id])
    return figure


def _draw(figure: "go.Figure", group: Group, colour: str, dash: str) -> None:
    edge = {"color": faint(colour, 0.0), "width": 0}
    values = group.columns
    for column, look in (
        ("low", {"line": edge}),
        ("high", {"line": edge, "fill": "tonexty", "fillcolor": faint(colour, _BAND_OPACITY)}),
        ("mean", {"line": {"color": colour, "width": 2, "dash": dash}}),
    ):
        main = column == "mean"
        figure.add_scatter(
            x=plain(values["x"]) if values else [],
            y=plain(values[column]) if values else [],
            customdata=values["n"].tolist() if values and main else None,
            mode="lines",
            name=f"{plain_text(group.name)}, {group.n_seeds} seed{'s' if group.n_seeds > 1 else ''}",
            legendgroup=f"{group.id} {group.source}",
            showlegend=main,
            hoverinfo=None if main else "skip",
            hovertemplate="%{y:.5~g} (mean of %{customdata})" if main else None,
            meta={"group": group.id, "metric": group.metric, "source": group.source, "y": column},
            **look,
        )


def _subtitle(groups: Sequence[Group], interval: str, smooth: float) -> str:
    parts = ["mean of the seeds"]
    if any(group.n_seeds > 1 for group in groups):
        parts.append(f"band: {interval}")
    if smooth > 0:
        parts.append(f"each smoothed {smooth:g}")
    total = sum(group.n_total for group in groups)
    if total:
        parts.append(f"{sum(group.n_shown for group in groups):,} grid points of {total:,} points")
    return " · ".join(parts)
