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
    """A style for each group: the colour that its key prefers, or else the next free one.

    An additional group at the end changes none of the others. When every colour is used, they are used again
    with the next dash.
    """
    used = [0] * N_COLOURS
    found: dict[str, int] = {}
    for key in dict.fromkeys(keys):
        preferred = _hash(key)
        colour = min(range(N_COLOURS), key=lambda each: (used[each], (each - preferred) % N_COLOURS))
        found[key] = colour + N_COLOURS * (used[colour] % N_DASHES)
        used[colour] += 1
    return found


def _hash(key: str) -> int:
    """FNV-1a."""
    value = 0x811C9DC5
    for byte in key.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value
