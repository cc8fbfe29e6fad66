"""Scalars in the `info` of a custom environment's steps, which become the metrics `env/<name>`.

Each name's metric is the mean, over a report interval, of all steps whose `info` has it: with a name in every
step the mean over steps, with one in an episode's last step alone the mean over episodes.
"""

import numbers
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

MAX_NAMES = 20
"""Names of one run; later ones are ignored."""
MAX_VALUE = 1e30
"""Larger values are ignored: their sum could overflow."""
SEND_INTERVAL_S = 0.25
"""Time between two messages of a process that steps environments."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")

Totals = dict[str, tuple[float, int]]
"""Name -> sum and number of values."""


class InfoTotals:
    """Sums of the scalars in one environment's `info`."""

    def __init__(self) -> None:
        self._totals: Totals = {}
        self._names: set[str] = set()

    def add(self, info: Mapping[Any, Any]) -> None:
        """Add one step's scalars: finite floats, ints and bools, of Python or NumPy. Others are ignored."""
        for name, value in info.items():
            if not isinstance(name, str) or not isinstance(value, numbers.Real | np.bool_):
                continue
            # False for NaN too. The value itself is compared: an int may be too large for a float.
            if not -MAX_VALUE <= value <= MAX_VALUE:  # type: ignore[operator]
                continue
            if name not in self._names:
                if len(self._names) == MAX_NAMES or _NAME.fullmatch(name) is None:
                    continue
                self._names.add(name)
            total, count = self._totals.get(name, (0.0, 0))
            self._totals[name] = (total + float(value), count + 1)

    def take(self) -> Totals:
        """The sums since the last call."""
        totals, self._totals = self._totals, {}
        return totals


def info_of(env: object) -> InfoTotals | None:
    """Where an environment collects its `info`; None for those that are not custom."""
    info = getattr(env, "info", None)
    return info if isinstance(info, InfoTotals) else None


def add_totals(totals: Totals, more: Totals) -> None:
    """Add sums to others, in place."""
    for name, (total, count) in more.items():
        before, n = totals.get(name, (0.0, 0))
        totals[name] = (before + total, n + count)
