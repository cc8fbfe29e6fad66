"""What was not logged as it was given: counted by its reason, and reported in the script once for each."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

MAX_REASONS = 100
"""Maximum number of reasons that are counted apart."""
OTHERS = "other reasons"

log = logging.getLogger("callboard")


class Tally:
    """Counts of one run. Any thread may use it."""

    def __init__(self, name: Callable[[], str]) -> None:
        """Count nothing yet.

        Args:
            name: what messages call the run.
        """
        self._name = name
        self._mutex = threading.RLock()
        self._dropped: dict[str, int] = {}
        self._changed: dict[str, int] = {}

    @property
    def n_changed(self) -> int:
        """How many were logged otherwise than given."""
        with self._mutex:
            return sum(self._changed.values())

    @property
    def dropped(self) -> dict[str, int]:
        """How many were dropped, by reason."""
        with self._mutex:
            return dict(self._dropped)

    def drop(self, n: int, reason: str, details: str = "") -> None:
        """Count what is dropped; report it if its reason is a new one.

        Args:
            n: how many values, episodes, lines and files.
            reason: why; the same words for all of a kind.
            details: what the report says in addition.
        """
        if n > 0 and self._count(self._dropped, n, reason):
            with suppress(Exception):  # it is counted already: a caller would count it again
                self._warn(f"dropped and counted in `run.n_dropped`: {reason}", details)

    def count(self, n: int, reason: str) -> None:
        """Count what is dropped for a reason that is known already."""
        self._count(self._dropped, n, reason)

    def change(self, reason: str, details: str = "", n: int = 1) -> None:
        """Count what is logged otherwise than given; report it if that is new."""
        if self._count(self._changed, n, reason):
            self._warn(reason, details)

    def after_fork(self) -> None:
        """Start anew in a child process: another thread may have held the lock, and nothing was dropped."""
        self._mutex = threading.RLock()
        self._dropped, self._changed = {}, {}

    def _count(self, counts: dict[str, int], n: int, reason: str) -> bool:
        with self._mutex:
            is_new = reason not in counts
            if is_new and len(counts) >= MAX_REASONS:
                reason, is_new = OTHERS, OTHERS not in counts
            counts[reason] = counts.get(reason, 0) + n
            return is_new

    def _warn(self, what: str, details: str) -> None:
        warn("%s: %s%s; reported once", self._name(), what, f": {details}" if details else "")


def warn(message: str, *arguments: object, exc_info: BaseException | bool | None = None) -> None:
    """Warn in the script. A handler of the script's own that fails ends nothing."""
    with suppress(Exception):
        log.warning(message, *arguments, exc_info=exc_info)


def in_words(counts: Mapping[str, int]) -> str:
    """Counts by reason, as the run's log has them."""
    return "; ".join(f"{n:,}: {reason}" for reason, n in counts.items() if n)
