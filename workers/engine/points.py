"""Points on their way to the log: columns a series, means over a report's time."""

import math
from collections import defaultdict
from dataclasses import asdict, dataclass

from backend.specs.events import Points


@dataclass(slots=True)
class Counters:
    """How far a run is, over all its attempts."""

    agent_steps: int = 0
    frames: int = 0
    updates: int = 0
    episodes: int = 0
    wall_time_s: float = 0.0

    def as_dict(self) -> dict[str, int | float]:
        """Plain values, for a checkpoint."""
        return asdict(self)


class PointBuffer:
    """Holds points until they are logged."""

    def __init__(self) -> None:
        self._columns: dict[tuple[str, str], Points] = {}
        self._sums: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])

    def add(self, metric: str, at: Counters, value: float, source: str = "") -> None:
        """Add one point."""
        points = self._columns.get((metric, source))
        if points is None:
            points = Points(
                metric=metric,
                source=source,
                agent_steps=[],
                frames=[],
                wall_time_s=[],
                episodes=[],
                value=[],
            )
            self._columns[metric, source] = points
        points.agent_steps.append(at.agent_steps)
        points.frames.append(at.frames)
        points.wall_time_s.append(round(at.wall_time_s, 6))  # finer is noise that costs bytes
        points.episodes.append(at.episodes)
        points.value.append(float(value))

    def gather(self, metric: str, value: float, source: str = "") -> None:
        """Add to the mean that `settle` will make one point of; of a metric named `…_max`, to the maximum."""
        entry = self._sums[metric, source]
        if metric.endswith("_max") and entry[1]:
            entry[0] = max(entry[0], value)
        else:
            entry[0] += value if not math.isnan(value) else math.nan
            entry[1] += 1

    def settle(self, at: Counters) -> None:
        """Turn what was gathered into one point a metric and source."""
        for (metric, source), (total, count) in self._sums.items():
            self.add(metric, at, total / count, source)
        self._sums.clear()

    def take(self) -> list[Points]:
        """Hand over all points."""
        taken = list(self._columns.values())
        self._columns.clear()
        return taken
