"""Phases of an engine's start: long ones are reported to the training loop, which logs them.

The lowest module of the engine, so that methods and processes report a phase without importing the loop.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

COMPILING = "compiling kernels"
"""The phase in which Numba's loops are compiled or loaded from their cache."""

_listeners: list[Callable[[str], None]] = []


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Within it, `listener` is called with each new phase."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def enter_phase(phase: str) -> None:
    """Begin a phase, such as "starting 64 of 131 processes"."""
    for listener in _listeners:
        listener(phase)
