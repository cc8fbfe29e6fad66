"""The figures of studies: a grid of panels by environment, bars, and what the papers draw across games.

Pure functions from numbers to figures. Every panel has the same arms in the same colours, and one legend.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10
from typing import Any

import numpy as np

from backend.analysis.figures.figure import Figure
from backend.analysis.figures.palette import SYMBOLS, Look, Theme, look
from backend.analysis.figures.theme import faint, ground, layout, muted, plain_text, tick_text
from backend.analysis.metrics.chunks import Array
from backend.statistics.profiles import Profile

_ROW_PX = 260
_FRAME_PX = 110
"""Height of the title, of the lowest axis and of the legend."""
_LEGEND_ROW_PX = 22
_BAND_OPACITY = 0.16
_NARROW_PX, _MEDIUM_PX = 560, 960
_MAX_TICKS = 8
_LEGEND_ENTRY_PX = 120
"""Approximate width of a legend's entry."""
_HATCHES = dict(
    zip(
        SYMBOLS[1:],
        (("/", 5), ("x", 5), ("-", 5), (".", 5), ("\\", 5), ("|", 5), ("+", 5), ("/", 12), (".", 12)),
        strict=True,
    )
)
"""What bars have in place of the symbols of lines: the shape, and its size in pixels."""


@dataclass(frozen=True)
class ArmCurve:
    """An arm's score over training on one environment: the mean of some of its runs."""

    arm: str
    panel: str
    """Title of the environment."""
    x: Array
    mean: Array
    low: Array
    high: Array
    n: Array
    """Number of runs with a value at each x."""
    n_runs: int

    @property
    def is_whole(self) -> Array:
        """At which x all runs have a value."""
        return np.asarray(self.n >= self.n_runs)


@dataclass(frozen=True)
class RunDot:
    """The score of one run by a setting."""

    arm: str
    panel: str
    run: str
    """Name of the run."""
    x: float | str
    y: float


@dataclass(frozen=True)
class Bar:
    """The value of an arm on an environment: by a rule, or the mean of a metric."""

    arm: str
    panel: str
    value: float | None
    x: float | str
    """Its place: a setting, or the arm's label."""
    part: str = ""
    """What the bar shows, of several that are stacked or stand together."""
    n: int = 0
    low: float | None = None
    high: float | None = None


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
class _Grid:
    panels: Sequence[str]
    n_columns: int

    @property
    def n_rows(self) -> int:
        return max(1, ceil(len(self.panels) / self.n_columns))

    def axes(self, panel: str) -> tuple[str, str]:
        """The names of a panel's axes, as traces refer to them."""
        at = self.panels.index(panel) + 1
        return ("x", "y") if at == 1 else (f"x{at}", f"y{at}")


def _grid_figure(
    frame: Frame,
    panels: Sequence[str],
    xaxis: Mapping[str, Any],
    yaxis: Mapping[str, Any],
    n_legend: int,
) -> tuple[Figure, _Grid]:
    """An empty grid of panels, each with its title; only the outer ones have titles of their axes."""
    width = frame.width_px or _MEDIUM_PX
    most = 1 if width < _NARROW_PX else 2 if width < _MEDIUM_PX else 3
    grid = _Grid(panels, max(1, min(len(panels), most)))
    figure = Figure(layout(frame.title, frame.theme, frame.width_px))
    figure.layout["hovermode"] = "closest"
    figure.layout.pop("hoversubplots", None)
    figure.layout["showlegend"] = n_legend > 1
    legend_rows = ceil(n_legend * _LEGEND_ENTRY_PX / width) if n_legend > 1 else 0
    height = grid.n_rows * _ROW_PX + _FRAME_PX + legend_rows * _LEGEND_ROW_PX
    figure.layout["height"] = height
    figure.layout["margin"] = figure.layout["margin"] | {"b": 12 + legend_rows * _LEGEND_ROW_PX}
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
                text=f"<b>{plain_text(panel)}</b>",
                x=(left + right) / 2,
                y=high,
                xref="paper",
                yref="paper",
                xanchor="center",
                yanchor="bottom",
                showarrow=False,
                font={"size": 12},
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


def _present(arms: Sequence[str], named: Sequence[str]) -> list[str]:
    return [arm for arm in arms if arm in set(named)]


def curves_figure(
    curves: Sequence[ArmCurve], *, panels: Sequence[str], x: str, y: str, frame: Frame
) -> Figure:
    """Each arm's mean over its runs as a line, with its standard error as a band; one panel an environment.
    Where not all runs have a value, such as after the end of the first, the mean of the others is a thin line
    without a band.

    Args:
        curves: the curves, at most one of each arm in each panel.
        panels: titles of the environments, those without curves included.
        x: title of the horizontal axes.
        y: title of the vertical axes.
        frame: title, arms, theme and width.
    """
    shown = _present(frame.arms, [curve.arm for curve in curves])
    furthest = max((float(curve.x[-1]) for curve in curves if len(curve.x)), default=0.0)
    form = "~s" if furthest >= 1_000 else "~g"  # not "2m" for 0.002
    axis = {"title": {"text": x}, "tickformat": form, "rangemode": "tozero", "nticks": _MAX_TICKS}
    vertical = {"title": {"text": y}, "exponentformat": "SI"}
    figure, grid = _grid_figure(frame, panels, axis, vertical, len(shown))
    figure.layout["legend"]["traceorder"] = "normal"  # Plotly would reverse it, since the bands are filled
    figure.n_total = sum(curve.n_runs for curve in curves)
    legend: set[str] = set()
    for curve in sorted(curves, key=lambda curve: frame.arms.index(curve.arm)):
        looks = look(frame.style(curve.arm), frame.theme)
        x_name, y_name = grid.axes(curve.panel)
        place = {"xaxis": x_name, "yaxis": y_name, "legendgroup": curve.arm}
        about = {"group": curve.arm, "source": curve.panel}
        if curve.n_runs > 1:
            edge = {
                "mode": "lines",
                "line": {"width": 0},
                "hoverinfo": "skip",
                "showlegend": False,
                "meta": about | {"kind": "range"},
            }
            low, high = (np.where(curve.is_whole, bound, np.nan) for bound in (curve.low, curve.high))
            figure.add_scatter(x=curve.x, y=low, **edge, **place)
            fill = {"fill": "tonexty", "fillcolor": faint(looks.colour, _BAND_OPACITY)}
            figure.add_scatter(x=curve.x, y=high, **edge, **fill, **place)
        of = f" (%{{customdata}} of {curve.n_runs} runs)" if curve.n_runs > 1 else ""
        line = {
            "x": curve.x,
            "customdata": curve.n,
            "name": plain_text(curve.arm),
            "hovertemplate": f"{plain_text(curve.arm)}<br>%{{x:.4{form}}}: %{{y:.5~g}}{of}<extra></extra>",
            **place,
        }
        figure.add_scatter(
            y=np.where(curve.is_whole, curve.mean, np.nan),
            mode=looks.mode,
            marker=looks.marker,
            line={"color": looks.colour, "width": 2},
            showlegend=curve.arm not in legend,
            meta=about | {"kind": "line"},
            **line,
        )
        if not curve.is_whole.all():
            rows = np.flatnonzero(~curve.is_whole)
            shown_rows = slice(rows[0], rows[-1] + 1)
            figure.add_scatter(
                y=np.where(curve.is_whole, np.nan, curve.mean)[shown_rows],
                mode="lines",
                line={"color": looks.colour, "width": 1},
                showlegend=False,
                meta=about | {"kind": "partial"},
                **line | {"x": curve.x[shown_rows], "customdata": curve.n[shown_rows]},
            )
        legend.add(curve.arm)
    return figure


def dots_figure(
    dots: Sequence[RunDot], *, panels: Sequence[str], x: str, y: str, log: bool | None, frame: Frame
) -> Figure:
    """The score of each run by a setting as a dot, in the colour of its arm; one panel an environment.

    Args:
        dots: the runs that have both values.
        panels: titles of the environments.
        x: title of the setting.
        y: title of the scores.
        log: whether the setting's axes are logarithmic; None: from a ratio of 20 on.
        frame: title, arms, theme and width.
    """
    shown = _present(frame.arms, [dot.arm for dot in dots])
    axis = {"title": {"text": plain_text(x)}} | _setting_axis([dot.x for dot in dots], log=log)
    form = "" if axis["type"] == "category" else ":.4~g"
    vertical = {"title": {"text": y}, "exponentformat": "SI"}
    figure, grid = _grid_figure(frame, panels, axis, vertical, len(shown))
    figure.n_total = figure.n_shown = len(dots)
    legend: set[str] = set()
    for arm in shown:
        looks = look(frame.style(arm), frame.theme)
        for panel in panels:
            panel_dots = [dot for dot in dots if (dot.arm, dot.panel) == (arm, panel)]
            if not panel_dots:
                continue
            x_name, y_name = grid.axes(panel)
            figure.add_scatter(
                x=[dot.x for dot in panel_dots],
                y=[dot.y for dot in panel_dots],
                text=[plain_text(dot.run) for dot in panel_dots],
                mode="markers",
                marker={
                    "color": faint(looks.colour, 0.55),
                    "size": 8,
                    "symbol": looks.symbol or "circle",
                    "line": {"color": looks.colour, "width": 1},
                },
                name=plain_text(arm),
                legendgroup=arm,
                showlegend=arm not in legend,
                hovertemplate=f"%{{text}}<br>%{{x{form}}}: %{{y:.5~g}}<extra></extra>",
                meta={"source": panel},
                xaxis=x_name,
                yaxis=y_name,
            )
            legend.add(arm)
    return figure


def _setting_axis(values: Sequence[float | str], *, log: bool | None) -> dict[str, Any]:
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if not numbers or len(numbers) < len(values):
        return {"type": "category"}
    low, high = min(numbers), max(numbers)
    is_log = low > 0 and (high >= 20 * low if log is None else log)
    ticks = sorted(set(numbers))
    # Random values have more digits than fit, and may lie close together.
    are_round = all(f"{tick:.2g}" == f"{tick:g}" or tick.is_integer() for tick in ticks)
    if len(ticks) > 6 or not are_round:
        if not is_log:
            return {"type": "linear"}
        # Plotly would label every digit of a decade, which overlap in narrow panels.
        ticks = _log_ticks(low, high)
    shown = {"tickvals": ticks, "ticktext": [tick_text(tick) for tick in ticks]}
    return {"type": "log" if is_log else "linear", **shown}


def _log_ticks(low: float, high: float) -> list[float]:
    """At least two ticks in a range above 0: powers of ten, else 1, 2 and 5 times them, else its ends."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        ticks = [float(f"{factor}e{decade}") for decade in decades for factor in factors]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= 2:
            return inside
    return sorted({low, high})


def sorted_figure(
    scores: Mapping[tuple[str, str], Sequence[float]], *, panels: Sequence[str], y: str, frame: Frame
) -> Figure:
    """The scores of each arm's runs from the highest to the lowest; one panel an environment.

    Args:
        scores: scores by arm and title of the environment.
        panels: titles of the environments.
        y: title of the scores.
        frame: title, arms, theme and width.
    """
    shown = _present(frame.arms, [arm for arm, _ in scores])
    axis = {"title": {"text": "Run, from the best"}, "rangemode": "tozero", "nticks": _MAX_TICKS}
    vertical = {"title": {"text": y}, "exponentformat": "SI"}
    figure, grid = _grid_figure(frame, panels, axis, vertical, len(shown))
    legend: set[str] = set()
    for (arm, panel), values in scores.items():
        looks = look(frame.style(arm), frame.theme)
        x_name, y_name = grid.axes(panel)
        ordered = sorted(values, reverse=True)
        figure.n_total += len(ordered)
        figure.add_scatter(
            x=list(range(1, len(ordered) + 1)),
            y=ordered,
            mode="lines+markers",
            marker={"color": looks.colour, "size": 6, "symbol": looks.symbol or "circle"},
            line={"color": looks.colour, "width": 1.5},
            name=plain_text(arm),
            legendgroup=arm,
            showlegend=arm not in legend,
            hovertemplate=f"{plain_text(arm)}<br>run %{{x}}: %{{y:.5~g}}<extra></extra>",
            meta={"source": panel},
            xaxis=x_name,
            yaxis=y_name,
        )
        legend.add(arm)
    figure.n_shown = figure.n_total
    return figure


def bars_figure(
    bars: Sequence[Bar],
    *,
    panels: Sequence[str],
    parts: Sequence[str],
    x: str,
    y: str,
    stacked: bool,
    frame: Frame,
) -> Figure:
    """A bar for each arm, or one for each of several parts, stacked or side by side; one panel an
    environment.

    Args:
        bars: values by arm, panel and part.
        panels: titles of the environments.
        parts: the parts, in the order of the legend; `bars` with one part take the colours of their arms.
        x: title of the horizontal axes.
        y: title of the values.
        stacked: whether the parts of an arm are stacked.
        frame: title, arms, theme and width.
    """
    axis = {"title": {"text": plain_text(x)}, "type": "category"}
    vertical = {"title": {"text": plain_text(y)}, "exponentformat": "SI"}
    figure, grid = _grid_figure(frame, panels, axis, vertical, len(parts))
    figure.layout["barmode"] = "stack" if stacked else "group"
    figure.layout["bargap"] = 0.25
    legend: set[str] = set()
    for number, part in enumerate(parts):
        for panel in panels:
            panel_bars = [
                bar for bar in bars if (bar.part, bar.panel) == (part, panel) and bar.value is not None
            ]
            if not panel_bars:
                continue
            x_name, y_name = grid.axes(panel)
            styles = (
                [look(frame.style(bar.arm), frame.theme).colour for bar in panel_bars]
                if len(parts) == 1
                else look(number, frame.theme).colour
            )
            figure.data.append(
                {
                    "type": "bar",
                    "x": [bar.x if isinstance(bar.x, str) else f"{bar.x:g}" for bar in panel_bars],
                    "y": [bar.value for bar in panel_bars],
                    **_whiskers(panel_bars, frame.theme),
                    "text": [f"{bar.n} run{'s' if bar.n != 1 else ''}" for bar in panel_bars],
                    "textposition": "none",
                    "marker": {"color": styles},
                    "name": plain_text(part),
                    "legendgroup": part,
                    "showlegend": part not in legend,
                    "hovertemplate": (
                        f"{plain_text(part)}<br>%{{x}}: %{{y:.4~g}} (%{{text}})<extra></extra>"
                    ),
                    "meta": {"source": panel},
                    "xaxis": x_name,
                    "yaxis": y_name,
                }
            )
            legend.add(part)
    figure.n_total = figure.n_shown = sum(bar.value is not None for bar in bars)
    return figure


def _whiskers(bars: Sequence[Bar], theme: Theme) -> dict[str, Any]:
    if not any(bar.low is not None and bar.high is not None for bar in bars):
        return {}
    return {
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [0 if bar.high is None else bar.high - (bar.value or 0) for bar in bars],
            "arrayminus": [0 if bar.low is None else (bar.value or 0) - bar.low for bar in bars],
            "color": muted(theme),
            "thickness": 1,
        }
    }


def games_figure(bars: Sequence[Bar], *, x: str, reference: float | None, frame: Frame) -> Figure:
    """Horizontal bars of each arm over all environments, the highest first, as in Nair et al. 2015, Figures 3
    and 4.

    Args:
        bars: values by arm and environment; `panel` is the environment.
        x: title of the values.
        reference: a line, such as 100 % of a human; None for none.
        frame: title, arms, theme and width.
    """
    known = [bar for bar in bars if bar.value is not None]
    shown = _present(frame.arms, [bar.arm for bar in known])
    best: dict[str, float] = {}
    for bar in known:
        best[bar.panel] = max(best.get(bar.panel, -np.inf), bar.value or 0.0)
    order = sorted(best, key=lambda panel: best[panel])  # Plotly draws the first at the bottom
    figure = Figure(layout(frame.title, frame.theme, frame.width_px))
    height = _FRAME_PX + len(order) * (12 + 14 * max(1, len(shown)))
    figure.layout |= {
        "height": max(220, height),
        "hovermode": "closest",
        "barmode": "group",
        "bargap": 0.3,
        "showlegend": len(shown) > 1,
        "xaxis": {"title": {"text": plain_text(x)}, "exponentformat": "SI"},
        "yaxis": {"type": "category", "categoryorder": "array", "categoryarray": order},
    }
    figure.layout.pop("hoversubplots", None)
    for arm in shown:
        arm_bars = [bar for bar in known if bar.arm == arm]
        figure.data.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": [bar.value for bar in arm_bars],
                "y": [bar.panel for bar in arm_bars],
                "marker": _bar_marker(look(frame.style(arm), frame.theme), frame.theme),
                "name": plain_text(arm),
                "hovertemplate": f"{plain_text(arm)}<br>%{{y}}: %{{x:.4~g}}<extra></extra>",
            }
        )
    if reference is not None and known:
        line = {"color": muted(frame.theme), "width": 1, "dash": "dash"}
        figure.add_line(line, x0=reference, x1=reference, y0=0, y1=1, xref="x", yref="paper")
    figure.n_total = figure.n_shown = len(known)
    return figure


def _bar_marker(looks: Look, theme: Theme) -> dict[str, Any]:
    if not looks.symbol:
        return {"color": looks.colour}
    shape, size = _HATCHES[looks.symbol]
    pattern = {"shape": shape, "size": size, "solidity": 0.3, "fillmode": "overlay", "fgcolor": ground(theme)}
    return {"color": looks.colour, "pattern": pattern}


def profile_figure(profiles: Sequence[Profile], *, x: str, target: float, frame: Frame) -> Figure:
    """The share of each arm's runs above each normalised score, as steps (Agarwal et al. 2021, Figure 7).

    Args:
        profiles: profiles of each arm, over the same environments.
        x: title of the scores.
        target: the score of a person or of DQN, a line.
        frame: title, arms, theme and width.
    """
    figure = Figure(layout(frame.title, frame.theme, frame.width_px))
    width = frame.width_px or _MEDIUM_PX
    legend_rows = ceil(len(profiles) * _LEGEND_ENTRY_PX / width) if len(profiles) > 1 else 0
    figure.layout |= {
        "height": _ROW_PX + _FRAME_PX + legend_rows * _LEGEND_ROW_PX,
        "hovermode": "closest",
        "showlegend": len(profiles) > 1,
        "xaxis": {"title": {"text": plain_text(x)}, "rangemode": "tozero", "nticks": _MAX_TICKS},
        "yaxis": {"title": {"text": "Share of runs above"}, "range": [0, 1.02], "tickformat": ".0%"},
    }
    figure.layout["margin"] = figure.layout["margin"] | {"b": 12 + legend_rows * _LEGEND_ROW_PX}
    figure.layout.pop("hoversubplots", None)
    for profile in profiles:
        looks = look(frame.style(profile.arm), frame.theme)
        figure.add_scatter(
            x=profile.tau,
            y=profile.share,
            mode=looks.mode,
            marker=looks.marker,
            line={"color": looks.colour, "width": 2, "shape": "hv"},
            name=plain_text(profile.arm),
            hovertemplate=(
                f"{plain_text(profile.arm)}<br>%{{y:.0%}} of the runs above %{{x:.4~g}} %<extra></extra>"
            ),
        )
        figure.n_total += profile.n_runs
    if profiles:
        line = {"color": muted(frame.theme), "width": 1, "dash": "dash"}
        figure.add_line(line, x0=target, x1=target, y0=0, y1=1, xref="x", yref="paper")
    figure.n_shown = figure.n_total
    return figure


def gaps_figure(profiles: Sequence[Profile], *, frame: Frame) -> Figure:
    """The optimality gap of each arm as a bar: lower is better (Agarwal et al. 2021, Figure 9)."""
    bars = [
        Bar(profile.arm, "", profile.optimality_gap, profile.arm, "Optimality gap", profile.n_runs)
        for profile in profiles
    ]
    return bars_figure(
        bars, panels=[""], parts=["Optimality gap"], x="", y="Optimality gap (%)", stacked=False, frame=frame
    )


def reached_figure(
    hours: Mapping[str, Sequence[float]],
    *,
    n_environments: int,
    furthest: float,
    x: str,
    unit: str,
    frame: Frame,
) -> Figure:
    """How many environments each arm's runs have reached a score on by each hour, as steps (Nair et al. 2015,
    Figure 5).

    Args:
        hours: by arm, one hour for each environment on which the score was reached; or another unit.
        n_environments: number of all environments.
        furthest: hours after which the longest run ended.
        x: title of the hours.
        unit: their unit, such as "h".
        frame: title, arms, theme and width.
    """
    figure = Figure(layout(frame.title, frame.theme, frame.width_px))
    furthest = furthest or 1.0
    figure.layout |= {
        "height": _ROW_PX + _FRAME_PX,
        "hovermode": "closest",
        "showlegend": True,  # a single arm, too, is named nowhere else
        "xaxis": {"title": {"text": x}, "range": [0, furthest * 1.05], "nticks": _MAX_TICKS},
        "yaxis": {"title": {"text": "Environments"}, "range": [0, n_environments * 1.05], "dtick": 1},
    }
    if n_environments > _MAX_TICKS:
        figure.layout["yaxis"].pop("dtick")
    figure.layout.pop("hoversubplots", None)
    for arm, arm_hours in hours.items():
        looks = look(frame.style(arm), frame.theme)
        times = sorted(arm_hours)
        figure.add_scatter(
            x=[0.0, *times, furthest],
            y=[0, *range(1, len(times) + 1), len(times)],
            mode=looks.mode,
            marker=looks.marker,
            line={"color": looks.colour, "width": 2, "shape": "hv"},
            name=plain_text(arm),
            showlegend=True,
            hovertemplate=f"{plain_text(arm)}<br>%{{x:.3~g}} {unit}: %{{y}} environments<extra></extra>",
        )
        figure.n_total += len(times)
    figure.n_shown = figure.n_total
    return figure


def counts_figure(
    lines: Sequence[tuple[str, str, Array, Array]], *, x: str, second: str, frame: Frame
) -> Figure:
    """Numbers of processes of one run as steps, and a rate on an axis of its own at the right (Babaeizadeh et
    al. 2017, Figures 2 and 5).

    Args:
        lines: metric, title, x and values; the last one belongs to the second axis.
        x: title of the horizontal axis.
        second: title of the second axis.
        frame: title, theme and width; its arms are the titles of the lines.
    """
    figure = Figure(layout(frame.title, frame.theme, frame.width_px))
    figure.layout |= {
        "height": _ROW_PX + _FRAME_PX + _LEGEND_ROW_PX,
        "hovermode": "x unified",
        "showlegend": True,
        "xaxis": {"title": {"text": x}, "rangemode": "tozero", "nticks": _MAX_TICKS},
        "yaxis": {"title": {"text": "Number"}, "rangemode": "tozero"},
        "yaxis2": {
            "title": {"text": plain_text(second)},
            "overlaying": "y",
            "side": "right",
            "rangemode": "tozero",
            "showgrid": False,
            "tickmode": "auto",  # not at the heights of the ticks at the left
        },
    }
    figure.layout.pop("hoversubplots", None)
    for number, (_, title, times, values) in enumerate(lines):
        is_rate = number == len(lines) - 1
        shape = {} if is_rate else {"shape": "hv"}
        figure.add_scatter(
            x=times,
            y=values,
            mode="lines",
            line={"color": look(number, frame.theme).colour, "width": 2, **shape},
            name=plain_text(title),
            yaxis="y2" if is_rate else "y",
            hovertemplate="%{y:.4~g}",
        )
        figure.n_total += len(times)
    figure.n_shown = figure.n_total
    return figure
