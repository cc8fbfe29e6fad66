"""Histograms, images and tables of runs: how many are kept, and what is read of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.media import repository
from backend.db import Media, Run
from backend.db.base import new_id
from backend.platform.errors import NotFound
from backend.runs.runs import service as runs
from backend.specs.events import HistogramEvent
from backend.statistics.histograms import Histogram

MAX_ITEMS = 10_000
"""Histograms, images and tables that are kept of a run, superseded ones among them."""
MAX_BYTES = 2**30
"""Size of all of them."""
PART = "media"
"""What has changed of a run, as its events name it."""

_FULL = (
    f"the run has as many histograms, images and tables as are kept of one ({MAX_ITEMS:,}, or 1 GiB): later "
    "ones are counted, and not kept"
)


@dataclass(frozen=True)
class Content:
    """An image or a table whose file is in the artifact store."""

    kind: str
    file: str
    sha256: str
    media_type: str
    size_bytes: int
    width: int
    height: int
    caption: str | None


def add_histograms(session: Session, run: Run, attempt: int, histograms: Sequence[HistogramEvent]) -> int:
    """Add histograms to a locked run, as far as it has room; return how many are not kept."""
    rows: list[dict[str, Any]] = []
    for histogram in histograms:
        bins = Histogram(np.array(histogram.edges), np.array(histogram.counts)).to_bytes()
        rows.append(
            {
                "kind": "histogram",
                "metric": histogram.metric,
                "agent_steps": histogram.agent_steps,
                "wall_time_s": histogram.wall_time_s,
                "size_bytes": len(bins),
                "bins": bins,
            }
        )
    return _add(session, run, attempt, rows)


def add_file(
    session: Session,
    run: Run,
    content: Content,
    *,
    metric: str,
    agent_steps: int,
    wall_time_s: float,
) -> int:
    """Add an image or a table to a locked run, if it has room; return 1 if it is not kept."""
    where = {"metric": metric, "agent_steps": agent_steps, "wall_time_s": wall_time_s}
    return _add(session, run, run.attempt, [vars(content) | where])


def _add(session: Session, run: Run, attempt: int, rows: list[dict[str, Any]]) -> int:
    n_items, n_bytes = repository.size(session, run.id)
    kept: list[dict[str, Any]] = []
    for row in rows:
        if n_items >= MAX_ITEMS or n_bytes + row["size_bytes"] > MAX_BYTES:
            break  # the order is that of training: what comes later is not kept either
        n_items, n_bytes = n_items + 1, n_bytes + row["size_bytes"]
        kept.append({"id": new_id(), "run_id": run.id, "attempt": attempt, "superseded": False} | row)
    if kept:
        repository.add(session, kept)
    count_not_kept(session, run, len(rows) - len(kept))
    return len(rows) - len(kept)


def count_not_kept(session: Session, run: Run, n: int) -> None:
    """Count items that a locked run has no room for; the first time, its log says so."""
    if n and not run.media_not_kept:
        runs.log(session, run.id, run.attempt, "warning", _FULL)
    run.media_not_kept += n


def has_room(session: Session, run_id: str, size_bytes: int) -> bool:
    """Whether a run may have another item of this size."""
    n_items, n_bytes = repository.size(session, run_id)
    return n_items < MAX_ITEMS and n_bytes + size_bytes <= MAX_BYTES


def cut(session: Session, run_id: str, after_agent_steps: int) -> None:
    """Set aside what a locked run has logged after these agent steps."""
    repository.cut(session, run_id, after_agent_steps)


def get(session: Session, media_id: str) -> Media:
    """An item.

    Raises:
        NotFound: there is none of this id.
    """
    row = repository.get(session, media_id)
    if row is None:
        raise NotFound(f"there is no histogram, image or table {media_id}")
    return row


def histograms_of(session: Session, places: Sequence[repository.Place]) -> list[Histogram]:
    """The histograms at these places."""
    stored = repository.bins_of(session, [place.id for place in places])
    return [Histogram.of_bytes(stored[place.id]) for place in places]
