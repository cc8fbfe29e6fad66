"""A matplotlib script that redraws a figure from its CSV.

Everything that comes from the figure stands in the script as one literal, written by `pprint`; the code is
the same for every figure.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pprint import pformat
from typing import Any, Literal

import numpy as np

from backend.drawing.export_script_code import CODE, HEAD
from backend.drawing.export_series import DrawnSeries, drawn_series, plain, printable
from backend.drawing.figure import Figure

LegendPlace = Literal["below", "right", "inside", "none"]

_POINTS_PER_PX = 0.75
_HATCH_PX = 8
"""Wider hatches are sparse."""
_GREY = "#59616c"
_DASHES = {
    "dash": "--",
    "dot": ":",
    "dashdot": "-.",
    "longdash": (0, (8, 3)),
    "longdashdot": (0, (8, 3, 1, 3)),
}
_STEPS = {"hv": "steps-post", "vh": "steps-pre", "hvh": "steps-mid"}
_BOWTIE = [(-1, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)]
_SYMBOLS: dict[str, Any] = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "cross": "P",
    "x": "X",
    "star": "*",
    "triangle-up": "^",
    "triangle-down": "v",
    "triangle-left": "<",
    "triangle-right": ">",
    "pentagon": "p",
    "hexagon": "h",
    "bowtie": _BOWTIE,
    "hourglass": [(y, x) for x, y in _BOWTIE],
    "line-ns": "|",
    "line-ew": "_",
}
"""Symbols of matplotlib by those of Plotly."""


@dataclass(frozen=True)
class ScriptOptions:
    """What the script draws by default; each is an option of the script too."""

    width_in: float = 6.75
    line_width_pt: float = 1.25
    legend: LegendPlace = "below"
    title: str = ""
    log: bool = False
    """Whether the vertical axes are logarithmic."""


def matplotlib_script(figure: Figure, caption: str = "", options: ScriptOptions | None = None) -> str:
    """A script that reads the figure's CSV, and draws it as PDF and SVG.

    Raises:
        ValueError: the figure has a trace that cannot be exported.
    """
    chosen = options or ScriptOptions()
    panels, place_of = _panels(figure)
    # Those after the traces are lines of the layout, which `lines` draws.
    lines = [line for line in drawn_series(figure) if line.number < len(figure.data)]
    bars = _bars(figure, lines)
    literal = {
        "caption": printable(caption),
        "title": printable(chosen.title),
        "width_in": chosen.width_in,
        "line_width_pt": chosen.line_width_pt,
        "legend": chosen.legend,
        "log": chosen.log,
        "panels": panels,
        "has_legend": figure.layout.get("showlegend") is True,
        "series": [drawn for line in lines for drawn in _looks(line, place_of, bars.get(line.number))],
        "lines": [_line(shape, place_of) for shape in figure.layout.get("shapes", []) if _is_line(shape)],
        "areas": [_area(shape, place_of) for shape in figure.layout.get("shapes", []) if _is_rect(shape)],
        "texts": [
            text
            for annotation in figure.layout.get("annotations", [])
            if _is_text(annotation)
            if (text := _text(annotation, place_of, panels)) is not None
        ],
    }
    # Not `str.format`: the literal may contain anything.
    return HEAD + "FIGURE = " + pformat(literal, width=110, sort_dicts=False) + "\n" + CODE


def _panels(figure: Figure) -> tuple[list[dict[str, Any]], dict[str, tuple[int, bool]]]:
    """The plots, those with an axis at the right of another one after the rest; by vertical axis, the number
    of its plot, and whether it counts shares of the height, as an invisible axis over another does."""
    axes = dict.fromkeys(trace.get("yaxis", "y") for trace in figure.data) or {"y": None}
    x_of = {trace.get("yaxis", "y"): trace.get("xaxis", "x") for trace in figure.data}
    own = [name for name in axes if not _axis(figure, name).get("overlaying")]
    over = {name: str(_axis(figure, name)["overlaying"]) for name in axes if name not in own}
    at_right = [name for name in over if _axis(figure, name).get("visible", True)]
    names = [*(own or ["y"]), *at_right]
    place_of: dict[str, tuple[int, bool]] = {name: (number, False) for number, name in enumerate(names)}
    place_of |= {name: (place_of[below][0], True) for name, below in over.items() if name not in at_right}
    panels = []
    for name in names:
        horizontal = x_of.get(name, "x")
        panels.append(
            {
                "over": place_of[over[name]][0] if name in at_right else None,
                "columns": _domain(figure, horizontal),
                "rows": _domain(figure, over.get(name, name)),
                # Plots over one another share their horizontal axis, which is named below one of them.
                "x_axis": horizontal,
                "has_x": len(own) < 2 or _axis(figure, horizontal).get("anchor", "y") == name,
                "x": _axis_literal(_axis(figure, horizontal)),
                "y": _axis_literal(_axis(figure, name)),
            }
        )
    return panels, place_of


def _axis(figure: Figure, name: str) -> Mapping[str, Any]:
    axis: Mapping[str, Any] = figure.layout.get(f"{name[0]}axis{name[1:]}", {})
    return axis


def _domain(figure: Figure, name: str) -> list[float]:
    return [float(end) for end in _axis(figure, name).get("domain", (0.0, 1.0))]


def _axis_literal(axis: Mapping[str, Any]) -> dict[str, Any]:
    title = axis.get("title") or {}
    include = (axis.get("autorangeoptions") or {}).get("include")
    values, texts = axis.get("tickvals"), axis.get("ticktext")
    return {
        "title": plain(title if isinstance(title, str) else title.get("text", "")),
        "scale": axis.get("type", "linear"),
        "range": _numbers(axis["range"]) if axis.get("range") is not None else None,
        "from_zero": axis.get("rangemode") == "tozero",
        "include": _numbers(np.atleast_1d(include)) if include is not None else [],
        "ticks": None if values is None else _numbers(values),
        "tick_texts": None if texts is None else [plain(text) for text in texts],
        "percent": str(axis.get("tickformat", "")).endswith("%"),
        "visible": axis.get("visible", True) is not False,
    }


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in values]


def _bars(figure: Figure, lines: Sequence[DrawnSeries]) -> dict[int, dict[str, Any]]:
    """By number, how a series of bars stands beside or on the others of its plot."""
    by_plot: dict[str, list[DrawnSeries]] = defaultdict(list)
    for line in lines:
        if line.trace["type"] == "bar":
            by_plot[line.trace.get("yaxis", "y")].append(line)
    is_stacked = figure.layout.get("barmode") == "stack"
    places = {}
    for several in by_plot.values():
        is_horizontal = several[0].trace.get("orientation") == "h"
        name = several[0].trace.get("yaxis" if is_horizontal else "xaxis", "y" if is_horizontal else "x")
        drawn = dict.fromkeys(str(value) for line in several for value in line.x)
        categories = [str(value) for value in _axis(figure, name).get("categoryarray") or drawn]
        for at, line in enumerate(several):
            places[line.number] = {
                "categories": categories,
                "is_horizontal": is_horizontal,
                "is_stacked": is_stacked,
                "at": 0 if is_stacked else at,
                "of": 1 if is_stacked else len(several),
            }
    return places


def _looks(
    drawn_line: DrawnSeries,
    place_of: Mapping[str, tuple[int, bool]],
    bars: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """How a series is drawn: once, or once for each run of rows whose markers look the same."""
    trace = drawn_line.trace
    line, marker = trace.get("line") or {}, trace.get("marker") or {}
    mode = trace.get("mode", "lines+markers" if len(drawn_line.x) < 20 else "lines")
    panel, is_share = place_of[trace.get("yaxis", "y")]
    opacity = float(trace.get("opacity", 1.0))
    has_lines = "lines" in mode and trace["type"] != "bar"
    fill, fill_opacity = _colour(
        drawn_line.band.get("fillcolor") or drawn_line.band.get("line", {}).get("color")
    )
    shared = {
        "number": drawn_line.number,
        "label": drawn_line.label if trace.get("showlegend", True) and drawn_line.label else None,
        "panel": panel,
        "is_share": is_share,
        "kind": "bars" if trace["type"] == "bar" else "area" if drawn_line.is_area else drawn_line.kind,
        "bars": bars,
        "error_bars": "error_y" in trace or "error_x" in trace,
        "fill": _hex(fill, fill_opacity) if drawn_line.band else None,
        "hatch": _hatch(drawn_line.band.get("fillpattern") or marker.get("pattern") or {}),
        "has_line": has_lines and "stackgroup" not in trace,
        # Relative to the lines of a figure, which are 2 px wide.
        "line_share": float(line.get("width", 2)) / 2,
        "dash": _dash(str(line.get("dash"))),
        "steps": _STEPS.get(str(line.get("shape")), "default"),
        "max_markers": int(marker.get("maxdisplayed") or 0),
    }
    drawn = []
    for rows, look in _markers(drawn_line, marker if "markers" in mode or trace["type"] == "bar" else {}):
        colour, alpha = _colour(line.get("color") if has_lines else look.get("color"))
        drawn.append(
            shared
            | {
                "rows": rows,
                "colour": _hex(colour, alpha * opacity),
                "marker": _SYMBOLS.get(look["symbol"].removesuffix("-open"), "o") if look else None,
                "marker_pt": look.get("size", 6.0) * _POINTS_PER_PX,
                "marker_colour": _hex(*_colour(look.get("color") or line.get("color"))),
                "edge": _edge(marker) if look else None,
                "is_open": str(look.get("symbol", "")).endswith("-open"),
            }
        )
    return drawn


def _dash(name: str) -> Any:
    """A line's dash: one of Plotly's names, or lengths such as `8px,2px`."""
    if name.endswith("px"):
        return 0, tuple(float(part.removesuffix("px")) / 2 for part in name.split(","))
    return _DASHES.get(name, "-")


def _hatch(pattern: Mapping[str, Any]) -> list[str] | None:
    """The hatch of an area or bar and its colour; None for a plain one."""
    if not pattern.get("shape"):
        return None
    density = 1 if pattern.get("size", _HATCH_PX) > _HATCH_PX else 3
    return [density * str(pattern["shape"]), _hex(*_colour(pattern.get("fgcolor")))]


def _markers(drawn: DrawnSeries, marker: Mapping[str, Any]) -> list[tuple[list[int] | None, dict[str, Any]]]:
    """The looks of the markers, each with the first row and the row after the last; None for all rows."""
    if not marker:
        return [(None, {})]
    names = ("color", "symbol", "size", "opacity")
    given = [
        marker.get("color"),
        marker.get("symbol", "circle"),
        marker.get("size", 6),
        marker.get("opacity", 1),
    ]
    listed = [value if isinstance(value, list | tuple | np.ndarray) else None for value in given]
    if not any(value is not None for value in listed):
        return [(None, _marker(dict(zip(names, given, strict=True))))]
    markers = [
        {
            name: value if values is None else values[row]
            for name, value, values in zip(names, given, listed, strict=True)
        }
        for row in range(len(drawn.x))
    ]
    looks: list[tuple[list[int] | None, dict[str, Any]]] = []
    for _, alike in groupby(range(len(markers)), key=lambda row: str(markers[row])):
        rows = list(alike)
        looks.append(([rows[0], rows[-1] + 1], _marker(markers[rows[0]])))
    return looks


def _marker(look: Mapping[str, Any]) -> dict[str, Any]:
    colour, alpha = _colour(look["color"])
    shown = _hex(colour, alpha * float(look["opacity"]))
    return {"color": shown, "symbol": str(look["symbol"]), "size": float(look["size"])}


def _edge(marker: Mapping[str, Any]) -> list[Any] | None:
    """The colour of the markers' outline and its width; None without one."""
    outline = marker.get("line") or {}
    if not isinstance(outline.get("color"), str):
        return None
    return [_hex(*_colour(outline["color"])), float(outline.get("width", 1)) * _POINTS_PER_PX]


def _is_line(shape: Mapping[str, Any]) -> bool:
    return shape.get("type") == "line"


def _line(shape: Mapping[str, Any], place_of: Mapping[str, tuple[int, bool]]) -> dict[str, Any]:
    line = shape.get("line") or {}
    colour, alpha = _colour(line.get("color"))
    return {
        **_place(shape, place_of),
        "x": [_position(shape["x0"]), _position(shape["x1"])],
        "y": [_position(shape["y0"]), _position(shape["y1"])],
        "colour": _hex(colour, alpha),
        "line_share": float(line.get("width", 2)) / 2,
        "dash": _dash(str(line.get("dash"))),
    }


def _is_rect(shape: Mapping[str, Any]) -> bool:
    return shape.get("type") == "rect"


def _area(shape: Mapping[str, Any], place_of: Mapping[str, tuple[int, bool]]) -> dict[str, Any]:
    opacity = float(shape.get("opacity", 1.0))
    colour, alpha = _colour(shape.get("fillcolor"))
    return {
        **_place(shape, place_of),
        "x": [_position(shape["x0"]), _position(shape["x1"])],
        "y": [_position(shape["y0"]), _position(shape["y1"])],
        "colour": _hex(colour, alpha * opacity if "fillcolor" in shape else 0.0),
    }


def _is_text(annotation: Mapping[str, Any]) -> bool:
    return bool(annotation.get("text")) and not annotation.get("showarrow", True)


def _text(
    annotation: Mapping[str, Any],
    place_of: Mapping[str, tuple[int, bool]],
    panels: Sequence[Mapping[str, Any]],
) -> dict[str, Any] | None:
    """A text of a plot; one with a place on the page, such as a title, belongs to the plot in whose area or
    on whose edge it stands. None if that plot has no trace."""
    place = _place(annotation, place_of)
    x, y = _position(annotation.get("x", 0.5)), _position(annotation.get("y", 0.5))
    if annotation.get("xref") == annotation.get("yref") == "paper":
        at_x, at_y = float(x), float(y)
        for number, panel in enumerate(panels):
            (left, right), (low, high) = panel["columns"], panel["rows"]
            if left <= at_x <= right and low <= at_y <= high:
                place["panel"] = number
                x, y = (at_x - left) / (right - left), (at_y - low) / (high - low)
                break
        else:
            return None
    colour, alpha = _colour((annotation.get("font") or {}).get("color"))
    vertical = {"middle": "center", "auto": "center"}
    return {
        **place,
        "x": x,
        "y": y,
        "text": plain(annotation["text"]),
        "colour": _hex(colour, alpha),
        "horizontal": str(annotation.get("xanchor", "center")).replace("auto", "center"),
        "vertical": vertical.get(str(annotation.get("yanchor", "middle")), str(annotation.get("yanchor"))),
    }


def _place(item: Mapping[str, Any], place_of: Mapping[str, tuple[int, bool]]) -> dict[str, Any]:
    x, y = str(item.get("xref", "x")), str(item.get("yref", "y"))
    panel, is_share = place_of.get(y.removesuffix(" domain"), (0, False))
    return {
        "panel": panel,
        "x_is_share": x == "paper" or x.endswith(" domain"),
        "y_is_share": y == "paper" or y.endswith(" domain") or is_share,
    }


def _position(value: Any) -> float | str:
    return value if isinstance(value, str) else float(value)


def _colour(colour: Any) -> tuple[str, float]:
    """`#rrggbb` and an opacity of a colour as figures write it."""
    text = str(colour or "")
    if re.fullmatch("#[0-9a-fA-F]{6}", text):
        return text, 1.0
    if re.fullmatch("#[0-9a-fA-F]{8}", text):
        return text[:7], int(text[7:], 16) / 255
    if (match := re.fullmatch(r"rgba?\(([\d.]+), ?([\d.]+), ?([\d.]+)(?:, ?([\d.]+))?\)", text)) is not None:
        red, green, blue = (round(float(part)) for part in match.groups()[:3])
        return f"#{red:02x}{green:02x}{blue:02x}", float(match[4] or 1)
    return _GREY, 1.0


def _hex(colour: str, opacity: float) -> str:
    return colour + f"{round(255 * opacity):02x}"
