"""Reads one table: what its columns mean, and its rows as logs."""

from __future__ import annotations

import json
import math
import platform
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from callboard.imports import metric_files
from callboard.imports.log import Log, UnreadableLog, quoted
from callboard.imports.rows import Rows, stem
from callboard.limits import MAX_METRIC_CHARACTERS, MAX_STEPS
from callboard.names import Names, of_cell, with_checksum
from callboard.rows import is_seed, seed_of

STEP_COLUMNS = (
    *("agent_steps", "global_step", "total_timesteps", "timesteps", "step", "time/total_timesteps", "steps"),
    *("num_env_steps_sampled_lifetime", "timesteps_total", "Step"),
)
"""Names of the column of agent steps: the first that a table has, unless one is named."""

ITERATION_COLUMNS = (
    *("training_iteration", "iteration", "iterations", "time/iterations", "epoch", "update", "_step"),
)
"""Names of columns of iterations, which a table without agent steps may have instead."""

WALL_TIME_COLUMNS = (
    "wall_time_s",
    "time/time_elapsed",
    "time_elapsed",
    "time_total_s",
    "_runtime",
    "elapsed",
)
"""Names of columns of training time in seconds."""

METRIC_COLUMNS = ("metric", "tag", "metric_name", "key")
"""Names of the column that names the metric, in a table with a row for each point."""

VALUE_COLUMNS = ("value", "Value")

RUN_COLUMNS = ("run", "run_id", "Run ID", "run_name", "dir_name")
"""Names of the column that names the run, in such a table."""

_PFRL = {"steps", "episodes", "elapsed", "mean", "median", "stdev"}
"""Columns of PFRL's `scores.txt`."""

_PFRL_METRICS = ("mean", "median", "stdev", "max", "min")

_TENSORBOARD = ["Wall time", "Step", "Value"]
"""The columns of a file downloaded from TensorBoard's page, which has one metric."""

_EXPORTED = frozenset({"run", "name", "source", "frames", "episodes", "provenance", "description"})
"""Columns of Callboard's own export that are no metrics."""

_DURATION = re.compile(r"(?:([0-9]+) days?,? )?([0-9]+):([0-9]{2}):([0-9]{2}(?:[.,][0-9]+)?)")
"""A time as Python and pandas write it, such as `1 day, 2:03:04`."""

_ROWS_AHEAD = 1_000
"""Rows in which a column of steps must have a number."""
TRIAL_TABLE, TRIAL_ROWS = "progress.csv", "result.json"
"""Files that Ray Tune writes beside its `params.json`. The first keeps the columns of the first result."""
_ITERATION, _SINCE_RESTORE = "training_iteration", "iterations_since_restore"
_LEAST, _MOST = "__MIN", "__MAX"
"""Endings of the columns of the range of a curve, in W&B's export of a chart."""


@dataclass(frozen=True)
class ColumnMapping:
    """What the columns of a table mean."""

    step: str | None = None
    wall_time: str | None = None
    run: str | None = None
    """Column whose values split the table into runs."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Column -> metric; without any, every other column with numbers is a metric."""
    has_step_factor: bool = False
    """Whether the steps of tables are going to be multiplied, so that they are agent steps."""


class Table:
    """A table whose columns have been recognised."""

    def __init__(self, path: Path, name: str, rows: Rows, mapping: ColumnMapping) -> None:
        self._path = path
        self._name = name
        self._rows = rows
        self._not_kept: Counter[str] = Counter()
        self._texts: dict[str, str] = {}
        """The texts of cells that are names."""
        self._cells: dict[str, str] = {}
        """The cells of these texts."""
        columns = rows.columns
        is_of_tensorboard = columns == _TENSORBOARD
        self._curves = {} if mapping.metrics or mapping.run else _find_curves(columns)
        # What an option names has no other meaning.
        free = [column for column in columns if column not in (mapping.step, mapping.wall_time, mapping.run)]
        step = mapping.step or self._find_steps(free)
        if step is None:
            problem = "no column of agent steps was recognised; name it with --step"
            raise UnreadableLog(f"{path}: {problem}. Columns: {_format_columns(columns)}")
        self._step = step
        for option, column in (("--step", step), ("--wall-time", mapping.wall_time), ("--run", mapping.run)):
            if column is not None and column not in columns:
                raise UnreadableLog(
                    f"{path}: {option}: no column {quoted(column)}; it has {_format_columns(columns)}"
                )
        for column in mapping.metrics:
            if column not in columns:
                raise UnreadableLog(
                    f"{path}: --metric: no column {quoted(column)}; it has {_format_columns(columns)}"
                )
        wall_times = _TENSORBOARD[:1] if is_of_tensorboard else WALL_TIME_COLUMNS
        self._wall_time = mapping.wall_time or _find_first(wall_times, free)
        is_unix_time = is_of_tensorboard and self._wall_time == _TENSORBOARD[0]
        self._started_at: float | None = None if is_unix_time else 0.0
        self._latest_s: dict[int, float] = {}
        """By the log's `id`, its latest time."""
        self._metric = None if mapping.metrics else _find_first(METRIC_COLUMNS, free)
        self._value = _find_first(VALUE_COLUMNS, free)
        self._is_long = self._metric is not None and self._value is not None
        self._frames = "frames" if self._is_long and "frames" in free else None
        self._run = mapping.run or (_find_first(RUN_COLUMNS, free) if self._is_long else None)
        self._names = Names()
        used = (step, self._wall_time, self._run)
        others = [column for column in columns if column and column not in used]
        if n_unnamed := columns.count("") - ("" in used):
            self._not_kept["columns without a name"] = n_unnamed
        if self._is_long:
            others = [column for column in others if column not in (self._metric, self._value, *_EXPORTED)]
            self._metrics: dict[str, str] = {}
        elif is_of_tensorboard and not mapping.metrics:
            self._metrics = {"Value": self._names.stored(stem(path))}
        elif set(columns) >= _PFRL and not mapping.metrics:
            metrics = {column: f"eval/{column}" for column in others if column in _PFRL_METRICS}
            self._metrics = {column: self._names.stored(metrics.get(column, column)) for column in others}
        else:
            self._metrics = dict(mapping.metrics) or {column: self._names.stored(column) for column in others}
        self._unmapped = [] if self._curves else [column for column in others if column not in self._metrics]

    def _find_steps(self, columns: Sequence[str]) -> str | None:
        """The first column of steps with a whole number in the first rows; the first one if none has."""
        names = [name for name in (*STEP_COLUMNS, *ITERATION_COLUMNS) if name in columns]
        if len(names) < 2:
            return names[0] if names else None
        ahead = [*islice(self._rows.rows, _ROWS_AHEAD)]
        self._rows.rows = chain(ahead, self._rows.rows)
        counted = (
            name for name in names if any(_is_whole(self._parse_number(row.get(name))) for row in ahead)
        )
        return next(counted, names[0])

    def read(self) -> Iterator[Log]:
        """Its logs."""
        logs: dict[str, Log] = {}
        n_repeated = 0
        if _SINCE_RESTORE in self._rows.columns and _ITERATION in self._rows.columns:
            self._rows.rows, n_repeated = self._without_repeated(self._rows.rows)
        for row in self._rows.rows:
            if self._curves:
                self._add_curves(logs, row)
                continue
            label = "" if self._run is None else self._text(row.get(self._run))
            log = logs.get(label)
            if log is None:
                log = logs[label] = self._create_log(label, row)
            self._add(log, row)
        if not logs:
            raise UnreadableLog(f"{self._path}: the table has no rows")
        for at, log in enumerate(logs.values()):
            for column, metric in self._metrics.items():
                if metric not in log.series and not self._curves:
                    log.not_kept[f"column {quoted(column)}, which has no numbers"] += 1
            log.not_kept.update({f"column {quoted(name)}": 1 for name in self._unmapped})
            if at == 0:
                log.not_kept.update(self._rows.not_kept)
                log.not_kept.update(self._not_kept)
                if self._curves:
                    log.not_kept["columns with the range of a curve"] = 2 * len(self._curves)
            if self._rows.config:
                log.describe_by_config(self._rows.config)
            if n_repeated:
                log.not_kept["rows of iterations that a restored trial has repeated"] = n_repeated
            if self._path.name in (TRIAL_TABLE, TRIAL_ROWS):
                log.describe_by_trial(self._path.resolve().parent)
            if len(logs) == 1:
                log.describe_by_folder(self._path.parent)
            metric_files.describe_by_arguments(log, self._path.parent)
            log.sort()
            yield log

    def _without_repeated(self, rows: Iterable[Mapping[str, Any]]) -> tuple[Iterator[Mapping[str, Any]], int]:
        """The rows of a trial of Ray Tune's: where it was restored and repeats iterations, the later ones."""
        kept: list[tuple[float, Mapping[str, Any]]] = []
        n_repeated, last = 0, 0.0
        for row in rows:
            at = parse_or_nan(row.get(_ITERATION))
            since = parse_or_nan(row.get(_SINCE_RESTORE))
            if since <= last:
                before = len(kept)
                kept = [(other, earlier) for other, earlier in kept if not other >= at]
                n_repeated += before - len(kept)
            last = since if math.isfinite(since) else last
            kept.append((at, row))
        return iter([row for _, row in kept]), n_repeated

    def _create_log(self, label: str, row: Mapping[str, Any]) -> Log:
        # If another training has replaced the table, at least the values of its first row differ.
        place = f"{platform.node()} {self._path.resolve()}"
        own = row.get("name") if self._is_long and self._run == "run" else None
        name = self._text(own) if own else f"{self._name} {label}".strip()
        cells = sorted(str(cell) for cell in row.items() if cell[1] not in (None, ""))  # columns may be added
        identity = f"table {place} {label} {cells}"
        counts_iterations = self._step in ITERATION_COLUMNS or (self._curves and self._step == "Step")
        log = Log(name, identity, step_unit="iterations" if counts_iterations else None)
        if self._run == "run" and "name" in self._rows.columns:
            _describe(log, row.get("description") or self._rows.about.get("runs", {}).get(label))
        return log

    def _text(self, cell: Any) -> str:
        """The text of a cell; in a CSV file an apostrophe may stand before it. No two texts become one."""
        given = str(cell)
        if not self._rows.is_csv:
            return given
        text = self._texts.get(given)
        if text is None:
            text = of_cell(given)
            while self._cells.setdefault(text, given) != given:
                text = with_checksum(text, given, MAX_METRIC_CHARACTERS)
            self._texts[given] = text
        return text

    def _add(self, log: Log, row: Mapping[str, Any]) -> None:
        steps = self._parse_steps(log, row)
        if steps is None:
            return
        seconds = self._parse_seconds(log, row)
        if self._is_long:
            assert self._metric is not None
            assert self._value is not None
            if row.get("source"):
                log.not_kept["points of single actors"] += 1
                return
            metric = self._text(row.get(self._metric) or "")
            if not metric:
                log.not_kept["points without the name of a metric"] += 1
            cells = [(self._value, self._names.stored(metric))] if metric else []
        else:
            cells = list(self._metrics.items())
        for column, metric in cells:
            cell = row.get(column)
            value = self._parse_number(cell)
            if value is not None:
                log.add(metric, steps, seconds, value, self._parse_frames(row, steps), is_ordered=False)
            elif cell not in (None, ""):
                log.not_kept[f"cells that are not numbers in column {quoted(column)}"] += 1

    def _add_curves(self, logs: dict[str, Log], row: Mapping[str, Any]) -> None:
        """A row of W&B's export of a chart, which has a column for each run."""
        for column, (run, metric) in self._curves.items():
            value = self._parse_number(row.get(column))
            if value is None:
                continue
            log = logs.get(run)
            if log is None:
                log = logs[run] = self._create_log(run, {"run": run, "metric": metric})
                log.name = run
            if (steps := self._parse_steps(log, row)) is not None:
                seconds = self._parse_seconds(log, row)
                log.add(self._names.stored(metric), steps, seconds, value, is_ordered=False)

    def _parse_seconds(self, log: Log, row: Mapping[str, Any]) -> float:
        """The training time of a row; that of the row before it in the log if its cell has none."""
        if self._wall_time is None:
            return 0.0
        cell = row.get(self._wall_time)
        seconds = self._parse_number(cell)
        if seconds is None and isinstance(cell, str) and (duration := _DURATION.fullmatch(cell.strip())):
            days, hours, minutes, rest = duration.groups()
            seconds = (
                int(days or 0) * 86_400
                + int(hours) * 3600
                + int(minutes) * 60
                + float(rest.replace(",", "."))
            )
        if seconds is None or not math.isfinite(seconds):
            if cell not in (None, ""):
                log.not_kept[f"cells that are no times in column {quoted(self._wall_time)}"] += 1
            return self._latest_s.get(id(log), 0.0)
        if self._started_at is None:
            self._started_at = seconds
        self._latest_s[id(log)] = seconds - self._started_at
        return seconds - self._started_at

    def _parse_steps(self, log: Log, row: Mapping[str, Any]) -> int | None:
        steps = self._parse_number(row.get(self._step))
        if steps is None or not _is_whole(steps):
            log.not_kept[f"rows without a whole number in column {quoted(self._step)}"] += 1
            return None
        return int(steps)

    def _parse_frames(self, row: Mapping[str, Any], steps: int) -> int | None:
        """The frames of a row, or its agent steps if its cell has none; None without such a column."""
        if self._frames is None:
            return None
        frames = self._parse_number(row.get(self._frames))
        return int(frames) if frames is not None and 0 <= frames <= MAX_STEPS else steps

    def _parse_number(self, cell: Any) -> float | None:
        if self._rows.has_decimal_commas and isinstance(cell, str) and "." not in cell:
            cell = cell.replace(",", ".")
        return parse_number(cell)


def _describe(log: Log, description: Any) -> None:
    """Restore what Callboard's own export says of a run, if this is one."""
    try:
        described = json.loads(description) if isinstance(description, str) else description
        spec = described["spec"]
        settings = dict(spec["config"])
        if spec.get("environment_config"):
            settings["environment_config"] = dict(spec["environment_config"])
        algorithm, environment, seed = str(spec["algorithm"]), str(spec["environment"]), spec["seed"]
        tags, group = [*map(str, spec.get("tags") or ())], spec.get("group")
        project = spec.get("project")
        details = dict(spec.get("config_details") or {})
    except (KeyError, TypeError, ValueError, RecursionError):
        return
    if spec.get("seed_is_known", True) and spec.get("seed_is_given", True) and is_seed(seed):
        log.seed = seed_of(seed)
    log.algorithm, log.environment, log.config_details = algorithm, environment, details
    log.describe_by_config(settings)
    log.group, log.tags = None if group is None else str(group), tags
    log.project = None if project is None else str(project)
    log.return_metric = spec.get("return_metric") or log.return_metric
    log.step_unit = spec.get("step_unit") or log.step_unit
    if described.get("notes"):
        log.not_kept["notes of the run"] = 1


def _find_curves(columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Column -> run and metric, of W&B's export of a chart; empty for another table."""
    curves = {}
    for column in columns:
        run, separator, metric = column.rpartition(" - ")
        if separator and column + _LEAST in columns and column + _MOST in columns:
            curves[column] = (run, metric)
    return curves


def _find_first(names: Iterable[str], columns: Sequence[str]) -> str | None:
    return next((name for name in names if name in columns), None)


def _is_whole(number: float | None) -> bool:
    return number is not None and math.isfinite(number) and number == int(number)


def parse_number(cell: Any) -> float | None:
    """The number of a cell; None if it is none."""
    if isinstance(cell, str) and "_" in cell:  # of Python's own notation: a date or a word elsewhere
        return None
    try:
        return None if cell is None else float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def parse_or_nan(cell: Any) -> float:
    """The number of a cell; NaN if it is none."""
    number = parse_number(cell)
    return math.nan if number is None else number


def _format_columns(columns: list[str]) -> str:
    shown = ", ".join(columns[:20])
    return f"{shown} and {len(columns) - 20} more" if len(columns) > 20 else shown or "none"
