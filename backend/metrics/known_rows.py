"""Which rows of its series a client has already, by the revision of its data."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db import Series
from backend.metrics import repository
from backend.metrics.chunks import Array, Columns, decode
from backend.metrics.repository import ChunkInfo
from backend.metrics.rollups import bucket_rows

_MOSTLY_ENOUGH = 4
"""Buckets of which one mostly has another x than the next."""
_ROWS_BEFORE = 256
"""Rows before the new ones that smoothing and merging mostly need: they are fetched at once."""


class _ClosedChunks:
    """The latest decoded columns of closed chunks, which never change. The window of a live curve has
    the same ones in thousands of requests."""

    def __init__(self, n_chunks: int) -> None:
        self._n_chunks = n_chunks
        self._of: WeakKeyDictionary[Engine, OrderedDict[ChunkInfo, Columns]] = WeakKeyDictionary()
        self._lock = Lock()

    def get(self, engine: Engine, chunk: ChunkInfo) -> Columns:
        """The known columns of a chunk."""
        with self._lock:
            chunks = self._of.get(engine)
            if chunks is None or chunk not in chunks:
                return {}
            chunks.move_to_end(chunk)
            return chunks[chunk]

    def put(self, engine: Engine, chunk: ChunkInfo, columns: Columns) -> None:
        """Keep the columns of a chunk, which are read-only from now on."""
        for column in columns.values():
            column.flags.writeable = False
        with self._lock:
            chunks = self._of.setdefault(engine, OrderedDict())
            chunks[chunk] = columns
            chunks.move_to_end(chunk)
            while len(chunks) > self._n_chunks:
                chunks.popitem(last=False)


_closed = _ClosedChunks(256)
"""At most some 24 MB with three columns each."""


class PointReader:
    """Reads the points of chunks. Those of open chunks, which several steps need, are fetched and decoded
    once; those of closed ones are kept for later requests."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._engine = session.get_bind().engine
        self._open: dict[int, bytes] = {}
        self._decoded: dict[int, Columns] = {}

    def __call__(self, chunks: Iterable[ChunkInfo], names: Sequence[str]) -> dict[int, Columns]:
        """By chunk id, the named columns."""
        wanted = list(chunks)
        columns = {}
        for chunk in wanted:
            known = _closed.get(self._engine, chunk) if chunk.closed else self._decoded.get(chunk.id, {})
            columns[chunk.id] = known
        incomplete = [chunk for chunk in wanted if any(name not in columns[chunk.id] for name in names)]
        blobs = self.fetch(incomplete) | self._open
        for chunk in incomplete:
            known = columns[chunk.id]
            known = known | decode(blobs[chunk.id], [name for name in names if name not in known])
            columns[chunk.id] = known
            if chunk.closed:
                _closed.put(self._engine, chunk, known)
            else:
                self._decoded[chunk.id] = known
        return {id_: {name: known[name] for name in names} for id_, known in columns.items()}

    def fetch(self, chunks: Iterable[ChunkInfo]) -> dict[int, bytes]:
        """Fetch the chunks that are not there yet, and return them by id; keep the open ones of them."""
        missing = [chunk for chunk in chunks if chunk.id not in self._open]
        fetched = dict(repository.stored_blobs(self._session, "columns", missing))
        self._open |= {chunk.id: fetched[chunk.id] for chunk in missing if not chunk.closed}
        return fetched


def rows_known(
    points_of: PointReader,
    series: Sequence[Series],
    chunks: Mapping[int, list[ChunkInfo]],
    since: Mapping[str, int],
) -> dict[int, int]:
    """By series id, how many rows arrived up to the client's revision; without series that were cut
    after it."""
    rows, edges = {}, {}
    for one in series:
        revision = since[one.run_id]
        if one.cut_revision > revision:
            continue
        rows[one.id] = chunks[one.id][-1].end_row if chunks[one.id] else 0
        for chunk in chunks[one.id]:
            if chunk.revision > revision:
                edges[one.id] = (chunk, revision)
                break
    points_of.fetch(
        chunk
        for series_id, (edge, _) in edges.items()
        for chunk in chunks[series_id]
        if not chunk.closed and chunk.end_row > edge.first_row - _ROWS_BEFORE
    )
    data = points_of([chunk for chunk, _ in edges.values()], ("revision",))
    for series_id, (chunk, revision) in edges.items():
        before = np.searchsorted(data[chunk.id]["revision"], revision, side="right")
        rows[series_id] = chunk.first_row + int(before)
    return rows


def rows_kept(
    points_of: PointReader,
    chunks: Mapping[int, list[ChunkInfo]],
    column: str,
    max_points: int,
    known: Mapping[int, int],
) -> tuple[dict[int, int], dict[int, int]]:
    """For a client that has buckets merged at equal x: by series id, how many of the known rows it keeps, and
    in which row the last merged bucket that it keeps starts.

    A bucket is sent again if any row of the next one, which may have been shorter for the client, has its x.
    """
    kept, last_kept, read = dict(known), dict[int, int](), {}
    for series_id, n in known.items():
        n_rows = chunks[series_id][-1].end_row if chunks[series_id] else 0
        size = bucket_rows(n_rows, max_points)
        if size <= n < n_rows:
            start = n // size * size
            # The open chunks are few rows, and mostly contain a bucket with another x.
            some = [c for c in chunks[series_id] if not c.closed or c.end_row >= start]
            read[series_id] = (size, start, some)
    for n_buckets in (_MOSTLY_ENOUGH, None):
        near = {
            series_id: [c for c in some if n_buckets is None or c.end_row >= start - size * n_buckets]
            for series_id, (size, start, some) in read.items()
        }
        points = points_of([chunk for some in near.values() for chunk in some], (column,))
        for series_id, some in near.items():
            size, start, _ = read[series_id]
            x = np.concatenate([points[chunk.id][column] for chunk in some])
            at = start - some[0].first_row
            ends = x[at - 1 :: -size]
            n_again = _n_equal(ends) if (x[at : at + size] == ends[0]).any() else 0
            n_last = _n_equal(ends[n_again:])
            if n_buckets is not None and n_again + n_last == len(ends):
                continue
            del read[series_id]
            if n_again:
                # Without another x, all are sent again.
                kept[series_id] = start = start - size * n_again if n_again < len(ends) else 0
            if start:
                last_kept[series_id] = max(0, start - size * n_last)
    return kept, last_kept


def _n_equal(values: Array) -> int:
    """How many values at the start are equal."""
    others = np.flatnonzero(values != values[:1])
    return int(others[0]) if len(others) else len(values)
