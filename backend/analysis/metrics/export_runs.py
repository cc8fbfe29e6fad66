"""Every point of several runs as CSV or Parquet, in a stream, with each run's name, spec and provenance.

Columns name each row's run: algorithm, environment, seed, and every setting in which the runs differ, such as
`config.learning_rate`. The descriptions of the runs are JSON: in Parquet in the schema's metadata, one object
by run id; in CSV in the last column of each run's first row.

This module needs pyarrow, of the extra `parquet`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sqlalchemy.orm import Session

from backend.analysis.metrics import export
from backend.analysis.metrics.export_common import DESCRIPTION, ExportedRun, Pipe
from backend.analysis.metrics.repository import Selected

_LARGEST = 2**63

RUNS = "runs"
"""Key of Parquet's metadata."""


def csv(session: Session, runs: Sequence[ExportedRun], selected: Selected) -> Iterator[bytes]:
    """Comma-separated values; floats with as many digits as they need."""
    pipe = Pipe()
    field = pa.field(DESCRIPTION, pa.string())
    named = _named(runs)
    with pa.csv.CSVWriter(pipe, _schema(named).append(field)) as writer:
        for at, run in enumerate(runs):
            first: list[str | None] = [json.dumps(run.description)]
            for table in _tables(session, run, named.slice(at, 1), selected):
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
    named = _named(runs)
    schema = _schema(named).with_metadata({RUNS: json.dumps(described)})
    with pa.parquet.ParquetWriter(pipe, schema, compression="zstd") as writer:
        for at, run in enumerate(runs):
            for table in _tables(session, run, named.slice(at, 1), selected):
                writer.write_table(table)
                yield pipe.take()
    yield pipe.take()


def _schema(named: pa.Table) -> pa.Schema:
    """One row per point, by run, metric and source, in order of arrival."""
    return pa.schema([*named.schema, *export.SCHEMA])


def _named(runs: Sequence[ExportedRun]) -> pa.Table:
    """What the columns before the points have of each run: a row for each."""
    specs = [run.description["spec"] for run in runs]
    columns: dict[str, pa.Array] = {
        "run": pa.array([run.id for run in runs], pa.string()),
        "name": pa.array([run.name for run in runs], pa.string()),
    }
    columns |= {
        name: pa.array([spec.get(name) for spec in specs], pa.string())
        for name in ("algorithm", "environment")
    }
    columns["seed"] = pa.array([spec.get("seed") for spec in specs], pa.int64())
    settings = [_settings(spec) for spec in specs]
    for name in dict.fromkeys(name for run in settings for name in run):
        values = [run.get(name) for run in settings]
        if any(json.dumps(value) != json.dumps(values[0]) for value in values):
            columns[name] = _of_one_kind(values)
    return pa.table(columns)


def _settings(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{section}.{name}": value
        for section in ("config", "environment_config")
        for name, value in (spec.get(section) or {}).items()
    }


def _of_one_kind(values: Sequence[Any]) -> pa.Array:
    """Values of a column: numbers, switches or texts; others are JSON."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {int, float} and all(abs(value or 0) < _LARGEST for value in values if type(value) is int):
        is_whole = kinds == {int}
        numbers = [value if value is None or is_whole else float(value) for value in values]
        return pa.array(numbers, pa.int64() if is_whole else pa.float64())
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pa.array(texts, pa.string())


def _tables(session: Session, run: ExportedRun, named: pa.Table, selected: Selected) -> Iterator[pa.Table]:
    """The points of a run, each with the columns of its one row in `named`."""
    for table in export.tables(session, run.id, selected):
        columns = {name: pa.repeat(named[name][0], len(table)) for name in named.column_names}
        yield pa.table(columns | {name: table[name] for name in export.SCHEMA.names})
