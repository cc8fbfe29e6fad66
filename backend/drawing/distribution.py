"""Histograms: how the values of a metric are distributed over training, and at one moment of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from backend.drawing.figure import Figure, FigureOptions
from backend.drawing.palette import Theme, colours
from backend.drawing.theme import faint, layout, muted, plain_text, tick_text
from backend.statistics.columns import Array
from backend.statistics.histograms import Histogram, quantiles

MAX_CLASSES = 18
"""Up to this many whole numbers are drawn as shares, as many as the actions of an Atari game."""

_HEIGHT_PX, _BARS_HEIGHT_PX = 300, 240
"""In a panel."""
_BANDS = ((0.0, 1.0, "all"), (0.0668, 0.9332, "87 %"), (0.1587, 0.8413, "68 %"), (0.3085, 0.6915, "38 %"))
"""Shares below and above a band, and how many of the values it has: of a normal distribution its edges are
0.5, 1 and 1.5 standard deviations from the mean, as in TensorBoard."""


def distribution_figure(
    metric: str,
    steps: Sequence[int],
    histograms: Sequence[Histogram],
    *,
    axis: str,
    n_total: int,
    options: FigureOptions,
) -> Figure:
    """The distribution at each of these steps: the median within nested bands, or shares of whole numbers.

    Args:
        metric: its name, the title.
        steps: agent steps, or iterations, in order; at least one.
        histograms: one for each.
        axis: what the steps count, the label of the axis.
        n_total: how many histograms there are, of which these are drawn.
        options: how it is shown.
    """
    subtitle = "" if n_total == len(steps) else f"{len(steps):,} of {n_total:,} histograms"
    theme = options.theme
    figure = Figure(_layout(metric, subtitle, options, _HEIGHT_PX), n_total=n_total, n_shown=len(steps))
    x = np.array(steps, np.float64)
    classes = _classes(histograms)
    if classes is None:
        _add_bands(figure, x, histograms, theme)
    else:
        _add_shares(figure, x, histograms, classes, theme)
    figure.layout |= {
        "xaxis": {"title": {"text": axis}, "tickformat": "~s"},
        "yaxis": {"title": {"text": plain_text(metric.rpartition("/")[2])}}
        if classes is None
        else {"title": {"text": "Share"}, "range": [0, 1], "tickformat": ".0%"},
    }
    return figure


def histogram_figure(
    metric: str,
    histogram: Histogram,
    *,
    at: str,
    options: FigureOptions,
) -> Figure:
    """One histogram as bars; bins of different widths have the areas that their counts demand.

    Args:
        metric: its name, the title.
        histogram: the histogram.
        at: when it was logged, the subtitle.
        options: how it is shown.
    """
    figure = Figure(_layout(metric, at, options, _BARS_HEIGHT_PX))
    widths = np.diff(histogram.edges)
    is_even = bool(np.allclose(widths, widths[0], rtol=1e-3, atol=0))
    heights = histogram.counts if is_even else histogram.counts / widths
    total = histogram.counts.sum()
    discrete = histogram.is_discrete
    labels = [
        tick_text((low + high) / 2) if discrete else f"{tick_text(float(low))} to {tick_text(float(high))}"
        for low, high in zip(histogram.edges, histogram.edges[1:], strict=False)
    ]
    figure.data.append(
        {
            "type": "bar",
            "name": plain_text(metric),
            "x": (histogram.edges[:-1] + histogram.edges[1:]) / 2,
            "y": heights,
            "width": widths * (0.8 if discrete else 1.0),
            "marker": {"color": colours(options.theme)[0], "line": {"width": 0}},
            "text": [
                f"{label}: {tick_text(float(n))} ({n / total:.1%})"
                for label, n in zip(labels, histogram.counts, strict=True)
            ],
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
            "showlegend": False,
            "meta": {"kind": "bars", "low": histogram.edges[:-1], "high": histogram.edges[1:]},
        }
    )
    ticks = {"dtick": 1} if discrete and len(histogram.counts) <= MAX_CLASSES else {}
    figure.layout |= {
        "hovermode": "closest",
        "bargap": 0,
        "xaxis": {"title": {"text": plain_text(metric.rpartition("/")[2])}, **ticks},
        "yaxis": {"title": {"text": "Values" if is_even else "Values per unit"}, "rangemode": "tozero"},
    }
    return figure


def _layout(metric: str, about: str, options: FigureOptions, height_px: int) -> dict[str, Any]:
    """In a panel, which has the metric as its heading, the title is what is said of the figure."""
    if not options.in_panel:
        return layout(metric, options.theme, options.width_px, about)
    whole = layout(about, options.theme, options.width_px)
    if about:
        title = whole["title"] | {"font": {"size": 12, "color": muted(options.theme)}}
        return whole | {"title": title, "height": height_px}
    untitled = {name: value for name, value in whole.items() if name != "title"}
    return untitled | {"margin": whole["margin"] | {"t": 8}, "height": height_px}


def _classes(histograms: Sequence[Histogram]) -> Array | None:
    """The whole numbers that all histograms count, if they are few; None otherwise."""
    if not all(histogram.is_discrete for histogram in histograms):
        return None
    lowest = min(histogram.edges[0] for histogram in histograms) + 0.5
    highest = max(histogram.edges[-1] for histogram in histograms) - 0.5
    return None if highest - lowest >= MAX_CLASSES else np.arange(lowest, highest + 1)


def _add_shares(
    figure: Figure, x: Array, histograms: Sequence[Histogram], classes: Array, theme: Theme
) -> None:
    shares = np.zeros((len(x), len(classes)))
    for row, histogram in zip(shares, histograms, strict=True):
        first = round(histogram.edges[0] + 0.5 - classes[0])
        row[first : first + len(histogram.counts)] = histogram.counts / histogram.counts.sum()
    palette = colours(theme)
    for number, value in enumerate(classes):
        colour = palette[number % len(palette)]
        figure.add_scatter(
            x=x,
            y=shares[:, number],
            name=tick_text(float(value)),
            mode="lines" if len(x) > 1 else "markers",
            stackgroup="shares",
            line={"width": 0.5, "color": colour},
            fillcolor=faint(colour, 0.75 if number < len(palette) else 0.4),
            hovertemplate="%{y:.1%}<extra>%{fullData.name}</extra>",
            meta={"kind": "area"},
        )
    figure.layout |= {"showlegend": True}


def _add_bands(figure: Figure, x: Array, histograms: Sequence[Histogram], theme: Theme) -> None:
    colour = colours(theme)[0]
    levels = [share for low, high, _ in _BANDS for share in (low, high)] + [0.5]
    values = np.array([quantiles(histogram, levels) for histogram in histograms])
    for number, (_, _, share) in enumerate(_BANDS):
        low, high = values[:, 2 * number], values[:, 2 * number + 1]
        edge = {"width": 0, "color": colour}
        figure.add_scatter(
            x=x, y=low, mode="lines", line=edge, hoverinfo="skip", showlegend=False, meta={"kind": "range"}
        )
        figure.add_scatter(
            x=x,
            y=high,
            name=f"{share} of the values",
            mode="lines",
            line=edge,
            fill="tonexty",
            fillcolor=faint(colour, 0.16),
            hoverinfo="skip",
            showlegend=number > 0,
            meta={"kind": "range"},
        )
    texts = [[tick_text(float(value)) for value in row] for row in values]
    ranges = [f"median {row[-1]}<br>68 %: {row[4]} to {row[5]}<br>all: {row[0]} to {row[1]}" for row in texts]
    figure.add_scatter(
        x=x,
        y=values[:, -1],
        name="median",
        mode="lines" if len(x) > 1 else "markers",
        line={"color": colour, "width": 2},
        text=ranges,
        hovertemplate="%{text}<extra></extra>",
        meta={"kind": "line"},
    )
    figure.layout |= {"showlegend": True}
