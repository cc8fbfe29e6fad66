"""Reads Trackio's databases: SQLite files, one for each project."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from callboard.axes import Axes
from callboard.imports.log import Log, UnreadableLog
from callboard.limits import MAX_GROUP
from callboard.names import Names
from callboard.wandb.settings import flat

_TABLES = {"metrics", "configs"}
_OWN = "_"
"""Begins the names of settings that Trackio adds itself."""
_INFINITE = ("NaN", "Infinity", "-Infinity")


def read(root: Path) -> Iterator[Log]:
    """One log for each run of a database, or of all databases in and below a folder.

    Raises:
        UnreadableLog: there is none.
    """
    files = [root] if root.is_file() else sorted(root.rglob("*.db"))
    n_read = 0
    for path in files:
        try:
            with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)) as database:
                database.row_factory = sqlite3.Row
                tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
                if not tables >= _TABLES:
                    continue
                n_read += 1
                yield from _logs(database, path, tables)
        except sqlite3.Error as error:
            if root.is_file():
                raise UnreadableLog(f"{path}: Trackio's database cannot be read: {error}") from None
    if not n_read:
        raise UnreadableLog(f"{root}: no database of Trackio's (PROJECT.db) in it or below it")


def _logs(database: sqlite3.Connection, path: Path, tables: set[str]) -> Iterator[Log]:
    rows = _by_run(database.execute("SELECT * FROM metrics ORDER BY step, id"))
    configs = _by_run(database.execute("SELECT * FROM configs"))
    alerts = _by_run(database.execute("SELECT * FROM alerts ORDER BY id")) if "alerts" in tables else {}
    for run in sorted(rows, key=lambda run: min(row["id"] for row in rows[run])):
        yield _log(path, run, rows[run], configs.get(run, []), alerts.get(run, []))


def _by_run(rows: Iterable[sqlite3.Row]) -> dict[str, list[sqlite3.Row]]:
    """Rows of a table by their run's id; by its name, where older versions have stored no id."""
    of_runs: dict[str, list[sqlite3.Row]] = defaultdict(list)
    for row in rows:
        of_runs[row["run_id"] if "run_id" in row.keys() else row["run_name"]].append(row)  # noqa: SIM118
    return of_runs


def _log(
    path: Path, run: str, stored: list[sqlite3.Row], configs: list[sqlite3.Row], alerts: list[sqlite3.Row]
) -> Log:
    log = Log(f"{path.stem}/{stored[0]['run_name']}", f"trackio {path.stem} {run}", project=path.stem)
    for row in configs:
        config = _object(row["config"])
        log.group = str(config["_Group"])[:MAX_GROUP] if config.get("_Group") else None
        log.describe_by_config({name: value for name, value in config.items() if not name.startswith(_OWN)})
    rows = [(row["step"], _seconds(row["timestamp"]), flat(_object(row["metrics"]))) for row in stored]
    started_at = min((at for _, at, _ in rows), default=0.0)
    axis = Axes().of_whole(row for _, _, row in rows)
    log.step_unit = "iterations" if axis is None else axis.unit
    names = Names()
    steps = 0
    for step, at, logged in rows:
        counted = step if axis is None else logged.get(axis.metric)
        steps = int(counted or 0) if _is_finite(counted) else steps
        for metric, value in logged.items():
            if value in _INFINITE or (isinstance(value, (int, float)) and not isinstance(value, bool)):
                log.add(names.stored(metric), steps, at - started_at, float(value), is_ordered=False)
            elif isinstance(value, str):
                log.lines.append((at, f"{metric}: {value}"))
            else:
                log.not_kept["values that are no numbers"] += 1
    for alert in alerts:
        text = f"alert ({alert['level']}): {alert['title']}"
        log.lines.append(
            (_seconds(alert["timestamp"]), f"{text}: {alert['text']}" if alert["text"] else text)
        )
    log.sort()
    n_times = len({at for _, at, _ in rows})
    if n_times < len(rows):
        log.said.append(
            "Trackio stores one time for all rows of a batch, so points of it share a training time"
        )
    log.said.append("Trackio does not store how a run has ended: it is finished")
    log.said.append(f"Trackio drops spaces and slashes of a project's name: it is {path.stem!r}")
    return log


def _object(text: Any) -> dict[str, Any]:
    """An object of JSON; empty if it is another value."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value - value == 0


def _seconds(text: Any) -> float:
    """A time as Unix time; 0 if it cannot be read."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
