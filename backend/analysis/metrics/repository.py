"""Series in the database: appended in batches, cut at checkpoints, read by rows.

The live rows of a series are numbered from 0 in order of arrival. Closed chunks hold `CHUNK_ROWS` rows each.
The rest is in open chunks of decreasing size: an append merges the open chunks that are no larger than the
new rows, so that a row is written at most about log2(CHUNK_ROWS) times, however small the appends are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from sqlalchemy import Select, bindparam, delete, func, insert, select, update
from sqlalchemy.orm import Session

from backend.analysis.metrics import rollups
from backend.analysis.metrics.chunks import (
    CHUNK_ROWS,
    POINT_DTYPES,
    by_series,
    decode,
    encode,
    joined,
    n_rows,
    select_rows,
)
from backend.analysis.metrics.rollups import Summary, summarise
from backend.db import Run, Series, SeriesChunk
from backend.db.series import NEW_SERIES
from backend.specs.events import PointsEvent
from backend.statistics.columns import Array, Columns

T = TypeVar("T")

_IDS_PER_STATEMENT = 1000
MAX_NAMES = 1000
"""Metrics that are listed."""

_CHUNKS_PER_READ = 16


class ChunkInfo(NamedTuple):
    """A live chunk without its data. Charts create many: a dataclass takes ten times as long."""

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
        """The row after the last."""
        return self.first_row + self.n_rows


_SERIES = (
    Series.metric,
    Series.source,
    Series.id,
    Series.n_points,
    Series.n_finite,
    Series.mean_value,
    Series.min_value,
    Series.max_value,
)
_CHUNK = [getattr(SeriesChunk, name) for name in ChunkInfo._fields]

# The statements of each chart, built once: to build one takes a third as long as to execute it.
_RUNS = select(Run).where(Run.id.in_(bindparam("run_ids", expanding=True)))
_SERIES_OF_RUNS = (
    select(Series)
    .where(Series.run_id.in_(bindparam("run_ids", expanding=True)))
    .order_by(Series.run_id, Series.metric, Series.source)
)
_SERIES_OF_METRICS = _SERIES_OF_RUNS.where(Series.metric.in_(bindparam("metrics", expanding=True)))
_LIVE_CHUNKS = (
    select(*_CHUNK)
    .where(SeriesChunk.series_id.in_(bindparam("series_ids", expanding=True)))
    .where(SeriesChunk.superseded.is_(False))
    .order_by(SeriesChunk.series_id, SeriesChunk.first_row)
)
_OPEN_CHUNKS = _LIVE_CHUNKS.where(SeriesChunk.closed.is_(False))
_CHUNK_IDS = SeriesChunk.id.in_(bindparam("chunk_ids", expanding=True))
_BLOBS: Mapping[str, Any] = {
    "columns": select(SeriesChunk.id, SeriesChunk.columns).where(_CHUNK_IDS),
    "rollup": select(SeriesChunk.id, SeriesChunk.rollup).where(_CHUNK_IDS),
}


def append(session: Session, run_id: str, attempt: int, revision: int, points: Sequence[PointsEvent]) -> bool:
    """Add points to a run's series, in the given order, in a few statements for any number of series.
    Returns whether some of the series are new.

    Args:
        session: a writing session in which `attempt` was confirmed to hold the run.
        run_id: the run.
        attempt: the attempt that wrote the points.
        revision: the run's revision that this transaction commits.
        points: a series may occur more than once; agent steps may decrease.
    """
    return append_columns(session, run_id, attempt, revision, by_series(points))


def append_columns(
    session: Session, run_id: str, attempt: int, revision: int, points: Mapping[tuple[str, str], Columns]
) -> bool:
    """`append` of points given as columns by metric and source, without `revision`; each series has at least
    one point."""
    if not points:
        return False
    arrived = {
        key: columns | {"revision": np.full(n_rows(columns), revision, POINT_DTYPES["revision"])}
        for key, columns in points.items()
    }
    series = _ensure_series(session, run_id, arrived)
    tails: dict[int, list[ChunkInfo]] = {row.id: [] for row in series.values()}
    for chunk in _chunks(session, _OPEN_CHUNKS, list(tails)):
        tails[chunk.series_id].append(chunk)
    merged = {
        row.id: _to_merge(tails[row.id], n_rows(arrived[key])) for key, row in series.items() if tails[row.id]
    }
    old = points_of(session, [chunk for chunks in merged.values() for chunk in chunks])
    rows, changes = [], []
    for key, row in series.items():
        new = arrived[key]
        parts = [old[chunk.id] for chunk in merged.get(row.id, [])]
        whole = joined([*parts, new])
        n_points = row.n_points + n_rows(new)
        rows += _chunk_rows(row.id, attempt, n_points - n_rows(whole), whole)
        values = Summary(row.n_finite, row.mean_value, row.min_value, row.max_value)
        change = _series_change(row.id, n_points, new["value"], revision)
        changes.append(change | values.joined(summarise(new["value"])).columns())
    _delete(session, list(old))
    session.execute(insert(SeriesChunk), rows)
    session.execute(update(Series), changes)
    return any(row.n_points == 0 for row in series.values())


class _SeriesCut(NamedTuple):
    """What a cut changes of one series."""

    change: dict[str, Any]
    """Columns of the series' row."""
    superseded: list[int]
    """Ids of the chunks of which no row stays live."""
    divided: list[int]
    """Ids of the chunks from the cut on that are replaced: some of their rows stay live, or all."""
    new_chunks: list[dict[str, Any]]
    """Rows of the chunks that take the place of the divided ones."""


def cut(session: Session, run_id: str, after_agent_steps: int, revision: int) -> None:
    """Mark every live point of a run with agent steps above `after_agent_steps` as superseded.

    Superseded rows stay stored, in separate chunks; later live rows continue after the remaining ones.
    """
    reaching = select(SeriesChunk.series_id, func.min(SeriesChunk.first_row)).join(Series)
    reaching = reaching.where(
        Series.run_id == run_id,
        SeriesChunk.superseded.is_(False),
        SeriesChunk.max_agent_steps > after_agent_steps,
    ).group_by(SeriesChunk.series_id)
    first_rows = dict(session.execute(reaching).all())
    live: dict[int, list[ChunkInfo]] = {series_id: [] for series_id in first_rows}
    for chunk in _chunks(session, _LIVE_CHUNKS, list(live)):
        live[chunk.series_id].append(chunk)
    cuts = [
        _cut_series(session, series_id, chunks, first_rows[series_id], after_agent_steps, revision)
        for series_id, chunks in live.items()
    ]
    superseded = [chunk_id for part in cuts for chunk_id in part.superseded]
    for ids in _batched(superseded, _IDS_PER_STATEMENT):
        session.execute(update(SeriesChunk).where(SeriesChunk.id.in_(ids)).values(superseded=True))
    _delete(session, [chunk_id for part in cuts for chunk_id in part.divided])
    if new_chunks := [row for part in cuts for row in part.new_chunks]:
        session.execute(insert(SeriesChunk), new_chunks)
    if cuts:
        cut_at = {"cut_revision": revision, "cut_agent_steps": after_agent_steps}
        session.execute(update(Series), [part.change | cut_at for part in cuts])


def _cut_series(
    session: Session,
    series_id: int,
    chunks: Sequence[ChunkInfo],
    first_row: int,
    after_agent_steps: int,
    revision: int,
) -> _SeriesCut:
    """Divide the live chunks of a series; those before `first_row` have no superseded row."""
    before = [chunk for chunk in chunks if chunk.end_row <= first_row]
    rest = [chunk for chunk in chunks if chunk.first_row >= first_row]
    divided = [chunk for chunk in rest if chunk.min_agent_steps <= after_agent_steps]
    points = points_of(session, divided)
    kept_points: list[Columns] = []
    new_chunks: list[dict[str, Any]] = []
    for chunk in divided:
        is_kept = points[chunk.id]["agent_steps"] <= after_agent_steps
        kept_points.append(select_rows(points[chunk.id], is_kept))
        superseded_points = select_rows(points[chunk.id], ~is_kept)
        if n_rows(superseded_points):
            row = _chunk_row(series_id, chunk.attempt, chunk.first_row, superseded_points)
            new_chunks.append(row | {"superseded": True})
    n_kept = sum(n_rows(part) for part in kept_points)
    if n_kept:
        attempt = max(chunk.attempt for chunk in divided)
        new_chunks += _chunk_rows(series_id, attempt, first_row, joined(kept_points))
    stored = points_of(session, before, ("value",))
    values = [stored[chunk.id]["value"] for chunk in before] + [part["value"] for part in kept_points]
    live_values = np.concatenate(values) if values else np.zeros(0)
    change = _series_change(series_id, first_row + n_kept, live_values, revision)
    return _SeriesCut(
        change=change | summarise(live_values).columns(),
        superseded=[chunk.id for chunk in rest if chunk.min_agent_steps > after_agent_steps],
        divided=[chunk.id for chunk in divided],
        new_chunks=new_chunks,
    )


def list_series(
    session: Session, run_ids: Sequence[str], metrics: Sequence[str] | None = None
) -> Sequence[Series]:
    """The series of runs (of all metrics by default), by run, metric and source."""
    if metrics is None:
        return session.scalars(_SERIES_OF_RUNS, {"run_ids": run_ids}).all()
    return session.scalars(_SERIES_OF_METRICS, {"run_ids": run_ids, "metrics": metrics}).all()


@dataclass(frozen=True)
class Selected:
    """Which series of a run are exported."""

    metrics: Sequence[str] | None = None
    """None: all."""
    sources: bool = True
    """Whether those of single actors are among them."""


ALL = Selected()
"""Every series."""


def recorded_series(session: Session, run_id: str, selected: Selected) -> list[Series]:
    """The selected series of a run that have points, by metric and source."""
    matching = list_series(session, [run_id], selected.metrics)
    return [series for series in matching if series.n_points and (selected.sources or not series.source)]


def count_runs_by_metric(session: Session, run_ids: Sequence[str]) -> list[tuple[str, int]]:
    """Each metric with points, and how many of the runs have it, by name."""
    query = select(Series.metric, func.count(Series.run_id.distinct())).where(
        Series.run_id.in_(run_ids), Series.n_points > 0
    )
    rows = session.execute(query.group_by(Series.metric).order_by(Series.metric))
    return [(row.metric, row[1]) for row in rows]


def runs_of(session: Session, run_ids: Sequence[str]) -> Sequence[Run]:
    """The existing runs among these ids."""
    return session.scalars(_RUNS, {"run_ids": run_ids}).all()


def reached(session: Session, run_ids: Sequence[str], column: str) -> dict[str, float]:
    """By run id, how far it has come in a column of its points, such as `agent_steps`."""
    query = select(Run.id, getattr(Run, column)).where(Run.id.in_(run_ids))
    return dict(session.execute(query).all())


def live_chunks(session: Session, series_ids: Sequence[int]) -> dict[int, list[ChunkInfo]]:
    """By series, the chunks with its live rows, in order."""
    by_series: dict[int, list[ChunkInfo]] = {series_id: [] for series_id in series_ids}
    for chunk in _chunks(session, _LIVE_CHUNKS, series_ids):
        by_series[chunk.series_id].append(chunk)
    return by_series


def points_of(
    session: Session, chunks: Iterable[ChunkInfo], names: Sequence[str] = tuple(POINT_DTYPES)
) -> dict[int, Columns]:
    """By chunk id, the columns `names` of its rows."""
    return {id_: decode(data, names) for id_, data in stored_blobs(session, "columns", chunks)}


def rollups_of(session: Session, chunks: Iterable[ChunkInfo], x: str) -> dict[int, Columns]:
    """By chunk id, the stored buckets of `rollups.BASE_ROWS` rows of closed chunks."""
    return {id_: rollups.unpack(data, x) for id_, data in stored_blobs(session, "rollup", chunks)}


def rollup_x_of(session: Session, chunks: Iterable[ChunkInfo], x: str) -> dict[int, Array]:
    """By chunk id, the x of the last row of each stored bucket of closed chunks."""
    return {id_: rollups.unpack_x(data, x) for id_, data in stored_blobs(session, "rollup", chunks)}


def all_points(session: Session, series_id: int) -> Iterator[Columns]:
    """Every live row of a series in order, several chunks at a time."""
    for chunks in _batched(live_chunks(session, [series_id])[series_id], _CHUNKS_PER_READ):
        data = points_of(session, chunks)
        yield joined([data[chunk.id] for chunk in chunks])


def metric_names(session: Session) -> list[str]:
    """Every recorded metric of runs as a whole, in alphabetical order."""
    # One index probe per metric; DISTINCT would read every series.
    names: list[str] = []
    after = ""
    query = select(func.min(Series.metric)).where(Series.source == "")
    while len(names) < MAX_NAMES:
        name = session.scalar(query.where(Series.metric > after))
        if name is None:
            break
        names.append(name)
        after = name
    return names


def summaries(session: Session, run_ids: Sequence[str], metrics: Sequence[str]) -> Sequence[Series]:
    """The series of these metrics of the runs as a whole."""
    query = select(Series).where(
        Series.run_id.in_(run_ids), Series.metric.in_(metrics), Series.source == "", Series.n_points > 0
    )
    return session.scalars(query).all()


def _ensure_series(
    session: Session, run_id: str, keys: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Any]:
    """The run's series with these metrics and sources, created if missing: rows of `_SERIES`."""
    query = select(*_SERIES).where(Series.run_id == run_id)
    known = {(row.metric, row.source): row for row in session.execute(query)}
    missing = [key for key in keys if key not in known]
    if missing:
        session.info[NEW_SERIES] = session.info.get(NEW_SERIES, 0) + len(missing)
        new = [{"run_id": run_id, "metric": metric, "source": source} for metric, source in missing]
        session.execute(insert(Series), new)
        known = {(row.metric, row.source): row for row in session.execute(query)}
    return {key: known[key] for key in keys}


def _to_merge(tail: Sequence[ChunkInfo], n_new: int) -> Sequence[ChunkInfo]:
    """The open chunks, latest last, that an append of `n_new` rows merges with its own rows."""
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
        part = select_rows(columns, slice(start, start + CHUNK_ROWS))
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


def _series_change(series_id: int, n_points: int, values: Array, revision: int) -> dict[str, Any]:
    last = float(values[-1]) if len(values) and np.isfinite(values[-1]) else None
    return {"id": series_id, "n_points": n_points, "last_value": last, "revision": revision}


def _chunks(session: Session, query: Select[Any], series_ids: Sequence[int]) -> Iterator[ChunkInfo]:
    # Without the session: its work on a statement takes a third as long as the rest, and gives nothing here.
    connection = session.connection()
    for ids in _batched(series_ids, _IDS_PER_STATEMENT):
        for row in connection.execute(query, {"series_ids": ids}):
            yield ChunkInfo(*row)


def _batched(items: Sequence[T], n: int) -> Iterator[Sequence[T]]:
    return (items[first : first + n] for first in range(0, len(items), n))


def stored_blobs(
    session: Session, column: Literal["columns", "rollup"], chunks: Iterable[ChunkInfo]
) -> Iterator[tuple[int, bytes]]:
    """Ids of chunks and what one of their columns holds."""
    for ids in _batched([chunk.id for chunk in chunks], _IDS_PER_STATEMENT):
        yield from session.connection().execute(_BLOBS[column], {"chunk_ids": ids})


def _delete(session: Session, chunk_ids: Sequence[int]) -> None:
    for ids in _batched(chunk_ids, _IDS_PER_STATEMENT):
        session.execute(delete(SeriesChunk).where(SeriesChunk.id.in_(ids)))
