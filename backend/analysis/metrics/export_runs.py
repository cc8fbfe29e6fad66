"""Every point of several runs as CSV or Parquet, in a stream, with each run's name, spec and provenance.

The descriptions of the runs are JSON: in Parquet in the schema's metadata, one object by run id; in CSV in
the last column of each run's first row. This module needs pyarrow, of the extra `parquet`.
"""

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sqlalchemy.orm import Session

from backend.analysis.metrics import export
from backend.analysis.metrics.export_common import DESCRIPTION, ExportedRun, Pipe
from backend.analysis.metrics.repository import Selected

SCHEMA = pa.schema([("run", pa.string()), ("name", pa.string()), *export.SCHEMA])
"""One row per point, by run, metric and source, in order of arrival."""

RUNS = "runs"
"""Key of Parquet's metadata."""


def csv(session: Session, runs: Sequence[ExportedRun], selected: Selected) -> Iterator[bytes]:
    """Comma-separated values; floats with as many digits as they need."""
    pipe = Pipe()
    field = pa.field(DESCRIPTION, pa.string())
    with pa.csv.CSVWriter(pipe, SCHEMA.append(field)) as writer:
        for run in runs:
            first: list[str | None] = [json.dumps(run.description)]
            for table in _tables(session, run, selected):
                column = first + [None] * (len(table) - len(first))
                cells = export.of_cells(table)
                writer.write_table(cells.append_column(field, [pa.array(column, pa.string())]))
                first = []
                yield pipe.take()
    yield pipe.take()


def parquet(session: Session, runs: Sequence[ExportedRun], selected: Selected) -> Iterator[bytes]:
    """Parquet, compressed by Zstandard."""
    pipe = Pipe()
    described = {run.id: run.description for run in runs}
    schema = SCHEMA.with_metadata({RUNS: json.dumps(described)})
    with pa.parquet.ParquetWriter(pipe, schema, compression="zstd") as writer:
        for run in runs:
            for table in _tables(session, run, selected):
                writer.write_table(table)
                yield pipe.take()
    yield pipe.take()


def _tables(session: Session, run: ExportedRun, selected: Selected) -> Iterator[pa.Table]:
    for table in export.tables(session, run.id, selected):
        n = len(table)
        named = pa.table({"run": pa.repeat(run.id, n), "name": pa.repeat(run.name, n)})
        for name in export.SCHEMA.names:
            named = named.append_column(name, table[name])
        yield named
