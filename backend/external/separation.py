"""Rows of a batch that are stored, and rows that are dropped."""

import math
from collections.abc import Collection, Sequence

from sqlalchemy.orm import Session

from backend.analysis.metrics.chunks import n_rows
from backend.db import ExternalSource, Run
from backend.drawing.catalogue import EPISODE_RETURN
from backend.external import repository
from backend.external.columns import EPISODE_LENGTH, PointColumns, in_order
from backend.external.schemas import (
    DroppedRows,
    DropReason,
)
from backend.runs.runs import service as runs
from backend.statistics.columns import Columns

ROLLOUT = "rollout/"
"""Section of the metrics that runs are compared by: others never take their room."""

MAX_SERIES = 5_000
"""Maximum number of metrics of a run in sections other than `ROLLOUT`."""

MAX_ROLLOUT_SERIES = 500
"""Maximum number of metrics of a run in the section `ROLLOUT`."""


def separate(session: Session, run: Run, batch: PointColumns) -> tuple[dict[str, Columns], list[DroppedRows]]:
    """By metric, the columns that can be stored, and what cannot, by reason."""
    last = repository.furthest(session, run.id, list(batch.series))
    kept, dropped = {}, _DroppedByReason(of_episodes=batch.n_episodes is not None)
    known: _Metrics | None = None
    for name, columns in batch.series.items():
        if name not in last:
            known = known or _Metrics(repository.series_names(session, run.id))
            if not known.add(name):
                dropped.add("too_many_metrics", n_rows(columns), name, 0)
                continue
        accepted = in_order(columns, last.get(name, 0))
        n_dropped = n_rows(columns) - n_rows(accepted)
        if n_dropped:
            reached = max(last.get(name, 0), int(columns["agent_steps"].max()))
            dropped.add("agent_steps_decrease", n_dropped, name, reached)
        if n_rows(accepted):
            kept[name] = accepted
    return kept, dropped.rows()


class _Metrics:
    """The metrics of a run, and the room that it has for more."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = set(names)
        self._n_rollout = sum(name.startswith(ROLLOUT) for name in names)

    def add(self, name: str) -> bool:
        """Add a metric; False if there is no room. Those of episodes always have room."""
        if name in self._names:
            return True
        is_rollout = name.startswith(ROLLOUT)
        n, most = self._n_rollout, MAX_ROLLOUT_SERIES
        if not is_rollout:
            n, most = len(self._names) - self._n_rollout, MAX_SERIES
        if n >= most and name not in (EPISODE_RETURN, EPISODE_LENGTH):
            return False
        self._names.add(name)
        self._n_rollout += is_rollout
        return True


class _DroppedByReason:
    """Counts of rows, with the first metric of each reason."""

    def __init__(self, *, of_episodes: bool) -> None:
        self._parts: dict[str, DroppedRows] = {}
        self._of_episodes = of_episodes

    def add(self, reason: DropReason, n: int, metric: str, agent_steps: int) -> None:
        part = self._parts.get(reason)
        if part is None:
            self._parts[reason] = DroppedRows(reason=reason, rows=n, metric=metric, agent_steps=agent_steps)
        elif self._of_episodes:
            part.rows = max(part.rows, n)  # of an episode, which is one row, two metrics are dropped
        else:
            part.rows += n

    def rows(self) -> list[DroppedRows]:
        return list(self._parts.values())


def log_dropped(session: Session, run: Run, source: ExternalSource, dropped: Sequence[DroppedRows]) -> None:
    """Log rows that were dropped: the first, and again whenever their number has one more digit."""
    before = source.dropped
    source.dropped += sum(part.rows for part in dropped)
    if before and int(math.log10(before)) == int(math.log10(source.dropped)):
        return
    reasons = "; ".join(
        f"{part.rows:,} of {part.metric} and others, because the run has its maximum of metrics"
        if part.reason == "too_many_metrics"
        else f"{part.rows:,} of {part.metric} and others, behind the {part.agent_steps:,} agent steps reached"
        for part in dropped
    )
    message = f"{source.dropped:,} rows of source {source.source} have been dropped; the latest: {reasons}"
    runs.log(session, run.id, run.attempt, "warning", message)
