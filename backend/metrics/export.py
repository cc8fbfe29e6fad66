"""Every point of a run as a file, written as it is read: complete, and the same each time."""

import io
import zipfile
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from urllib.parse import quote

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sqlalchemy.orm import Session

from backend.db import Series
from backend.metrics import repository, tfevents
from backend.metrics.chunks import Columns, n_rows

SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("source", pa.string()),
        ("agent_steps", pa.int64()),
        ("frames", pa.int64()),
        ("wall_time_s", pa.float64()),
        ("episodes", pa.int64()),
        ("value", pa.float64()),
    ]
)
"""One row a point, by metric and source, in order of arrival."""

_BATCH_ROWS = 65_536


class _Pipe(io.RawIOBase):
    """A file that is only written to; what has been written is taken out as it comes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: "bytes | memoryview") -> int:  # type: ignore[override]
        part = bytes(data)
        self._parts.append(part)
        self._position += len(part)
        return len(part)

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        return data


def csv(session: Session, run_id: str) -> Iterator[bytes]:
    """Comma-separated values, floats with as many digits as they need."""
    pipe = _Pipe()
    with pa.csv.CSVWriter(pipe, SCHEMA) as writer:
        for table in _tables(session, run_id):
            writer.write_table(table)
            yield pipe.take()
    yield pipe.take()


def parquet(session: Session, run_id: str) -> Iterator[bytes]:
    """Parquet, compressed by Zstandard."""
    pipe = _Pipe()
    with pa.parquet.ParquetWriter(pipe, SCHEMA, compression="zstd") as writer:
        for table in _tables(session, run_id):
            writer.write_table(table)
            yield pipe.take()
    yield pipe.take()


def tensorboard(session: Session, run_id: str, began: datetime) -> Iterator[bytes]:
    """A zip with a folder of TensorBoard event files a source; the step is agent steps.

    Args:
        session: a reading session.
        run_id: which run.
        began: training time 0 on the wall clock.
    """
    pipe = _Pipe()
    start = began.timestamp()
    every = sorted(_series(session, run_id), key=lambda series: (series.source, series.metric))
    with zipfile.ZipFile(pipe, "w") as archive:
        for source, some in groupby(every, key=lambda series: series.source):
            folder = f"source-{quote(source, safe='')}" if source else "run"
            entry = zipfile.ZipInfo(f"{folder}/events.out.tfevents.{int(start):010d}.callboard")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as file:
                file.write(tfevents.header(start))
                for series in some:
                    for part in repository.all_points(session, series.id):
                        times = start + part["wall_time_s"]
                        records = tfevents.scalars(series.metric, times, part["agent_steps"], part["value"])
                        file.write(records)
                        yield pipe.take()
    yield pipe.take()


def _series(session: Session, run_id: str) -> list[Series]:
    return [series for series in repository.list_series(session, [run_id]) if series.n_points]


def _tables(session: Session, run_id: str) -> Iterator[pa.Table]:
    """All points in tables of a good size, however many small series there are."""
    waiting: list[pa.Table] = []
    rows = 0
    for series in _series(session, run_id):
        for part in repository.all_points(session, series.id):
            waiting.append(_table(series, part))
            rows += n_rows(part)
            if rows >= _BATCH_ROWS:
                yield pa.concat_tables(waiting).combine_chunks()
                waiting, rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _table(series: Series, part: Columns) -> pa.Table:
    n = n_rows(part)
    names = {"metric": pa.repeat(series.metric, n), "source": pa.repeat(series.source, n)}
    return pa.table(names | {name: part[name] for name in SCHEMA.names[2:]}, SCHEMA)
