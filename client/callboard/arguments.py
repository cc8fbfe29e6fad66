"""Reads the arguments of log methods: what cannot be used is replaced or dropped, counted and reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callboard.cleaning import as_number, as_steps, as_text, kind_of, pairs_of, shown
from callboard.handlers import pass_on
from callboard.limits import MAX_FPS
from callboard.names import Names
from callboard.tally import Tally

DEFAULT_FPS = 30.0
MAX_WAIT_S = 10.0**6

_NAMES = frozenset({str, int, float, bool, bytes, type(None)})
"""Types of names that are kept apart, such as 1 from `"1"`."""


class Arguments:
    """Reads what a script gives one run."""

    def __init__(self, tally: Tally) -> None:
        """Prepare.

        Args:
            tally: counts what is dropped or changed.
        """
        self._tally = tally
        self._names = Names()

    def pairs(self, values: Any) -> list[tuple[Any, Any]]:
        """The names and values of a mapping; what cannot be read is counted as dropped."""
        pairs: list[tuple[Any, Any]] = []
        try:
            if isinstance(values, Mapping):
                pairs.extend(pairs_of(values))  # up to an exception
            else:
                example = 'log a mapping, such as {"loss/policy": 0.1}'
                self._tally.drop(1, f"values that are no mapping: {kind_of(values)}", example)
        except Exception as error:
            pass_on(error)
            n_left = len(values) - len(pairs) if type(values) is dict else 1
            self._tally.drop(n_left, f"a mapping that cannot be read: {kind_of(error)}")
        return pairs

    def steps(self, argument: str, value: Any, latest: int) -> int:
        """Agent steps; the latest ones if they cannot be read."""
        steps, kind = as_steps(value)
        if kind:
            used = "the latest ones are used" if steps is None else "they are cut to whole ones"
            self._tally.change(f"{argument} that are {kind}: {used}", shown(value))
        return latest if steps is None else steps

    def frames(self, value: Any) -> int | None:
        """Emulator frames; None if they cannot be read, and are as many as the agent steps."""
        frames, kind = as_steps(value)
        if kind:
            self._tally.change(f"frames that are {kind}: they are set to whole or agent steps", shown(value))
        return frames

    def metric(self, name: Any) -> str:
        """The metric of a name, which ends in a checksum if no metric can have that name."""
        metric = self._names.stored(name if type(name) in _NAMES else as_text(name))
        if metric != name:
            self._tally.change(
                "a name that no metric can have: another one is used", f"{shown(name)}: {metric}"
            )
        return metric

    def fps(self, value: Any) -> float:
        """Frames per second of a video."""
        fps, _ = as_number(value)
        if fps is None or not 0 < fps <= MAX_FPS:
            self._tally.change(f"fps that are not above 0 and at most {MAX_FPS:g}: 30 is used", shown(value))
            return DEFAULT_FPS
        return fps

    def score(self, value: Any) -> float | None:
        """The score of a checkpoint; None if it is not finite or no number."""
        number, kind = as_number(value)
        if number is None or number - number != 0:
            kind = kind or "not finite"
            self._tally.change(f"a score that is {kind}: the file is stored without it", shown(value))
            return None
        return number


def seconds_of(value: Any, default: float) -> float:
    """A time to wait, at most `MAX_WAIT_S`; the default if it cannot be read."""
    number, _ = as_number(value)
    return default if number is None or number != number else max(0.0, min(number, MAX_WAIT_S))
