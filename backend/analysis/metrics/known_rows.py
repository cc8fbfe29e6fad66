"""Reads points of series through caches, and finds the rows that a client has already, by its revision.

Apart from `charts`, because `seed_groups` reads through the same caches.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.analysis.metrics.chunks import decode
from backend.analysis.metrics.repository import ChunkInfo
from backend.db import Series
from backend.db.engine import caches_of
from backend.platform.caching import CacheKind
from backend.statistics.columns import Array, Columns, bucket_rows

_NEARBY_BUCKETS = 4
"""Buckets that are read first; x usually changes within them."""
_ROWS_BEFORE = 256
"""Rows before the new ones that are fetched with them: smoothing and merging rarely need more."""

_KEPT_ROWS = 2**20
"""Decoded rows that are kept: about 24 MB with three columns each."""
_KEPT_CHUNKS = 4096
"""Maximum number of chunks among them: each counts as at least 256 rows."""
_RANGES_AT_ONCE = 64
_Key = tuple[str, ChunkInfo]
"""A run's id and a chunk of it. Within a run, chunks with different points differ. Across runs they may not,
since a database may give the id of a deleted series to one of another run: hence the run's id."""


_DECODED = CacheKind[_Key, Columns](
    _KEPT_ROWS, lambda columns: max([_KEPT_ROWS // _KEPT_CHUNKS, *map(len, columns.values())])
)
"""The decoded columns of chunks. Each request for the tail of a live curve needs almost the same ones. A
chunk never changes: another one replaces it."""
_RANGES = CacheKind[tuple[str, ChunkInfo, str], tuple[float, float]](2**16)
"""By run id, chunk and column, the lowest and the highest value."""


class PointReader:
    """Reads the points of the chunks of some series. Each chunk is fetched once, and its decoded columns are
    kept for later requests."""

    def __init__(self, session: Session, series: Iterable[Series]) -> None:
        self._session = session
        self._decoded, self._ranges = caches_of(session)[_DECODED], caches_of(session)[_RANGES]
        self._run_ids = {row.id: row.run_id for row in series}
        self._fetched: dict[int, bytes] = {}

    def __call__(self, chunks: Iterable[ChunkInfo], names: Sequence[str]) -> dict[int, Columns]:
        """By chunk id, the named columns."""
        keys = [self._key(chunk) for chunk in chunks]
        known: dict[_Key, Columns] = {key: {} for key in keys} | self._decoded.known(keys)
        missing = {
            key: [name for name in names if name not in columns]
            for key, columns in known.items()
            if not all(name in columns for name in names)
        }
        if missing:
            self._fetch([chunk for _, chunk in missing])
            read = {
                key: known[key] | decode(self._fetched[key[1].id], names) for key, names in missing.items()
            }
            for columns in read.values():
                for column in columns.values():
                    column.flags.writeable = False
            self._decoded.put(read)
            known |= read
        return {chunk.id: {name: columns[name] for name in names} for (_, chunk), columns in known.items()}

    def ranges(self, chunks: Iterable[ChunkInfo], name: str) -> dict[int, tuple[float, float]]:
        """By chunk id, the lowest and the highest value of an x column."""
        wanted = list(chunks)
        if name == "agent_steps":
            return {chunk.id: (chunk.min_agent_steps, chunk.max_agent_steps) for chunk in wanted}
        keys = {chunk.id: (*self._key(chunk), name) for chunk in wanted}
        known = self._ranges.known(keys.values())
        missing = [chunk for chunk in wanted if keys[chunk.id] not in known]
        for first in range(0, len(missing), _RANGES_AT_ONCE):
            batch = missing[first : first + _RANGES_AT_ONCE]
            columns = self(batch, (name,))
            read = {}
            for chunk in batch:
                if chunk.closed:  # there may be many
                    self._fetched.pop(chunk.id, None)
                values = columns[chunk.id][name]
                read[keys[chunk.id]] = float(values.min()), float(values.max())
            self._ranges.put(read)
            known |= read
        return {chunk.id: known[keys[chunk.id]] for chunk in wanted}

    def prepare(self, chunks: Iterable[ChunkInfo]) -> None:
        """Fetch at once those of the chunks that are not known, for later calls."""
        keys = [self._key(chunk) for chunk in chunks]
        known = self._decoded.known(keys)
        self._fetch([key[1] for key in keys if key not in known])

    def _key(self, chunk: ChunkInfo) -> _Key:
        return self._run_ids[chunk.series_id], chunk

    def _fetch(self, chunks: Sequence[ChunkInfo]) -> None:
        missing = [chunk for chunk in chunks if chunk.id not in self._fetched]
        if missing:
            self._fetched |= dict(repository.stored_blobs(self._session, "columns", missing))


def rows_known(
    points_of: PointReader,
    series: Sequence[Series],
    chunks: Mapping[int, list[ChunkInfo]],
    since: Mapping[str, int],
) -> dict[int, int]:
    """By series id, how many rows arrived up to the client's revision; without series that were cut
    after it."""
    n_rows_by_series = {}
    edges = {}  # the first chunk with rows that the client lacks
    for member in series:
        revision = since[member.run_id]
        if member.cut_revision > revision:
            continue
        n_rows_by_series[member.id] = chunks[member.id][-1].end_row if chunks[member.id] else 0
        for chunk in chunks[member.id]:
            if chunk.revision > revision:
                edges[member.id] = (chunk, revision)
                break
    points_of.prepare(
        chunk
        for series_id, (edge, _) in edges.items()
        for chunk in chunks[series_id]
        if not chunk.closed and chunk.end_row > edge.first_row - _ROWS_BEFORE
    )
    data = points_of([chunk for chunk, _ in edges.values()], ("revision",))
    for series_id, (chunk, revision) in edges.items():
        before = np.searchsorted(data[chunk.id]["revision"], revision, side="right")
        n_rows_by_series[series_id] = chunk.first_row + int(before)
    return n_rows_by_series


def rows_kept(
    points_of: PointReader,
    chunks: Mapping[int, list[ChunkInfo]],
    column: str,
    max_points: int,
    known: Mapping[int, int],
) -> tuple[dict[int, int], dict[int, int]]:
    """Reduce the known rows to those in buckets that a client keeps if it merges adjacent buckets of equal x.

    The client keeps the whole buckets before the first new row. It does not keep the last merged one of them
    if any row of the next bucket has its x, since the client may have had fewer rows of the next bucket.

    Returns:
        kept: by series id, a number of known rows, of which the client keeps the whole buckets; all rows if
            none is new. If so few rows have smaller buckets than all have, `charts._plan` makes the client
            start from scratch.
        last_kept: by series id, the first row of the last merged bucket that it keeps.
    """
    kept, last_kept, undecided = dict(known), dict[int, int](), dict[int, tuple[int, int]]()
    for series_id, n in known.items():
        n_rows = chunks[series_id][-1].end_row if chunks[series_id] else 0
        size = bucket_rows(n_rows, max_points)
        # Otherwise no whole bucket is known or no row is new, and `charts._plan` needs n as it is.
        if size <= n < n_rows:
            undecided[series_id] = size, n // size * size
    n_buckets = _NEARBY_BUCKETS
    while undecided:
        near = {
            series_id: [
                chunk
                for chunk in chunks[series_id]
                if chunk.end_row > start - size * n_buckets and chunk.first_row < start + size
            ]
            for series_id, (size, start) in undecided.items()
        }
        points = points_of([chunk for series_chunks in near.values() for chunk in series_chunks], (column,))
        for series_id, series_chunks in near.items():
            size, start = undecided[series_id]
            x = np.concatenate([points[chunk.id][column] for chunk in series_chunks])
            at = start - series_chunks[0].first_row
            # The last x of each kept bucket, from the newest one back: equal ones were merged.
            last_x_newest_first = x[at - 1 :: -size]
            n_merged_with_next = (
                _n_equal(last_x_newest_first) if (x[at : at + size] == last_x_newest_first[0]).any() else 0
            )
            n_in_last_kept = _n_equal(last_x_newest_first[n_merged_with_next:])
            if series_chunks[0].first_row and n_merged_with_next + n_in_last_kept == len(last_x_newest_first):
                continue  # the merged bucket may begin in chunks that were not looked at
            del undecided[series_id]
            if n_merged_with_next:
                kept[series_id] = start = start - size * n_merged_with_next
            if start:
                last_kept[series_id] = start - size * n_in_last_kept
        n_buckets *= 16
    return kept, last_kept


def _n_equal(values: Array) -> int:
    """Length of the leading run of equal values."""
    others = np.flatnonzero(values != values[:1])
    return int(others[0]) if len(others) else len(values)
