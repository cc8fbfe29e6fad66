"""The styles of series, and the colour and symbol of each.

A style is a number that each view gives in the order in which series entered it.

Any two of the `N_STYLES` styles differ by their symbol, or by at least 15 in CIEDE2000, on both grounds, also
as people with deuteranopia and protanopia see them; each colour has a contrast of at least 3:1 to its ground.
The first row of ten styles is plain lines in the palette's colours. Each further row has a symbol of its own,
and every second one lighter or darker shades of the palette. Dashes are left to reference lines, and to the
lines of several metrics in one chart (`backend.drawing.lines`).

Colour difference: Sharma, Wu and Dalal, "The CIEDE2000 color-difference formula: implementation notes,
supplementary test data, and mathematical observations", Color Research and Application 30(1), 2005, equations
2 to 22. Colour blindness: Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of
color vision deficiency", IEEE Transactions on Visualization and Computer Graphics 15(6), 2009, matrices of
severity 1, applied to linear RGB. Contrast: WCAG 2.2, relative luminance.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, cycle
from typing import Any, Literal, NamedTuple

Theme = Literal["light", "dark"]

N_STYLES = 100
"""As many as a view has series at most."""
N_COLOURS = 10

_COLOURS: dict[Theme, tuple[str, ...]] = {
    "light": (
        "#3f4fc4",
        "#be635e",
        "#12a691",
        "#a53e65",
        "#be8b00",
        "#008a9f",
        "#700048",
        "#526e00",
        "#a27cff",
        "#5b2400",
    ),
    "dark": (
        "#8d9bff",
        "#e58024",
        "#25b881",
        "#aa55ab",
        "#ffd42c",
        "#22b9b5",
        "#ad4c6b",
        "#bef2af",
        "#ffc8ff",
        "#a6653b",
    ),
}
"""The palette; the same hues in the same order."""

_SHADES: dict[Theme, tuple[str, ...]] = {
    "light": (
        "#748aff",
        "#782041",
        "#1b865d",
        "#ed668a",
        "#886000",
        "#003778",
        "#ab4e82",
        "#7f9f0f",
        "#6945eb",
        "#79010a",
    ),
    "dark": (
        "#d7b8ff",
        "#ffcd5e",
        "#55fcc3",
        "#c868f2",
        "#846800",
        "#018b6e",
        "#c1489d",
        "#41b983",
        "#dd84af",
        "#d48726",
    ),
}
"""Its colours, lighter or darker."""

COLOUR_NAMES = ("indigo", "orange", "green", "magenta", "gold", "cyan", "wine", "olive", "lilac", "brown")
"""Of the palette."""

SYMBOLS = (
    "",
    "square",
    "triangle-up",
    "circle-open",
    "cross",
    "triangle-down",
    "x",
    "star",
    "bowtie",
    "hourglass",
)
"""By Plotly's names. Not the filled circle and the diamond, which mark single points and evaluations."""

_SYMBOL_PX = 8
MAX_SYMBOLS = 12
"""Symbols of a line in view. Plotly staggers those of successive lines."""


class Look(NamedTuple):
    """How a series is drawn."""

    colour: str
    symbol: str
    """Empty for a plain line."""
    dash: str = ""
    """By Plotly's name; empty for a solid line."""

    @property
    def line(self) -> dict[str, Any]:
        """The properties of its lines."""
        return {"color": self.colour, "width": 2} | ({"dash": self.dash} if self.dash else {})

    @property
    def mode(self) -> str:
        """The mode of its lines."""
        return "lines+markers" if self.symbol else "lines"

    @property
    def marker(self) -> dict[str, Any] | None:
        """The markers of its lines; None for a plain line."""
        if not self.symbol:
            return None
        outline = {"width": 2} if self.symbol.endswith("-open") else {"width": 0}
        drawn = {"color": self.colour, "symbol": self.symbol, "size": _SYMBOL_PX, "line": outline}
        return drawn | {"maxdisplayed": MAX_SYMBOLS}


def colours(theme: Theme) -> tuple[str, ...]:
    """The palette."""
    return _COLOURS[theme]


def all_colours(theme: Theme) -> tuple[str, ...]:
    """The palette and its shades: style s has colour s modulo their number."""
    return _COLOURS[theme] + _SHADES[theme]


def look(style: int, theme: Theme) -> Look:
    """The colour and symbol of a style."""
    every = all_colours(theme)
    return Look(every[style % len(every)], SYMBOLS[style // N_COLOURS % len(SYMBOLS)])


@dataclass(frozen=True)
class WantedStyles:
    """The styles that a view has chosen."""

    of_runs: Sequence[int] = ()
    """Of its first runs, in their order."""
    of_groups: Mapping[str, int] = field(default_factory=dict)
    """By the id of a group."""


IN_ORDER = WantedStyles()


def distinct_styles(keys: Iterable[str], wanted: Mapping[str, int] | None = None) -> dict[str, int]:
    """A style for each series, so that no two are equal: the one that it wants, or the first free one.

    Args:
        keys: keys of the series, in the order in which they entered the view. One that enters last changes no
            other. Styles of more than `N_STYLES` repeat.
        wanted: by key. Of several series that want one style, the first gets it.
    """
    ordered = list(dict.fromkeys(keys))
    given: dict[str, int] = {}
    used: set[int] = set()
    for key in ordered:
        style = (wanted or {}).get(key)
        if style is not None and 0 <= style < N_STYLES and style not in used:
            given[key] = style
            used.add(style)
    free = chain((style for style in range(N_STYLES) if style not in used), cycle(range(N_STYLES)))
    return {key: given[key] if key in given else next(free) for key in ordered}


def source_styles(owners: Iterable[str], styles: Mapping[str, int]) -> list[int]:
    """A style for each series of a figure, in which runs or groups may have several sources: the first source
    of each has its style, and each further one the first free style.

    Args:
        owners: the run or group of each series, in order. Styles of more than `N_STYLES` series repeat.
        styles: distinct ones of all runs or groups of the view.
    """
    n_sources: Counter[str] = Counter()
    keys = []
    for owner in owners:
        keys.append(f"{owner} {n_sources[owner]}" if n_sources[owner] else owner)
        n_sources[owner] += 1
    if len(styles) <= N_STYLES and styles.keys() >= set(keys):  # as is usual: each has a single source
        return [styles[key] for key in keys]
    in_view = dict.fromkeys([*styles, *keys])
    # The styles of runs that the figure does not have are left to them, as long as there are enough.
    given = distinct_styles(in_view if len(in_view) <= N_STYLES else keys, styles)
    return [given[key] for key in keys]
