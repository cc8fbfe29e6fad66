"""A grid of panels, one an environment: every panel has the same arms in the same colours, and one legend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from backend.drawing.figure import Figure
from backend.drawing.palette import Theme
from backend.drawing.theme import layout, plain_text

ROW_PX = 260
FRAME_PX = 110
"""Height of the title, of the lowest axis and of the legend."""
LEGEND_ROW_PX = 22
NARROW_PX, MEDIUM_PX = 560, 960
MAX_TICKS = 8
LEGEND_ENTRY_PX = 120
"""Approximate width of a legend's entry."""


@dataclass(frozen=True)
class Frame:
    """How a figure is shown."""

    title: str
    arms: Sequence[str]
    """Labels of all arms, in the order in which styles are given."""
    theme: Theme = "light"
    width_px: int | None = None
    styles: Mapping[str, int] = field(default_factory=dict)
    """By arm; default: their order."""

    def style(self, arm: str) -> int:
        """The style of an arm."""
        return self.styles.get(arm, self.arms.index(arm) if arm in self.arms else 0)


@dataclass(frozen=True)
class Grid:
    """Panels in rows and columns."""

    panels: Sequence[str]
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return max(1, ceil(len(self.panels) / self.n_columns))

    def axes(self, panel: str) -> tuple[str, str]:
        """The names of a panel's axes, as traces refer to them."""
        at = self.panels.index(panel) + 1
        return ("x", "y") if at == 1 else (f"x{at}", f"y{at}")


def grid_figure(
    frame: Frame,
    panels: Sequence[str],
    xaxis: Mapping[str, Any],
    yaxis: Mapping[str, Any],
    n_legend: int,
) -> tuple[Figure, Grid]:
    """An empty grid of panels, each with its title; only the outer ones have titles of their axes."""
    width = frame.width_px or MEDIUM_PX
    most = 1 if width < NARROW_PX else 2 if width < MEDIUM_PX else 3
    grid = Grid(panels, max(1, min(len(panels), most)))
    figure = Figure(layout(frame.title, frame.theme, frame.width_px))
    figure.layout["hovermode"] = "closest"
    figure.layout.pop("hoversubplots", None)
    figure.layout["showlegend"] = n_legend > 1
    legend_rows = ceil(n_legend * LEGEND_ENTRY_PX / width) if n_legend > 1 else 0
    height = grid.n_rows * ROW_PX + FRAME_PX + legend_rows * LEGEND_ROW_PX
    figure.layout["height"] = height
    figure.layout["margin"] = figure.layout["margin"] | {"b": 12 + legend_rows * LEGEND_ROW_PX}
    gap_x, gap_y = 0.09 if grid.n_columns > 1 else 0.0, 70 / height
    for at, panel in enumerate(panels):
        row, column = divmod(at, grid.n_columns)
        x_name, y_name = grid.axes(panel)
        left, right = _share(column, grid.n_columns, gap_x)
        low, high = _share(grid.n_rows - 1 - row, grid.n_rows, gap_y)
        is_last_of_column = at + grid.n_columns >= len(panels)
        figure.layout[f"xaxis{x_name[1:]}"] = _axis(xaxis, titled=is_last_of_column) | {
            "domain": [left, right],
            "anchor": y_name,
        }
        figure.layout[f"yaxis{y_name[1:]}"] = _axis(yaxis, titled=column == 0) | {
            "domain": [low, high],
            "anchor": x_name,
        }
        if len(panels) > 1 or panel:
            figure.add_annotation(
                text=plain_text(panel),
                x=(left + right) / 2,
                y=high,
                xref="paper",
                yref="paper",
                xanchor="center",
                yanchor="bottom",
                showarrow=False,
                font={"size": 12, "weight": 700},
            )
    return figure, grid


def _share(at: int, n: int, gap: float) -> tuple[float, float]:
    size = (1 - gap * (n - 1)) / n
    return at * (size + gap), min(1.0, at * (size + gap) + size)


def _axis(properties: Mapping[str, Any], *, titled: bool) -> dict[str, Any]:
    kept = dict(properties)
    if not titled:
        kept.pop("title", None)
    return kept


def present(arms: Sequence[str], named: Sequence[str]) -> list[str]:
    """Those of the arms that are named, in their order."""
    return [arm for arm in arms if arm in set(named)]
