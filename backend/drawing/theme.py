"""Colours, templates and the layout shared by all figures."""

import html
import math
import textwrap
from functools import cache
from typing import Any

from backend.drawing.palette import Theme, colours

_TEXT: dict[Theme, str] = {"light": "#1b1e23", "dark": "#e4e6e9"}
_MUTED: dict[Theme, str] = {"light": "#59616c", "dark": "#9da5b0"}
_GROUND: dict[Theme, str] = {"light": "#ffffff", "dark": "#15181e"}
_GRID: dict[Theme, str] = {"light": "#e6e8ec", "dark": "#242933"}
_LINE: dict[Theme, str] = {"light": "#b8bec7", "dark": "#4a515a"}

_ERROR: dict[Theme, str] = {"light": "#c92a2a", "dark": "#ff8787"}

MINUS = "\u2212"

_LINE_PX = 20
_CHARACTER_PX = 8
"""Approximate width of a title's character."""


@cache
def faint(colour: str, opacity: float) -> str:
    """`#rrggbb` at an opacity."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


@cache
def blended(colour: str, below: str, opacity: float) -> str:
    """`#rrggbb` at an opacity over another, as an opaque colour."""
    parts = [(int(colour[at : at + 2], 16), int(below[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * over + (1 - opacity) * under):02x}" for over, under in parts)


def plain_text(text: str) -> str:
    """User input escaped for Plotly, which renders text as HTML and replaces `%{…}` in it."""
    return html.escape(text, quote=False).replace("%{", "%&#123;")


def tick_text(value: float, _: object = None) -> str:
    """A number as Callboard writes it on axes: 0, 8,000, 12.5k, 100k, 4.0M, 6.9e-4."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    # Rounded before the prefix is chosen: 999,999.9 is 1.0M. Without the sign of -0.
    value = float(f"{value:.6g}") or 0.0
    size = abs(value)
    if 0 < size < 1e-3 or size >= 1e15:
        mantissa, exponent = f"{value:.3e}".split("e")
        text = f"{float(mantissa):g}e{int(exponent)}"
    elif size < 1e4:
        text = f"{value:,.6g}"
    else:
        unit, prefix = next((u, p) for u, p in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if size >= u)
        digits = f"{value / unit:.6g}"
        text = digits + (".0" if size < 100 * unit and "." not in digits else "") + prefix
    return text.replace("-", "\N{MINUS SIGN}")


def muted(theme: Theme) -> str:
    """The colour of secondary text and lines."""
    return _MUTED[theme]


def text_colour(theme: Theme) -> str:
    """The colour of text."""
    return _TEXT[theme]


def error(theme: Theme) -> str:
    """The colour of what is wrong."""
    return _ERROR[theme]


def ground(theme: Theme) -> str:
    """The background colour."""
    return _GROUND[theme]


@cache
def template(theme: Theme) -> dict[str, Any]:
    """Fonts, background and grid. Figures share it: do not change it."""
    axis = {
        "gridcolor": _GRID[theme],
        "linecolor": _LINE[theme],
        "zerolinecolor": _LINE[theme],
        "zerolinewidth": 1,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": _LINE[theme],
        "showline": True,
        "automargin": True,
        "separatethousands": True,  # as tables write numbers below 10,000
        "title": {"standoff": 8, "font": {"size": 12}},
    }
    return {
        "layout": {
            "font": {"family": "'Inter Variable', Inter, sans-serif", "size": 12, "color": _TEXT[theme]},
            "paper_bgcolor": _GROUND[theme],
            "plot_bgcolor": _GROUND[theme],
            "colorway": colours(theme),
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"bgcolor": _GROUND[theme], "bordercolor": _LINE[theme]},
        }
    }


def layout(title: str, theme: Theme, width_px: int | None, subtitle: str = "") -> dict[str, Any]:
    """The common layout: title on the left, legend below, one tooltip per x."""
    heading, below = wrapped(title, width_px), wrapped(subtitle, width_px) if subtitle else ""
    heading_px = _LINE_PX * (heading.count("<br>") + 1)
    below_px = 8 + _LINE_PX * (below.count("<br>") + 1) if below else 0
    return {
        "template": template(theme),
        **({} if width_px is None else {"width": width_px}),
        "title": {
            "text": heading,
            "subtitle": {"text": below, "font": {"size": 12, "color": _MUTED[theme]}},
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "yref": "container",
            "y": 1,
            "yanchor": "top",
            # The anchor is the last line; the others are above it.
            "pad": {"l": 12, "t": 8 + heading_px - _LINE_PX},
            "font": {"size": 14},
        },
        "hovermode": "x unified",
        "hoversubplots": "axis",
        # Below the plot: next to it, a phone would have no space left for the curve.
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            # With many lines it scrolls, so that the plot keeps its height.
            "maxheight": 0.35,
        },
        "margin": {"l": 12, "r": 16, "t": 16 + heading_px + below_px, "b": 12, "autoexpand": True},
    }


def in_panel(layout: dict[str, Any]) -> dict[str, Any]:
    """A layout for a panel of a page, which has a heading and a tooltip of its own: dragging selects a range
    of x, and the y axis follows what is in view."""
    margin, yaxis = layout["margin"] | {"t": 8}, layout.get("yaxis", {}) | {"fixedrange": True}
    untitled = {name: value for name, value in layout.items() if name != "title"}
    return untitled | {"hovermode": False, "dragmode": "zoom", "margin": margin, "yaxis": yaxis}


# Relative to the plot: relative to the container, the legend would reduce the plot's height.
LEGEND_AT_RIGHT: dict[str, Any] = {
    "orientation": "v",
    "x": 1.02,
    "y": 1,
    "yref": "paper",
    "yanchor": "top",
    "maxheight": 1,
}
"""A legend next to the plot: for many lines or a small plot, a legend below would take too much of the
height."""


def wrapped(text: str, width_px: int | None) -> str:
    """Text wrapped for a narrow figure, and escaped for Plotly."""
    lines = [text] if width_px is None else textwrap.wrap(text, max(20, width_px // _CHARACTER_PX))
    return "<br>".join(map(plain_text, lines))
