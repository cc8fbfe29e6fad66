"""Reads tables: files of rows with a column of steps and columns of metrics, or with a row for each point."""

from __future__ import annotations

import math
import platform
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from callboard.imports import metric_files
from callboard.imports.log import Column, Log, UnreadableLog, named, problem_of, quoted
from callboard.imports.rows import JSON_ENDINGS, ending, is_document, read_rows, stem
from callboard.imports.table import (
    ITERATION_COLUMNS,
    STEP_COLUMNS,
    TRIAL_ROWS,
    TRIAL_TABLE,
    ColumnMapping,
    Table,
    parse_number,
    parse_or_nan,
)

_MONITOR = ["r", "l", "t"]
"""The first columns of the file of Stable-Baselines3's `Monitor`: return, length, time of an episode."""
_EPISODE_METRICS = {"r": "rollout/episode_return", "l": "rollout/episode_length"}
_FRAME_SKIP_ERROR = 0.1
"""Share by which the steps of monitors may differ from a multiple of the table's."""
_ROWS_OF_FRAME_SKIP = 3
"""Rows of the table that must agree on it."""


def read(
    root: Path, mapping: ColumnMapping, endings: Sequence[str], *, is_growing: bool = False
) -> Iterator[Log]:
    """The logs of a file, or of all files with these endings in and below a folder.

    A file gives one log or several; so does a folder with one file. The episodes that Stable-Baselines3's
    monitors have written into a folder belong to one log, together with a table, unless the table counts
    iterations.

    Raises:
        UnreadableLog: the file is not a table, or lacks a column; there is no file; two columns are to have
            the same metric.
    """
    if len(set(mapping.metrics.values())) < len(mapping.metrics):
        raise UnreadableLog(f"{root}: --metric: two columns have the same metric; give them different names")
    if not root.is_dir():
        if root.name == TRIAL_TABLE and (root.parent / TRIAL_ROWS).is_file():
            said = f"a metric that appears after the first result is only in {TRIAL_ROWS} beside it"
            for log in _read_file(root, stem(root), mapping, is_growing):
                log.said.append(f"{TRIAL_TABLE} of Ray Tune has the first result's columns: {said}")
                yield log
            return
        yield from _read_file(root, stem(root), mapping, is_growing, is_json=endings == JSON_ENDINGS)
        return
    folders: dict[Path, list[Path]] = defaultdict(list)
    step_columns = (*STEP_COLUMNS, *ITERATION_COLUMNS, mapping.step or "")
    n_documents = 0
    of_folders, taken = metric_files.read(root)
    for path in sorted(root.rglob("*")):
        if path.is_file() and ending(path) in endings and path.resolve() not in taken:
            if is_document(path, step_columns):
                n_documents += 1
            else:
                folders[path.parent].append(path)
    yield from of_folders
    if not folders and not of_folders:
        without = " with a row on each line" if n_documents else ""
        raise UnreadableLog(f"{root}: no files that end in {', '.join(endings)}{without} in it or below it")
    for folder, paths in folders.items():
        name = folder.relative_to(root).as_posix() if folder != root else folder.resolve().name
        for log in _read_folder(folder, name, paths, mapping, is_growing):
            if n_documents:  # said once
                log.not_kept["files of one JSON object that is no row"] = n_documents
                n_documents = 0
            yield log


def _read_folder(
    folder: Path, name: str, paths: list[Path], mapping: ColumnMapping, is_growing: bool
) -> Iterator[Log]:
    read_instead = folder / TRIAL_ROWS
    is_trial = folder / TRIAL_TABLE in paths and read_instead.is_file()
    if is_trial:
        paths = [path for path in paths if path.name not in (TRIAL_TABLE, TRIAL_ROWS)] + [read_instead]
    monitors = [path for path in paths if _is_monitor(path, mapping)]
    others = [path for path in paths if path not in monitors]
    texts = [path for path in others if len(paths) > 1 and not _is_table(path, mapping)]
    others = [path for path in others if path not in texts]
    logs: list[Log] = []
    for path in others:
        try:
            logs += _read_file(
                path, name if len(others) == 1 else f"{name}/{stem(path)}", mapping, is_growing
            )
        except Exception as error:  # whatever is odd in one file, the others are read
            logs.append(Log(name, "", problem=problem_of(error)))
    if is_trial and logs:
        logs[0].said.append(
            f"{TRIAL_ROWS} was read instead of {TRIAL_TABLE}, which has the first result's columns only"
        )
    episodes = None
    if monitors:
        try:
            episodes = _read_episodes(monitors, name, mapping, is_growing)
        except Exception as error:
            logs.append(Log(name, "", problem=problem_of(error)))
    if episodes is not None:
        counts_iterations = any(log.step_unit == "iterations" for log in logs)
        if len(logs) == 1 and counts_iterations and not mapping.has_step_factor:
            logs[0].name = f"{name}/{stem(others[0])}"  # no axis is that of both
        elif len(logs) == 1 and logs[0].problem is None:  # the metrics of the same training
            if not mapping.has_step_factor:
                _count_frames(episodes, logs[0])
            series, named = logs[0].series, mapping.metrics.values()
            given = {metric: column for metric, column in series.items() if metric in named}
            for metric in given.keys() & episodes.series.keys():
                cause = f"since --metric names another column {quoted(metric)}"
                episodes.not_kept[f"values of monitors, {cause}"] += 1
            episodes.series = series | episodes.series | given
            episodes.not_kept.update(logs[0].not_kept)
            episodes.merged.append(logs[0].identity)
            logs = []
        logs.append(episodes)
    if texts and logs:
        logs[0].not_kept["text files that are no tables"] = len(texts)
    elif texts:
        logs.append(Log(name, "", problem=f"{folder}: none of its text files is a table"))
    yield from logs


def _is_table(path: Path, mapping: ColumnMapping) -> bool:
    """Whether a text file, which may be another one's output, has the columns of a table."""
    if ending(path) != ".txt":
        return True
    try:
        Table(path, "", read_rows(path), mapping)
    except UnreadableLog:
        return False
    return True


def _count_frames(episodes: Log, table: Log) -> None:
    """Count in `not_kept` that the steps of monitors are several for each agent step of the same training's
    table: a wrapper above them repeats actions."""
    ended, logged = (
        max(log.series.values(), key=lambda column: len(column.value), default=Column())
        for log in (episodes, table)
    )
    rows = slice(len(logged.value) // 2, None)  # the later ones: clocks may begin at different times
    steps, times = np.array(logged.agent_steps[rows]), np.array(logged.wall_time_s[rows])
    if len(steps) < _ROWS_OF_FRAME_SKIP or not ended.value or steps.min() < 1 or times.min() <= 0:
        return
    ratios = np.interp(times, np.array(ended.wall_time_s), np.array(ended.agent_steps)) / steps
    frame_skip = round(float(np.median(ratios)))
    if frame_skip >= 2 and np.abs(ratios / frame_skip - 1).max() <= _FRAME_SKIP_ERROR:
        what = f"agent steps of monitors, which count {frame_skip} steps for each of the table"
        episodes.not_kept[what] = len(ended.value)


def _read_file(
    path: Path, name: str, mapping: ColumnMapping, is_growing: bool, *, is_json: bool = False
) -> Iterator[Log]:
    if _is_monitor(path, mapping):
        yield _read_episodes([path], name, mapping, is_growing)
        return
    rows = read_rows(path, is_json=is_json, is_growing=is_growing)
    yield from Table(path, name, rows, mapping).read()


def _is_monitor(path: Path, mapping: ColumnMapping) -> bool:
    """Whether a file is a monitor, and no option gives one of its columns another meaning."""
    try:
        rows = read_rows(path)
    except UnreadableLog:
        return False
    is_table = {mapping.step, mapping.run} & set(rows.columns) or mapping.wall_time in {*rows.columns} - {"t"}
    return rows.columns[:3] == _MONITOR and "t_start" in rows.about and not is_table


def _read_episodes(paths: Sequence[Path], name: str, mapping: ColumnMapping, is_growing: bool) -> Log:
    """The episodes of all monitors of a training, in the order in which they ended."""
    place = f"{platform.node()} {paths[0].resolve().parent}"
    log = Log(name, "")
    episodes: list[tuple[float, int, list[tuple[str, float]]]] = []
    starts: list[float] = []
    for path in paths:
        rows = read_rows(path, is_growing=is_growing)
        start = parse_number(rows.about["t_start"]) or 0.0
        starts.append(start)
        environment = rows.about.get("env_id")
        if isinstance(environment, str):
            log.environment = log.environment or named(environment)
        elif environment is not None:
            log.not_kept["names of environments that are no texts"] += 1
        given = {column: metric for column, metric in mapping.metrics.items() if column in rows.columns}
        metrics = given or _EPISODE_METRICS
        unmapped = [column for column in rows.columns if column not in (*metrics, "l", "t")]
        log.not_kept.update({f"column {quoted(column)}": 1 for column in unmapped})
        latest = 0.0  # a process that appends to the file counts its seconds from 0 again
        for row in rows.rows:
            length, seconds = parse_or_nan(row.get("l")), parse_or_nan(row.get("t"))
            if math.isfinite(length) and math.isfinite(seconds) and length >= 0:
                values = []
                for column, metric in metrics.items():
                    value = parse_number(row.get(column))
                    if value is None:
                        log.not_kept[f"cells that are not numbers in column {quoted(column)}"] += 1
                    else:
                        values.append((metric, value))
                if length != int(length):
                    log.not_kept["lengths of episodes with a fraction, which is cut off"] += 1
                if start + seconds < latest:
                    start = latest
                latest = start + seconds
                episodes.append((latest, int(length), values))
            else:
                log.not_kept["episodes without a length or a time"] += 1
        log.not_kept.update(rows.not_kept)
    log.describe_by_folder(paths[0].parent)
    log.identity = f"monitor {place} {min(starts)!r}"
    steps = 0
    for ended_at, length, values in sorted(episodes, key=lambda episode: episode[0]):
        steps += length
        for metric, value in values:
            log.add(metric, steps, ended_at - min(starts), value)
    for series in log.series.values():
        series.counts_agent_steps = True
    return log
