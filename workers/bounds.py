"""Bounds on what is recorded of one attempt. What exceeds them is dropped; the run's log has the amount."""

import copy
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from sqlalchemy.orm import Session

from backend.analysis.metrics import repository as metrics
from backend.specs.events import AnyEvent, PointsEvent

MAX_LINES_PER_MINUTE = 600
"""Log lines of an engine."""

MAX_SERIES = 5_000
"""Metrics of a run times the actors that report them."""

Line = dict[str, Any]
"""A log line: `time`, `level` and `message`."""

_DIGITS = re.compile(r"\d+")


class Bounds:
    """The bounds of one attempt.

    It counts committed batches: a batch is counted in a copy, which takes the original's place once the
    commit is known, so that a retried batch is not counted twice.
    """

    def __init__(self) -> None:
        self._phase = ""
        self._minute = -1
        self._n_lines = 0
        self._series: set[tuple[str, str]] | None = None
        self._dropped: Counter[str] = Counter()
        """Points by metric."""
        self._reported = 0

    def copied(self) -> Self:
        """A copy that counts apart."""
        other = copy.copy(self)
        other._series = None if self._series is None else self._series.copy()
        other._dropped = self._dropped.copy()
        return other

    def is_new_phase(self, phase: str) -> bool:
        """Whether a phase of the start differs from the last by more than a number ("starting 65 of 131
        processes")."""
        before, self._phase = self._phase, _DIGITS.sub("", phase)
        return self._phase != before

    def points(self, session: Session, run_id: str, events: Sequence[AnyEvent]) -> list[PointsEvent]:
        """The points among the events, except those of series beyond the run's first `MAX_SERIES`."""
        if self._series is None:
            self._series = {(row.metric, row.source) for row in metrics.list_series(session, [run_id])}
        kept = []
        for event in events:
            if not isinstance(event, PointsEvent):
                continue
            key = (event.metric, event.source)
            if key in self._series or len(self._series) < MAX_SERIES:
                self._series.add(key)
                kept.append(event)
            elif event.metric in self._dropped or len(self._dropped) < MAX_SERIES:
                self._dropped[event.metric] += len(event.value)
        return kept

    def lines(self, lines: Sequence[Line]) -> list[Line]:
        """The first `MAX_LINES_PER_MINUTE` lines of each minute, and how much was dropped."""
        kept = []
        n_dropped = 0
        for line in lines:
            time: datetime = line["time"]
            if (minute := int(time.timestamp() // 60)) != self._minute:
                self._minute, self._n_lines = minute, 0
            self._n_lines += 1
            if self._n_lines <= MAX_LINES_PER_MINUTE:
                kept.append(line)
            else:
                n_dropped += 1
        if n_dropped:
            message = f"{n_dropped:,} log lines were dropped: the limit is {MAX_LINES_PER_MINUTE} per minute"
            kept.append({"time": lines[-1]["time"], "level": "warning", "message": message})
        return kept

    def dropped_points(self, time: datetime) -> list[Line]:
        """A line about points that were dropped, when their number has grown tenfold since the last one."""
        total = self._dropped.total()
        if total < 10 * self._reported or not total:
            return []
        self._reported = total
        first = ", ".join(list(self._dropped)[:3])
        message = (
            f"{total:,} points of {len(self._dropped):,} metrics have been dropped: a run may have "
            f"{MAX_SERIES:,} series; the first are {first}"
        )
        return [{"time": time, "level": "warning", "message": message}]
