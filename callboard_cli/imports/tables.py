"""Reads tables: CSV and Parquet files with a column of agent steps and columns of metrics."""

import csv
import math
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.specs.problems import quoted
from callboard.names import Names, of_cell
from callboard_cli.imports.log import Log, UnreadableLog

STEP_COLUMNS = (
    *("agent_steps", "global_step", "total_timesteps", "timesteps", "step", "time/total_timesteps", "steps"),
    *("num_env_steps_sampled_lifetime", "timesteps_total", "Step"),
)
"""Names of the column of agent steps: the first that a table has, unless one is named."""
ITERATION_COLUMNS = ("training_iteration", "iteration", "iterations", "time/iterations", "epoch", "update")
"""Names of columns of iterations, which a table without agent steps may have instead."""


@dataclass(frozen=True)
class Mapped:
    """What the columns of a table mean."""

    step: str | None = None
    wall_time: str | None = None
    run: str | None = None
    """A table is split into several runs by its values."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Column -> metric; without any, every other column with numbers is a metric."""


def read(path: Path, mapped: Mapped) -> Iterator[Log]:
    """The logs of a table: one, or one for each value of the column `mapped.run`.

    Raises:
        UnreadableLog: it is not a table, or lacks a column.
    """
    rows = _parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _csv(path)
    try:
        columns = next(rows)
        yield from _Table(path, list(columns), mapped).read(rows)
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise UnreadableLog(f"{path}: {error}") from None


class _Table:
    def __init__(self, path: Path, columns: list[str], mapped: Mapped) -> None:
        self._path = path
        self._mapped = mapped
        known = (*STEP_COLUMNS, *ITERATION_COLUMNS)
        step = mapped.step or next((name for name in known if name in columns), None)
        if step is None:
            raise UnreadableLog(f"{path}: --step: name the column of agent steps; it has {_list(columns)}")
        self._step = step
        for option, column in (("--step", step), ("--wall-time", mapped.wall_time), ("--run", mapped.run)):
            if column is not None and column not in columns:
                raise UnreadableLog(f"{path}: {option}: no column {quoted(column)}; it has {_list(columns)}")
        for column in mapped.metrics:
            if column not in columns:
                raise UnreadableLog(f"{path}: --metric: no column {quoted(column)}; it has {_list(columns)}")
        others = [name for name in columns if name and name not in (step, mapped.wall_time, mapped.run)]
        names = Names()
        self._metrics = dict(mapped.metrics) or {name: names.stored(name) for name in others}
        self._unmapped = [name for name in others if name not in self._metrics]
        if len(set(self._metrics.values())) < len(self._metrics):
            raise UnreadableLog(
                f"{path}: --metric: two columns have the same metric; give them different names"
            )

    def read(self, rows: Iterator[Mapping[str, Any]]) -> Iterator[Log]:
        logs: dict[str, Log] = {}
        for row in rows:
            label = "" if self._mapped.run is None else of_cell(str(row.get(self._mapped.run)))
            log = logs.get(label)
            if log is None:
                log = logs[label] = self._new(label, row)
            self._add(log, row)
        if not logs:
            raise UnreadableLog(f"{self._path}: the table has no rows")
        for log in logs.values():
            for column, metric in self._metrics.items():
                if metric not in log.series:
                    log.not_kept[f"column {quoted(column)}, which has no numbers"] += 1
            log.not_kept.update({f"column {quoted(name)}": 1 for name in self._unmapped})
            yield log

    def _new(self, label: str, row: Mapping[str, Any]) -> Log:
        # A table that another training has replaced has another first row, at least its values.
        place = f"{platform.node()} {self._path.resolve()}"
        name = f"{self._path.stem} {label}".strip()
        identity = f"table {place} {label} {sorted(map(str, row.items()))}"
        return Log(name, identity, step_unit="iterations" if self._step in ITERATION_COLUMNS else None)

    def _add(self, log: Log, row: Mapping[str, Any]) -> None:
        steps = _number(row.get(self._step))
        if steps is None or not math.isfinite(steps) or steps != int(steps):
            log.not_kept[f"rows without a whole number in column {quoted(self._step)}"] += 1
            return
        seconds = _number(row.get(self._mapped.wall_time)) if self._mapped.wall_time else None
        for column, metric in self._metrics.items():
            cell = row.get(column)
            value = _number(cell)
            if value is not None:
                log.add(metric, int(steps), seconds or 0.0, value)
            elif cell not in (None, ""):
                log.not_kept[f"cells that are not numbers in column {quoted(column)}"] += 1


def _csv(path: Path) -> Iterator[Any]:
    """The names of the columns, then the rows."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        columns = [of_cell(name) for name in next(rows, [])]
        reader = csv.DictReader(file, columns)
        yield columns
        yield from reader


def _parquet(path: Path) -> Iterator[Any]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            yield file.schema_arrow.names
            for batch in file.iter_batches(batch_size=10_000):
                yield from batch.to_pylist()
    except ArrowException as error:
        raise UnreadableLog(f"{path}: {str(error).splitlines()[0]}") from None


def _number(cell: Any) -> float | None:
    try:
        return None if cell is None else float(cell)
    except (TypeError, ValueError):
        return None


def _list(columns: list[str]) -> str:
    shown = ", ".join(columns[:20])
    return f"{shown} and {len(columns) - 20} more" if len(columns) > 20 else shown or "none"
