"""The line style of a run or group on every chart: one of `N_STYLES` combinations of a colour and a dash."""

from collections.abc import Iterable

from backend.db.base import ID_ALPHABET

N_COLOURS = 8
N_DASHES = 4
N_STYLES = N_COLOURS * N_DASHES


def run_style(run_id: str) -> int:
    """The style of a run: the value of the last character of its id, whatever else is shown."""
    return max(0, ID_ALPHABET.find(run_id[-1:].upper())) % N_STYLES


def group_styles(keys: Iterable[str]) -> dict[str, int]:
    """A style for each group: the one that follows from its key, whatever else is shown.

    Of two groups with the same style, the second has the next free dash of that colour, and after the last
    dash the next colour. An additional group at the end changes none of the others. More groups than styles
    share them.
    """
    found: dict[str, int] = {}
    for key in dict.fromkeys(keys):
        dash, colour = divmod(_hash(key) % N_STYLES, N_COLOURS)
        preferred = (
            (colour + further) % N_COLOURS + N_COLOURS * ((dash + next_dash) % N_DASHES)
            for further in range(N_COLOURS)
            for next_dash in range(N_DASHES)
        )
        used = set(found.values())
        found[key] = next((style for style in preferred if style not in used), _hash(key) % N_STYLES)
    return found


def _hash(key: str) -> int:
    """FNV-1a."""
    value = 0x811C9DC5
    for byte in key.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value
