"""Reads points of series through caches, and finds the rows that a client has already, by its revision.

Apart from `charts`, because `seed_groups` reads through the same caches.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from sqlalchemy import Pool
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.analysis.metrics.chunks import Array, Columns, decode
from backend.analysis.metrics.repository import ChunkInfo
from backend.analysis.metrics.rollups import bucket_rows
from backend.db import Series

_NEARBY_BUCKETS = 4
"""Buckets that are read first; x usually changes within them."""
_ROWS_BEFORE = 256
"""Rows before the new ones that are fetched with them: smoothing and merging rarely need more."""

_KEPT_ROWS = 2**20
"""Decoded rows that are kept: about 24 MB with three columns each."""
_KEPT_CHUNKS = 4096
"""Chunks whose decoded columns are kept."""
_KEPT_RANGES = 2**16
"""Chunks whose ranges are kept, by column."""
_RANGES_AT_ONCE = 64
_Key = tuple[str, ChunkInfo]
"""A run's id and a chunk of it. Within a run, chunks with different points differ. Across runs they may not,
since a database may give the id of a deleted series to one of another run: hence the run's id."""


class _DecodedChunks:
    """The latest decoded columns of a database's chunks. Each request for the tail of a live curve needs
    almost the same ones. A chunk never changes: another one replaces it."""

    def __init__(self) -> None:
        self._chunks: OrderedDict[_Key, Columns] = OrderedDict()
        self._n_rows = 0
        self.ranges: dict[tuple[str, ChunkInfo, str], tuple[float, float]] = {}
        """By run id, chunk and column, the lowest and the highest value. Needs no lock: one read or write is
        atomic, threads write equal values, and a dict that another thread replaces stays valid."""
        self._lock = Lock()

    def get(self, keys: Sequence[_Key]) -> list[Columns]:
        """The known columns of each chunk."""
        with self._lock:
            for key in keys:
                if key in self._chunks:
                    self._chunks.move_to_end(key)
            return [self._chunks.get(key, {}) for key in keys]

    def put(self, columns: Mapping[_Key, Columns]) -> None:
        """Keep the columns of chunks, which are read-only from now on."""
        for known in columns.values():
            for column in known.values():
                column.flags.writeable = False
        with self._lock:
            for key, known in columns.items():
                if key not in self._chunks:
                    self._n_rows += key[1].n_rows
                self._chunks[key] = known
                self._chunks.move_to_end(key)
            while self._n_rows > _KEPT_ROWS or len(self._chunks) > _KEPT_CHUNKS:
                (_, chunk), _ = self._chunks.popitem(last=False)
                self._n_rows -= chunk.n_rows


_decoded: WeakKeyDictionary[Pool, _DecodedChunks] = WeakKeyDictionary()
"""By the pool of the database's connections: engines with other options share it."""


class PointReader:
    """Reads the points of the chunks of some series. Each chunk is fetched once, and its decoded columns are
    kept for later requests."""

    def __init__(self, session: Session, series: Iterable[Series]) -> None:
        self._session = session
        self._decoded = _decoded.setdefault(session.get_bind().engine.pool, _DecodedChunks())
        self._run_ids = {row.id: row.run_id for row in series}
        self._fetched: dict[int, bytes] = {}

    def __call__(self, chunks: Iterable[ChunkInfo], names: Sequence[str]) -> dict[int, Columns]:
        """By chunk id, the named columns."""
        keys = [self._key(chunk) for chunk in chunks]
        known = dict(zip(keys, self._decoded.get(keys), strict=True))
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
            self._decoded.put(read)
            known |= read
        return {chunk.id: {name: columns[name] for name in names} for (_, chunk), columns in known.items()}

    def ranges(self, chunks: Iterable[ChunkInfo], name: str) -> dict[int, tuple[float, float]]:
        """By chunk id, the lowest and the highest value of an x column."""
        wanted = list(chunks)
        if name == "agent_steps":
            return {chunk.id: (chunk.min_agent_steps, chunk.max_agent_steps) for chunk in wanted}
        known = self._decoded.ranges
        missing = [chunk for chunk in wanted if (*self._key(chunk), name) not in known]
        for first in range(0, len(missing), _RANGES_AT_ONCE):
            batch = missing[first : first + _RANGES_AT_ONCE]
            columns = self(batch, (name,))
            for chunk in batch:
                if chunk.closed:  # there may be many
                    self._fetched.pop(chunk.id, None)
                values = columns[chunk.id][name]
                known[(*self._key(chunk), name)] = float(values.min()), float(values.max())
        if len(known) > _KEPT_RANGES:
            self._decoded.ranges = known = {
                (*self._key(chunk), name): known[(*self._key(chunk), name)] for chunk in wanted
            }
        return {chunk.id: known[(*self._key(chunk), name)] for chunk in wanted}

    def prepare(self, chunks: Iterable[ChunkInfo]) -> None:
        """Fetch at once those of the chunks that are not known, for later calls."""
        keys = [self._key(chunk) for chunk in chunks]
        known = self._decoded.get(keys)
        self._fetch([chunk for (_, chunk), columns in zip(keys, known, strict=True) if not columns])

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
