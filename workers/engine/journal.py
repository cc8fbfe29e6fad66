"""What an attempt at a run tells, in the order in which it happened."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from backend.specs.events import AnyEvent, Log
from workers.engine.event_log import EventLog
from workers.engine.points import Counters, PointBuffer


class DivergedError(RuntimeError):
    """Training has left the numbers; what was saved before is intact."""


class Journal:
    """Events and points on their way to the log, and how far the run is."""

    counters: Counters
    """Over all attempts."""
    points: PointBuffer

    def __init__(self, path: Path, on_event: Callable[[AnyEvent], None] | None) -> None:
        """Open the log at `path`; `on_event` is told of every event as it is logged, for a terminal."""
        self.counters = Counters()
        self.points = PointBuffer()
        self._log = EventLog(path)
        self._on_event = on_event

    def say(self, event: AnyEvent) -> None:
        """Log an event."""
        self._log.add(event)
        if self._on_event is not None:
            self._on_event(event)

    def note(self, message: str, level: Literal["info", "warning"] = "info") -> None:
        """Log a line for people."""
        self.say(Log(time=time.time(), level=level, message=message))

    def gather(self, internals: dict[str, float], source: str) -> None:
        """Add to the means that the next report tells.

        Raises:
            DivergedError: a value is not finite.
        """
        for metric, value in internals.items():
            if not math.isfinite(value):
                raise DivergedError(f"{metric} became {value}; a smaller learning rate may keep it finite")
            self.points.gather(metric, value, source)

    def log_points(self, *, settled: bool = False) -> None:
        """Log the points so far; with `settled`, also the means that are still being gathered."""
        if settled:
            self.points.settle(self.counters)
        for points in self.points.take():
            self._log.add(points)

    def flush(self, *, sync: bool = False) -> None:
        """As `EventLog.flush`."""
        self._log.flush(sync=sync)

    def close(self) -> None:
        """As `EventLog.close`."""
        self._log.close()
