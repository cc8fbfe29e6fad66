"""Every point of a run as CSV or Parquet, written in a stream, with the provenance of its attempts.

The provenance is JSON, an object per attempt: in Parquet in the schema's metadata, in CSV in the last column
of the first row. This module needs pyarrow, of the extra `parquet`.
"""

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.analysis.metrics.chunks import n_rows
from backend.analysis.metrics.export_common import PROVENANCE, Pipe, Provenance
from backend.analysis.metrics.repository import ALL, Selected
from backend.db import Series
from backend.drawing.cells import FORMULA
from backend.statistics.columns import Columns

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
"""One row per point, by metric and source, in order of arrival."""

_BATCH_ROWS = 16_384


def csv(session: Session, run_id: str, provenance: Provenance, selected: Selected = ALL) -> Iterator[bytes]:
    """Comma-separated values; floats with as many digits as they need."""
    pipe = Pipe()
    field = pa.field(PROVENANCE, pa.string())
    first: list[str | None] = [json.dumps(provenance)]
    with pa.csv.CSVWriter(pipe, SCHEMA.append(field)) as writer:
        for table in tables(session, run_id, selected):
            column = first + [None] * (len(table) - len(first))
            writer.write_table(of_cells(table).append_column(field, [pa.array(column, pa.string())]))
            first = []
            yield pipe.take()
    yield pipe.take()


def of_cells(table: pa.Table) -> pa.Table:
    """The table with texts as cells of a CSV file: see `backend.platform.text.as_cell`."""
    for at, field in enumerate(table.schema):
        if field.type == pa.string():
            column = table.column(at)
            is_formula = pc.match_substring_regex(column, FORMULA)
            if pc.any(is_formula).as_py():
                safe = pc.if_else(is_formula, pc.binary_join_element_wise("'", column, ""), column)
                table = table.set_column(at, field, safe)
    return table


def parquet(
    session: Session, run_id: str, provenance: Provenance, selected: Selected = ALL
) -> Iterator[bytes]:
    """Parquet, compressed by Zstandard."""
    pipe = Pipe()
    schema = SCHEMA.with_metadata({PROVENANCE: json.dumps(provenance)})
    with pa.parquet.ParquetWriter(pipe, schema, compression="zstd") as writer:
        for table in tables(session, run_id, selected):
            writer.write_table(table)
            yield pipe.take()
    yield pipe.take()


def tables(session: Session, run_id: str, selected: Selected) -> Iterator[pa.Table]:
    """All points of a run's selected series in tables of similar size, however small the series are."""
    waiting: list[pa.Table] = []
    rows = 0
    for series in repository.recorded_series(session, run_id, selected):
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
