"""The styles of series: numbers that each view gives in the order in which series entered it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

N_STYLES = 100
"""As many as a view has series at most."""


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
        keys: keys of at most `N_STYLES` series, in the order in which they entered the view. One that enters
            last changes no other.
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
    free = (style for style in range(N_STYLES) if style not in used)
    return {key: given[key] if key in given else next(free) for key in ordered}
