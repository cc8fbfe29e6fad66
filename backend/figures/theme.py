"""How figures look: colours, templates and the layout that all of them share."""

import html
import textwrap
from typing import Any, Literal

import plotly.graph_objects as go

Theme = Literal["light", "dark"]

_COLOURS: dict[Theme, tuple[str, ...]] = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b5d00", "#333333"),
    "dark": ("#3f8fdc", "#e8743b", "#2cc79b", "#e29cc4", "#e69f00", "#8fd3fa", "#f0e442", "#d6d6d6"),
}
"""Okabe and Ito's colours, darkened or lightened where the ground asks for it; the same hues in one order."""

DASHES = ("solid", "dash", "dot", "dashdot")
"""Tell series apart where there are more of them than colours."""

_TEXT: dict[Theme, str] = {"light": "#1b1e23", "dark": "#e4e6e9"}
_MUTED: dict[Theme, str] = {"light": "#59616c", "dark": "#9da5b0"}
_GROUND: dict[Theme, str] = {"light": "#ffffff", "dark": "#1b1e22"}
_GRID: dict[Theme, str] = {"light": "#e6e8ec", "dark": "#2a2f35"}
_LINE: dict[Theme, str] = {"light": "#b8bec7", "dark": "#4a515a"}

MINUS = "\u2212"

_LINE_PX = 20
_CHARACTER_PX = 8
"""A title's character is about this wide."""


def colours(theme: Theme) -> tuple[str, ...]:
    """All series colours."""
    return _COLOURS[theme]


def styles(keys: list[str], theme: Theme) -> dict[str, tuple[str, str]]:
    """A colour and a dash for each id.

    Each has the colour its id alone says, so that it is the same on every page, unless one before it has
    that: then the next that is free. So one more at the end changes none of the others. Once every colour
    is taken, they are taken again with the next dash.
    """
    palette = _COLOURS[theme]
    taken = [0] * len(palette)
    found: dict[str, tuple[str, str]] = {}
    for key in dict.fromkeys(keys):
        own = colour_index(key)
        index = min(range(len(palette)), key=lambda each: (taken[each], (each - own) % len(palette)))
        found[key] = (palette[index], DASHES[taken[index] % len(DASHES)])
        taken[index] += 1
    return found


def colour_index(key: str) -> int:
    """FNV-1a of the id: as easily done in a browser."""
    value = 0x811C9DC5
    for byte in key.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def faint(colour: str, opacity: float) -> str:
    """`#rrggbb` at an opacity."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def plain_text(text: str) -> str:
    """What people typed, for plotly, which reads text as HTML."""
    return html.escape(text, quote=False)


def muted(theme: Theme) -> str:
    """The colour of what should not stand out."""
    return _MUTED[theme]


def ground(theme: Theme) -> str:
    """The colour that everything is drawn on."""
    return _GROUND[theme]


def template(theme: Theme) -> "go.layout.Template":
    """Type, ground and grid."""
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
        "title": {"standoff": 8},
    }
    return go.layout.Template(
        layout={
            "font": {"family": "'Inter Variable', Inter, sans-serif", "size": 12, "color": _TEXT[theme]},
            "paper_bgcolor": _GROUND[theme],
            "plot_bgcolor": _GROUND[theme],
            "colorway": _COLOURS[theme],
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"bgcolor": _GROUND[theme], "bordercolor": _LINE[theme]},
        }
    )


def layout(title: str, theme: Theme, width_px: int | None, subtitle: str = "") -> dict[str, Any]:
    """The layout that every figure starts from: title on the left, legend below, one tooltip an x."""
    heading, below = wrapped(title, width_px), wrapped(subtitle, width_px) if subtitle else ""
    heading_px = _LINE_PX * (heading.count("<br>") + 1)
    below_px = 8 + _LINE_PX * (below.count("<br>") + 1) if below else 0
    return {
        "template": template(theme),
        "width": width_px,
        "title": {
            "text": heading,
            "subtitle": {"text": below, "font": {"size": 12, "color": _MUTED[theme]}},
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "yref": "container",
            "y": 1,
            "yanchor": "top",
            # The anchor is the last line's: the others stand above it.
            "pad": {"l": 12, "t": 8 + heading_px - _LINE_PX},
            "font": {"size": 14},
        },
        "hovermode": "x unified",
        "hoversubplots": "axis",
        # Below the plot: beside it, a phone would have no room left for the curve.
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            # Of many lines it scrolls: the plot keeps its room.
            "maxheight": 0.25,
        },
        "margin": {"l": 12, "r": 16, "t": 16 + heading_px + below_px, "b": 12, "autoexpand": True},
    }


# By the plot's own edges: by the container's, its height would be taken from the plot's.
BESIDE: dict[str, Any] = {
    "orientation": "v",
    "x": 1.02,
    "y": 1,
    "yref": "paper",
    "yanchor": "top",
    "maxheight": 1,
}
"""The legend beside the plot: of many lines, or of a small plot, of which one below would take the room."""


def wrapped(text: str, width_px: int | None) -> str:
    """A line broken where a narrow figure needs it."""
    if width_px is None:
        return text
    return "<br>".join(textwrap.wrap(text, max(20, width_px // _CHARACTER_PX)))
