"""Reads MLflow's stores, a folder `mlruns` or an SQLite file, through MLflow's own client."""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from callboard.config import parse_value
from callboard.imports.log import Log, UnreadableLog
from callboard.limits import MAX_GROUP
from callboard.names import Names

_PAGE = 100
_SQLITE = b"SQLite format 3\0"
_STATES: dict[str, Literal["finished", "failed", "stopped"]] = {
    "FINISHED": "finished",
    "FAILED": "failed",
    "KILLED": "stopped",
}
_UNNAMED = "Default"
"""MLflow's experiment of runs for which none is named."""
_LARGEST = sys.float_info.max
"""An SQLite store has this number, or its negative, where an infinity was logged."""
_OWN_TAG = re.compile(r"mlflow\.|\.mlflow")
"""Begins the tags that MLflow sets itself."""


def read(root: Path) -> Iterator[Log]:
    """One log for each run of a store that is not deleted, experiment by experiment.

    Args:
        root: a folder of a file store, or the file of an SQLite store.

    Raises:
        UnreadableLog: it is neither, or MLflow is not installed.
    """
    address = _address(root)
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # an import sends nothing to others
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions refuse a folder, reading too
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError:
        wanted = "pip install 'callboard-client[mlflow]'"
        raise UnreadableLog(f"reading MLflow's stores needs MLflow: {wanted}") from None
    try:
        client = MlflowClient(tracking_uri=address)
        n_runs = 0
        for experiment in _all(client.search_experiments):
            for run in _all(client.search_runs, experiment_ids=[experiment.experiment_id]):
                n_runs += 1
                yield _log(client, experiment.name, run, is_database=not root.is_dir())
    except (MlflowException, ImportError, OSError, ValueError) as error:
        raise UnreadableLog(f"{root}: MLflow cannot read it: {_first_line(error)}") from None
    if n_runs == 0:
        raise UnreadableLog(f"{root}: MLflow finds no runs in it")


def _address(root: Path) -> str:
    if root.is_dir():
        return root.resolve().as_uri()
    with root.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            raise UnreadableLog(f"{root}: it is neither a folder of MLflow's nor an SQLite file")
    return f"sqlite:///{root.resolve()}"


def _all(search: Any, **options: Any) -> Iterator[Any]:
    """The items of all pages."""
    token = None
    while True:
        page = search(max_results=_PAGE, page_token=token, **options)
        yield from page
        token = page.token
        if not token:
            return


def _log(client: Any, experiment: str, run: Any, *, is_database: bool) -> Log:
    info = run.info
    name = info.run_name or info.run_id
    log = Log(f"{experiment}/{name}", f"mlflow {info.run_id}")
    log.project = None if experiment == _UNNAMED else experiment
    log.describe_by_config({key: parse_value(text) for key, text in run.data.params.items()})
    names = Names()
    started_ms = info.start_time or 0
    log.state = _STATES.get(info.status, "stopped")
    log.reason = f"imported: MLflow's status is {info.status}"
    parent = run.data.tags.get("mlflow.parentRunId")
    if parent is not None:
        with suppress(Exception):  # it may be deleted
            log.group = (client.get_run(parent).info.run_name or parent)[:MAX_GROUP]
    n_infinite = 0
    for key in run.data.metrics:
        metric = names.stored(key)
        for point in client.get_metric_history(info.run_id, key):
            seconds = max(0.0, (point.timestamp - started_ms) / 1_000)
            value = float(point.value)
            if is_database and abs(value) == _LARGEST:
                value, n_infinite = math.copysign(math.inf, value), n_infinite + 1
            log.add(metric, int(point.step), seconds, value, is_ordered=False)
    log.sort()
    if n_infinite:
        log.said.append("MLflow's database stores an infinity as 1.797e308, which is read as an infinity")
    not_kept: Counter[str] = Counter()
    for key, text in run.data.tags.items():
        if key == "mlflow.note.content":
            log.lines.append((started_ms / 1_000, f"note: {text}"))
        elif not _OWN_TAG.match(key):
            log.lines.append((started_ms / 1_000, f"{key}: {text}"))
    try:
        not_kept["files"] = len(client.list_artifacts(info.run_id))
    except Exception:  # of a store of files that is somewhere else, or gone
        not_kept["files, which cannot be listed"] = 1
    log.not_kept.update(+not_kept)
    return log


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
