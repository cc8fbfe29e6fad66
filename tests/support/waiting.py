"""Wait for a condition with a deadline: the only polling helpers of the tests."""

import os
import threading
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Literal, TypeVar

T = TypeVar("T")

SCALE = float(os.environ.get("CALLBOARD_TEST_PATIENCE", "1"))
"""Factor of every deadline of the tests, for machines that are slower still."""
PATIENCE_S = 240.0 * SCALE
"""A deadline far above the time on an idle machine, so that load does not fail a test."""
EXPECT_S = 30.0 * SCALE
"""Deadline of what a page shows."""


def until(
    condition: Callable[[], T | None],
    timeout_s: float = PATIENCE_S,
    *,
    every_s: float = 0.02,
    detail: Callable[[], object] | None = None,
) -> T:
    """Wait until `condition` returns something true and return that.

    Raises:
        AssertionError: after `timeout_s`, with `detail()` in the message.
    """
    deadline = monotonic() + timeout_s
    while not (value := condition()):
        if monotonic() > deadline:
            raise AssertionError(
                f"condition still false after {timeout_s:g} s" + (f": {detail()}" if detail else "")
            )
        sleep(every_s)
    return value


def await_worker_threads() -> None:
    """Wait until the threads of a stopped worker have ended.

    A connection that a thread holds while its engine is disposed of stays open; a later test would fail when
    it is collected.
    """

    def running() -> list[str]:
        names = [thread.name for thread in threading.enumerate()]
        ours = ("run-", "job-", "host-agent", "clean-up", "reconciler", "alert")
        return [name for name in names if name.startswith(ours)]

    until(lambda: not running(), detail=running)


def rounds(timeout_s: float = PATIENCE_S) -> Iterator[int]:
    """Number the rounds of a loop that ends by `break` or `return`.

    Raises:
        AssertionError: if the loop still runs after `timeout_s`.
    """
    deadline, n = monotonic() + timeout_s, 0
    while True:
        yield n
        n += 1
        if monotonic() > deadline:
            raise AssertionError(f"still looping after {timeout_s:g} s and {n} rounds")


class Patience:
    """A deadline for a `while` loop: `while patience.lasts() and not enough: ...`."""

    def __init__(self, timeout_s: float = PATIENCE_S, *, detail: Callable[[], object] | None = None) -> None:
        self._timeout_s = timeout_s
        self._detail = detail
        self._ends_at = monotonic() + timeout_s

    def lasts(self) -> Literal[True]:
        """Return True before the deadline.

        Raises:
            AssertionError: after it.
        """
        if monotonic() > self._ends_at:
            detail = f": {self._detail()}" if self._detail else ""
            raise AssertionError(f"still looping after {self._timeout_s:g} s{detail}")
        return True
