"""Series in the database: appended in batches, cut at checkpoints, read by rows.

The live rows of a series are numbered from 0 in order of arrival. Closed chunks hold `CHUNK_ROWS` rows
each. The rest lies in open chunks of falling sizes: an append takes in the open chunks that are no larger
than what it brings, so a row is written about log2(CHUNK_ROWS) times at most, however small the appends.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.orm import Session

from backend.db import Run, Series, SeriesChunk
from backend.metrics import rollups
from backend.metrics.chunks import CHUNK_ROWS, POINT_DTYPES, Columns, decode, encode, joined, n_rows, taken
from backend.specs.events import Points

T = TypeVar("T")

_IDS_A_STATEMENT = 1000
_CHUNKS_A_READ = 16


@dataclass(frozen=True)
class Chunk:
    """A live chunk without its data."""

    id: int
    series_id: int
    first_row: int
    n_rows: int
    closed: bool
    attempt: int
    min_agent_steps: int
    max_agent_steps: int
    revision: int

    @property
    def end_row(self) -> int:
        """The row after its last."""
        return self.first_row + self.n_rows


_CHUNK = [getattr(SeriesChunk, name) for name in Chunk.__dataclass_fields__]


def append(session: Session, run_id: str, attempt: int, revision: int, points: Sequence[Points]) -> None:
    """Add points to a run's series, in the order given; a handful of statements however many series.

    Args:
        session: a writing session in which `attempt` has been found to hold the run.
        run_id: the run.
        attempt: who brings the points.
        revision: the run's revision that this transaction commits.
        points: one series may occur more than once; agent steps may go back.
    """
    arrived = _by_series(points, revision)
    if not arrived:
        return
    series = _series_of(session, run_id, arrived)
    tails: dict[int, list[Chunk]] = {row.id: [] for row in series.values()}
    for chunk in _chunks(session, list(tails), SeriesChunk.closed.is_(False)):
        tails[chunk.series_id].append(chunk)
    takes_in = {
        row.id: _taken_in(tails[row.id], n_rows(arrived[key])) for key, row in series.items() if tails[row.id]
    }
    old = points_of(session, [chunk for chunks in takes_in.values() for chunk in chunks])
    rows, changes = [], []
    for key, row in series.items():
        new = arrived[key]
        parts = [old[chunk.id] for chunk in takes_in.get(row.id, [])]
        whole = joined([*parts, new])
        n_points = row.n_points + n_rows(new)
        rows += _chunk_rows(row.id, attempt, n_points - n_rows(whole), whole)
        changes.append(_series_change(row.id, n_points, new["value"][-1], revision))
    _delete(session, list(old))
    session.execute(insert(SeriesChunk), rows)
    session.execute(update(Series), changes)


def cut(session: Session, run_id: str, after_agent_steps: int, revision: int) -> None:
    """Set aside every live point of a run whose agent steps are above `after_agent_steps`.

    Superseded rows stay stored, in chunks of their own; the live ones close ranks behind them.
    """
    reaching = select(SeriesChunk.series_id, func.min(SeriesChunk.first_row)).join(Series)
    reaching = reaching.where(
        Series.run_id == run_id,
        SeriesChunk.superseded.is_(False),
        SeriesChunk.max_agent_steps > after_agent_steps,
    ).group_by(SeriesChunk.series_id)
    first_rows = dict(session.execute(reaching).all())
    live: dict[int, list[Chunk]] = {series_id: [] for series_id in first_rows}
    for chunk in _chunks(session, list(live)):
        live[chunk.series_id].append(chunk)
    rows, changes, set_aside, replaced = [], [], [], []
    for series_id, chunks in live.items():
        first_row = first_rows[series_id]
        behind = [chunk for chunk in chunks if chunk.first_row >= first_row]
        whole = [chunk.id for chunk in behind if chunk.min_agent_steps > after_agent_steps]
        mixed = [chunk for chunk in behind if chunk.min_agent_steps <= after_agent_steps]
        before = [chunk for chunk in chunks if chunk.end_row == first_row]
        data = points_of(session, [*before, *mixed])
        kept = []
        for chunk in mixed:
            stays = data[chunk.id]["agent_steps"] <= after_agent_steps
            kept.append(taken(data[chunk.id], stays))
            goes = taken(data[chunk.id], ~stays)
            if n_rows(goes):
                aside = _chunk_row(series_id, chunk.attempt, chunk.first_row, goes)
                rows.append(aside | {"superseded": True})
        n_kept = sum(n_rows(part) for part in kept)
        if n_kept:
            attempt = max(chunk.attempt for chunk in mixed)
            rows += _chunk_rows(series_id, attempt, first_row, joined(kept))
        values = [part["value"] for part in [*(data[chunk.id] for chunk in before), *kept] if n_rows(part)]
        last = values[-1][-1] if values else np.nan
        changes.append(
            _series_change(series_id, first_row + n_kept, last, revision) | {"cut_revision": revision}
        )
        set_aside += whole
        replaced += [chunk.id for chunk in mixed]
    for ids in _batched(set_aside, _IDS_A_STATEMENT):
        session.execute(update(SeriesChunk).where(SeriesChunk.id.in_(ids)).values(superseded=True))
    _delete(session, replaced)
    if rows:
        session.execute(insert(SeriesChunk), rows)
    if changes:
        session.execute(update(Series), changes)


def list_series(
    session: Session, run_ids: Sequence[str], metrics: Sequence[str] | None = None
) -> Sequence[Series]:
    """The series of runs (of some metrics, or all), by run, metric and source."""
    query = select(Series).where(Series.run_id.in_(run_ids))
    if metrics is not None:
        query = query.where(Series.metric.in_(metrics))
    return session.scalars(query.order_by(Series.run_id, Series.metric, Series.source)).all()


def runs_of(session: Session, run_ids: Sequence[str]) -> Sequence[Run]:
    """Those of these runs that there are."""
    return session.scalars(select(Run).where(Run.id.in_(run_ids))).all()


def live_chunks(session: Session, series_ids: Sequence[int]) -> dict[int, list[Chunk]]:
    """By series, the chunks that together hold its live rows, in order."""
    found: dict[int, list[Chunk]] = {series_id: [] for series_id in series_ids}
    for chunk in _chunks(session, series_ids):
        found[chunk.series_id].append(chunk)
    return found


def points_of(
    session: Session, chunks: Iterable[Chunk], names: Sequence[str] = tuple(POINT_DTYPES)
) -> dict[int, Columns]:
    """By chunk id, the columns `names` of its rows."""
    return {id_: decode(data, names) for id_, data in _blobs(session, SeriesChunk.columns, chunks)}


def rollups_of(session: Session, chunks: Iterable[Chunk], x: str) -> dict[int, Columns]:
    """By id, what is stored of closed chunks in buckets of `rollups.BASE_ROWS`."""
    return {id_: rollups.unpack(data, x) for id_, data in _blobs(session, SeriesChunk.rollup, chunks)}


def all_points(session: Session, series_id: int) -> Iterator[Columns]:
    """Every live row of a series in order, some chunks at a time."""
    for chunks in _batched(live_chunks(session, [series_id])[series_id], _CHUNKS_A_READ):
        data = points_of(session, chunks)
        yield joined([data[chunk.id] for chunk in chunks])


def size_bytes(session: Session) -> int:
    """What the database takes on disk, its free pages left out."""
    if session.get_bind().dialect.name == "postgresql":
        return int(session.scalar(text("SELECT pg_database_size(current_database())")))
    pages = [int(session.scalar(text(f"PRAGMA {name}"))) for name in ("page_count", "freelist_count")]
    return (pages[0] - pages[1]) * int(session.scalar(text("PRAGMA page_size")))


def _by_series(points: Sequence[Points], revision: int) -> dict[tuple[str, str], Columns]:
    parts: dict[tuple[str, str], list[Columns]] = {}
    for batch in points:
        columns = {
            name: np.array(getattr(batch, name), dtype)
            for name, dtype in POINT_DTYPES.items()
            if name != "revision"
        }
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"{batch.metric}: columns of {sorted(lengths)} rows")
        columns["revision"] = np.full(lengths.pop(), revision, POINT_DTYPES["revision"])
        if n_rows(columns):
            parts.setdefault((batch.metric, batch.source), []).append(columns)
    return {key: joined(columns) for key, columns in parts.items()}


def _series_of(session: Session, run_id: str, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Any]:
    """The run's series with these metrics and sources, made where missing: rows of id and n_points."""
    query = select(Series.metric, Series.source, Series.id, Series.n_points).where(Series.run_id == run_id)
    known = {(row.metric, row.source): row for row in session.execute(query)}
    missing = [key for key in keys if key not in known]
    if missing:
        new = [{"run_id": run_id, "metric": metric, "source": source} for metric, source in missing]
        session.execute(insert(Series), new)
        known = {(row.metric, row.source): row for row in session.execute(query)}
    return {key: known[key] for key in keys}


def _taken_in(tail: Sequence[Chunk], n_new: int) -> Sequence[Chunk]:
    """The open chunks, newest last, that an append of `n_new` rows makes one with its own."""
    if sum(chunk.n_rows for chunk in tail) + n_new >= CHUNK_ROWS:
        return tail
    first = len(tail)
    while first and tail[first - 1].n_rows <= n_new:
        first -= 1
        n_new += tail[first].n_rows
    return tail[first:]


def _chunk_rows(series_id: int, attempt: int, first_row: int, columns: Columns) -> list[dict[str, Any]]:
    rows = []
    for start in range(0, n_rows(columns), CHUNK_ROWS):
        part = taken(columns, slice(start, start + CHUNK_ROWS))
        row = _chunk_row(series_id, attempt, first_row + start, part)
        if n_rows(part) == CHUNK_ROWS:
            row |= {"closed": True, "rollup": rollups.pack(part)}
        rows.append(row)
    return rows


def _chunk_row(series_id: int, attempt: int, first_row: int, columns: Columns) -> dict[str, Any]:
    return {
        "series_id": series_id,
        "superseded": False,
        "first_row": first_row,
        "n_rows": n_rows(columns),
        "closed": False,
        "attempt": attempt,
        "min_agent_steps": int(columns["agent_steps"].min()),
        "max_agent_steps": int(columns["agent_steps"].max()),
        "revision": int(columns["revision"].max()),
        "rollup": None,
        "columns": encode(columns),
    }


def _series_change(series_id: int, n_points: int, last_value: float, revision: int) -> dict[str, Any]:
    last = float(last_value) if np.isfinite(last_value) else None
    return {"id": series_id, "n_points": n_points, "last_value": last, "revision": revision}


def _chunks(session: Session, series_ids: Sequence[int], *conditions: Any) -> Iterator[Chunk]:
    for ids in _batched(series_ids, _IDS_A_STATEMENT):
        query = select(*_CHUNK).where(
            SeriesChunk.series_id.in_(ids), SeriesChunk.superseded.is_(False), *conditions
        )
        ordered = query.order_by(SeriesChunk.series_id, SeriesChunk.first_row)
        for row in session.execute(ordered):
            yield Chunk(*row)


def _batched(items: Sequence[T], n: int) -> Iterator[Sequence[T]]:
    return (items[first : first + n] for first in range(0, len(items), n))


def _blobs(session: Session, column: Any, chunks: Iterable[Chunk]) -> Iterator[tuple[int, bytes]]:
    for ids in _batched([chunk.id for chunk in chunks], _IDS_A_STATEMENT):
        yield from session.execute(select(SeriesChunk.id, column).where(SeriesChunk.id.in_(ids)))


def _delete(session: Session, chunk_ids: Sequence[int]) -> None:
    for ids in _batched(chunk_ids, _IDS_A_STATEMENT):
        session.execute(delete(SeriesChunk).where(SeriesChunk.id.in_(ids)))
