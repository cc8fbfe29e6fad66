"""Numbered child processes that are replaced when they are killed. Needs no torch."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

from workers.engine.processes.child import (
    FAILED,
    ChannelClosedError,
    Child,
    ChildDiedError,
    ChildFailedError,
    stop,
)
from workers.engine.processes.phases import enter_phase

MAX_UNPRODUCTIVE_DEATHS = 3
"""Number of consecutive kills without progress after which a child is not started again."""
REPLACED = "replaced"
"""Kind of a message: a killed child was replaced; a warning for the log."""


class ChildPool:
    """Numbered child processes; one that is killed is replaced, unless this recurs without progress."""

    def __init__(self, start: Callable[[int], Child], progress: Callable[[int], int]) -> None:
        """Without children at first.

        Args:
            start: starts the child of a number.
            progress: counts what the children of a number have achieved; a child that dies before this count
                has grown was unproductive.
        """
        self._start_child = start
        self._progress = progress
        self._children: dict[int, Child] = {}
        self._progress_at_start: dict[int, int] = {}
        self._unproductive_deaths: dict[int, int] = {}

    @property
    def numbers(self) -> Sequence[int]:
        """Numbers of the children, in order."""
        return sorted(self._children)

    @property
    def pids(self) -> Sequence[int | None]:
        """Process ids, in the order of `numbers`."""
        return [self._children[k].process.pid for k in self.numbers]

    def resize(self, n: int) -> None:
        """Start or stop children until their numbers are 0 to n - 1."""
        stop([self._children.pop(k) for k in self.numbers if k >= n])
        for k in range(n):
            if k not in self._children:
                if self._children:  # the first one also waits for the fork server, a phase of its own
                    enter_phase(f"starting {k + 1} of {n} processes")
                self._start(k, unproductive_deaths=0)

    def send(self, k: int, kind: str, content: Any = None) -> None:
        """Send a message to child k; one that is dead is replaced by `receive`."""
        with suppress(ChannelClosedError):
            self._children[k].channel.send(kind, content)

    def receive(self, timeout_s: float | None) -> list[tuple[int, str, Any]]:
        """Wait for messages: number, kind, content; `REPLACED` where a killed child has a successor.

        Raises:
            ChildFailedError: an exception in a child; or one exited by itself, or was killed too often.
        """
        received = []
        numbers = {child.channel.fileno(): k for k, child in self._children.items()}
        for descriptor in wait(list(numbers), timeout_s):
            k = numbers[descriptor]  # type: ignore[index]
            try:
                kind, content = self._children[k].channel.receive()
            except ChannelClosedError:
                kind, content = REPLACED, self._replace(k)
            if kind == FAILED:
                raise ChildFailedError(content)
            received.append((k, kind, content))
        return received

    def _start(self, k: int, *, unproductive_deaths: int) -> None:
        self._progress_at_start[k] = self._progress(k)
        self._unproductive_deaths[k] = unproductive_deaths
        self._children[k] = self._start_child(k)

    def _replace(self, k: int) -> str:
        """Start another child in place of one that was killed; what happened, for the log."""
        child = self._children.pop(k)
        child.channel.close()
        death = ChildDiedError(child.name, child.join())
        if death.signal is None:
            raise ChildFailedError(str(death))
        unproductive = self._progress(k) == self._progress_at_start[k]
        deaths = self._unproductive_deaths[k] + 1 if unproductive else 0
        if deaths >= MAX_UNPRODUCTIVE_DEATHS:
            raise ChildFailedError(f"{death} without progress, {deaths} times in a row")
        self._start(k, unproductive_deaths=deaths)
        return f"{death}; another takes its place"
