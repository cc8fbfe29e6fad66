"""The journal of an attempt: events, log lines and metric points for the event log; the run's counters.

Apart from `event_log`, the format of the file, because workers and commands read that without an engine.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from backend.specs.events import AnyEvent, LogEvent, PointsEvent
from workers.engine.methods.base import DivergedError
from workers.engine.training.event_log import EventLog


@dataclass(slots=True)
class Counters:
    """Progress of a run, over all its attempts."""

    agent_steps: int = 0
    frames: int = 0
    updates: int = 0
    episodes: int = 0
    wall_time_s: float = 0.0

    def as_dict(self) -> dict[str, int | float]:
        """Plain values, for a checkpoint."""
        return asdict(self)


class Journal(EventLog):
    """An event log that also notifies a listener, collects metric points and holds the run's counters.

    Args:
        path: the event log's file.
        on_event: called with every event but points as it is logged, for a terminal.
    """

    counters: Counters
    """Counters over all attempts."""

    def __init__(self, path: Path, on_event: Callable[[AnyEvent], None] | None = None) -> None:
        super().__init__(path)
        self.counters = Counters()
        self._on_event = on_event
        self._points: dict[tuple[str, str], PointsEvent] = {}
        self._means: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])

    def emit(self, event: AnyEvent) -> None:
        """Log an event and notify the listener."""
        self.add(event)
        if self._on_event is not None:
            self._on_event(event)

    def log(self, message: str, level: Literal["info", "warning"] = "info") -> None:
        """Log a line of text."""
        self.emit(LogEvent(time=time.time(), level=level, message=message))

    def add_point(self, metric: str, value: float, source: str = "") -> None:
        """Add one point at the current counters.

        Raises:
            DivergedError: the value is not finite.
        """
        _check_finite(metric, value)
        points = self._points.get((metric, source))
        if points is None:
            points = PointsEvent(
                metric=metric,
                source=source,
                agent_steps=[],
                frames=[],
                wall_time_s=[],
                episodes=[],
                value=[],
            )
            self._points[metric, source] = points
        points.agent_steps.append(self.counters.agent_steps)
        points.frames.append(self.counters.frames)
        points.wall_time_s.append(round(self.counters.wall_time_s, 6))  # finer is noise that costs bytes
        points.episodes.append(self.counters.episodes)
        points.value.append(float(value))

    def record(self, metrics: Mapping[str, float], source: str = "") -> None:
        """Add to the means of the next report; a metric named `…_max` keeps its maximum instead.

        Raises:
            DivergedError: a value is not finite.
        """
        for metric, value in metrics.items():
            _check_finite(metric, value)
            entry = self._means[metric, source]
            if metric.endswith("_max") and entry[1]:
                entry[0] = max(entry[0], value)
            else:
                entry[0] += value
                entry[1] += 1

    def record_total(self, metric: str, total: float, count: int) -> None:
        """Add `count` values with this sum to a metric's mean of the next report.

        Raises:
            DivergedError: the sum is not finite.
        """
        _check_finite(metric, total)
        entry = self._means[metric, ""]
        entry[0] += total
        entry[1] += count

    def emit_points(self, *, include_means: bool = False) -> None:
        """Log the points so far; with `include_means`, also one point for each metric recorded since."""
        if include_means:
            for (metric, source), (total, count) in self._means.items():
                self.add_point(metric, total / count, source)
            self._means.clear()
        for points in self._points.values():
            self.add(points)
        self._points.clear()


def _check_finite(metric: str, value: float) -> None:
    if not math.isfinite(value):
        raise DivergedError(metric, value)
