"""A score of runs against one of their settings."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np

from backend.drawing.figure import Figure
from backend.drawing.palette import Theme, colours, distinct_styles, look
from backend.drawing.theme import faint, layout, muted, plain_text, tick_text
from backend.statistics.estimates import median

LOG_RATIO = 20
"""From this ratio of the largest to the smallest value on, the axis of settings is logarithmic."""
_MAX_TICKS = 12
_TICK_SHARE = 0.14
"""Least distance of two ticks of a log axis, as a share of it."""


Standing = Literal["", "best", "eliminated"]


@dataclass(frozen=True)
class ConfigurationDots:
    """The scores of a sweep's configuration."""

    name: str
    x: float | str
    scores: Sequence[float]
    """One per seed."""
    seeds: Sequence[int]
    iqm: float
    """Interquartile mean of the scores."""
    standing: Standing = ""


@dataclass(frozen=True)
class Dot:
    """One run."""

    run: str
    name: str
    x: float | str
    y: float
    subject: str = ""
    """Equal for runs of an algorithm whose scores can be compared."""
    subject_name: str = ""


def scatter_figure(
    dots: Sequence[Dot],
    *,
    x: str,
    y: str,
    title: str,
    styles: Mapping[str, int] | None = None,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """Each run as a dot in its style, and the median of the runs of a subject with equal settings as a dash.

    Args:
        dots: the runs that have both values. Settings that are not all numbers are drawn as categories.
        x: title of the axis of settings.
        y: title of the axis of scores.
        title: title of the figure.
        styles: style of each run; default: in the order of `dots`.
        theme: light or dark.
        width_px: width for which the title is wrapped; None if unknown.
    """
    figure = Figure(layout(title, theme, width_px))
    numeric = all(isinstance(dot.x, int | float) for dot in dots)
    ordered = sorted(
        dots, key=lambda dot: ("", float(dot.x), dot.subject) if numeric else (str(dot.x), 0.0, dot.subject)
    )
    given = distinct_styles(dot.run for dot in dots) if styles is None else styles
    looks = [look(given[dot.run], theme) for dot in ordered]
    several_subjects = len({dot.subject for dot in dots}) > 1
    figure.layout |= setting_axes([dot.x for dot in ordered], x, y, log=None)
    figure.add_scatter(
        x=[dot.x for dot in ordered],
        y=[dot.y for dot in ordered],
        mode="markers",
        marker={
            "color": [look.colour for look in looks],
            "symbol": [look.symbol or "circle" for look in looks],
            "size": 9,
            "opacity": 0.8,
        },
        text=[plain_text(dot.name) for dot in ordered],
        name="run",
        showlegend=False,
        hovertemplate="%{text}<br>%{x}: %{y:.5~g}<extra></extra>",
    )
    same = [list(alike) for _, alike in groupby(ordered, lambda dot: (dot.x, dot.subject))]
    several = [alike for alike in same if len(alike) > 1]
    if several:
        figure.add_scatter(
            x=[alike[0].x for alike in several],
            y=[median(np.array([dot.y for dot in alike])).value for alike in several],
            text=[
                f"median of {len(alike)} runs"
                + (f", {plain_text(alike[0].subject_name)}" if several_subjects else "")
                for alike in several
            ],
            mode="markers",
            marker=dash(muted(theme)),
            name="median",
            showlegend=True,
            hovertemplate="%{text}<br>%{x}: %{y:.5~g}<extra></extra>",
        )
    return figure


def configurations_figure(
    configurations: Sequence[ConfigurationDots],
    *,
    x: str,
    y: str,
    title: str,
    log: bool | None = None,
    theme: Theme = "light",
) -> Figure:
    """Each seed of a sweep as a dot by its configuration's standing, and each configuration's interquartile
    mean as a dash.

    Args:
        configurations: the configurations with a score.
        x: title of the axis of settings.
        y: title of the axis of scores.
        title: title of the figure.
        log: whether the axis of settings is logarithmic; None: as suits the values.
        theme: light or dark.
    """
    figure = Figure(layout(title, theme, None))
    figure.layout |= setting_axes([configuration.x for configuration in configurations], x, y, log=log)
    accent, grey = colours(theme)[0], muted(theme)
    looks: dict[Standing, tuple[str, dict[str, Any]]] = {
        "": ("score of a seed", {"color": faint(accent, 0.25), "line": {"color": accent, "width": 1}}),
        "best": ("highest interquartile mean", {"color": accent, "line": {"color": accent, "width": 1}}),
        "eliminated": ("eliminated configuration", {"symbol": "circle-open", "color": grey}),
    }
    for standing, (name, marker) in looks.items():
        dots = [
            (configuration, score, seed)
            for configuration in configurations
            if configuration.standing == standing
            for score, seed in zip(configuration.scores, configuration.seeds, strict=True)
        ]
        if dots:
            figure.add_scatter(
                x=[configuration.x for configuration, _, _ in dots],
                y=[score for _, score, _ in dots],
                text=[f"{plain_text(configuration.name)}, seed {seed}" for configuration, _, seed in dots],
                mode="markers",
                marker=marker | {"size": 8},
                name=name,
                hovertemplate="%{text}<br>%{x}: score %{y:.5~g}<extra></extra>",
            )
    figure.add_scatter(
        x=[configuration.x for configuration in configurations],
        y=[configuration.iqm for configuration in configurations],
        text=[plain_text(configuration.name) for configuration in configurations],
        mode="markers",
        marker=dash(grey),
        name="interquartile mean",
        hovertemplate="%{text}<br>%{x}: interquartile mean %{y:.5~g}<extra></extra>",
    )
    figure.layout["showlegend"] = True
    return figure


def dash(colour: str, *, symbol: str = "line-ew-open", size: int = 26) -> dict[str, Any]:
    """The marker of a centre."""
    return {"symbol": symbol, "size": size, "color": colour, "line": {"width": 2}}


def setting_axes(values: Sequence[float | str], x: str, y: str, *, log: bool | None) -> dict[str, Any]:
    """Both axes of scores over a setting; logarithmic as suits the values, if `log` is None."""
    return {
        "hovermode": "closest",
        "xaxis": {"title": {"text": plain_text(x)}, **_axis(values, log=log)},
        "yaxis": {"title": {"text": y}, "exponentformat": "SI"},
    }


def _axis(values: Sequence[float | str], *, log: bool | None) -> dict[str, Any]:
    if not values or not all(isinstance(value, int | float) for value in values):
        return {"type": "category"}
    numbers = [float(value) for value in values]
    low, high = min(numbers), max(numbers)
    ticks = sorted(set(numbers))
    is_log = low > 0 and (high >= LOG_RATIO * low if log is None else log)
    if is_log:
        ticks = log_ticks(ticks)
    elif len(ticks) > _MAX_TICKS:
        return {"type": "linear"}
    shown = {"tickvals": ticks, "ticktext": [tick_text(tick) for tick in ticks]}
    return {"type": "log" if is_log else "linear", **shown}


def log_ticks(tried: Sequence[float]) -> list[float]:
    """Ticks of a log axis: the values that were tried, if they are few, and where there is room 1, 2 and 5
    times powers of ten.

    Args:
        tried: above 0, ascending, at least one.
    """
    low, high = math.log10(tried[0]), math.log10(tried[-1])
    room = _TICK_SHARE * (high - low) or 1.0
    ticks: list[float] = []

    def add(values: Iterable[float]) -> None:
        for value in values:
            at = math.log10(value)
            if all(abs(at - math.log10(tick)) >= room for tick in ticks):
                ticks.append(value)

    if len(tried) <= _MAX_TICKS:
        ticks += tried
    else:
        ticks += [tried[0], tried[-1]]
    decades = range(math.floor(low), math.ceil(high) + 1)
    for factor in (1, 2, 5):  # powers of ten first
        rounds = [float(f"{factor}e{decade}") for decade in decades]
        add(value for value in rounds if low <= math.log10(value) <= high)
    return sorted(set(ticks))
