"""Sends logs of other tools to a server, as external runs."""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backend.specs.run_fields import MAX_ALGORITHM, MAX_ENVIRONMENT, MAX_NAME, MAX_NOTES
from callboard.config import flat_config
from callboard.errors import Rejected, Unreachable
from callboard.rows import Frame, Line, cleaned, dumps, frames_of, json_number, split
from callboard.spool import MAX_REQUEST_BYTES, new_ulid
from callboard.transport import Transport
from callboard_cli.imports.log import Log

MAX_BATCH = 10_000
MAX_METRICS = 5_000
MAX_SERIES_OF_REQUEST = 500
TRIES = 4
FIRST_WAIT_S = 0.5
PAGE = 200
MAX_TIME = 4e9
"""Unix time in seconds. A later one is an error of the log."""


@dataclass
class Imported:
    """What an import has done with one log."""

    name: str
    run: str | None = None
    n_points: int = 0
    n_lines: int = 0
    resumed: bool = False
    """Whether the run already existed, from an earlier import."""
    problem: str | None = None
    """Why nothing was imported."""
    not_kept: "Counter[str]" = field(default_factory=Counter)


def send(log: Log, transport: Transport, fields: Mapping[str, Any]) -> Imported:
    """Create the run of a log, or find that of an earlier import, and send what it does not have.

    Args:
        log: what was read.
        transport: where to.
        fields: of the run, instead of the log's: `algorithm`, `environment`, `seed`, `group`, `tags`.

    Raises:
        Unreachable: the server does not answer. The next import continues.
    """
    done = Imported(log.name, not_kept=log.not_kept)
    log.series = {metric: column for metric, column in log.series.items() if column.value}
    if len(log.series) > MAX_METRICS:
        done.not_kept["metrics after the first 5,000"] = len(log.series) - MAX_METRICS
        log.series = dict(list(log.series.items())[:MAX_METRICS])
    if not log.series and not log.lines:
        done.problem = "nothing in it can be imported"
        return done
    created = None
    try:
        mark = f"import-{hashlib.sha256(log.identity.encode()).hexdigest()[:20]}"
        done.run = _find(transport, mark)
        done.resumed = done.run is not None
        if done.run is None:
            body = _body(log, mark, fields)
            answer = _request(transport, "POST", "runs", body=body, idempotency_key=new_ulid())
            done.run = created = str(answer["items"][0]["id"])
        _send_rest(log, transport, done.run, done)
    except (Rejected, ValueError) as error:
        done.problem = str(error)
        if created is not None:  # nothing is left half-imported
            _request(transport, "POST", f"runs/{created}/heartbeat", body={"state": "failed"})
            _request(transport, "DELETE", f"runs/{created}")
            done.run, done.n_points, done.n_lines = None, 0, 0
    return done


def _find(transport: Transport, mark: str) -> str | None:
    """The run of an earlier import of the same log, by its mark in the notes."""
    params = {"filter": f"notes:{mark}", "archived": "all", "limit": 1}
    items = _request(transport, "GET", "runs", params=params)["items"]
    return str(items[0]["id"]) if items else None


def _body(log: Log, mark: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    first = min((column.agent_steps[0] for column in log.series.values()), default=0)
    settings = flat_config(log.config)
    notes = f"Imported: {log.name}, {log.n_points:,} points from agent step {first:,}. {mark}"
    return {
        "origin": "external",
        "name": cleaned(log.name, MAX_NAME),
        "algorithm": _word(fields.get("algorithm") or log.algorithm or "unknown", MAX_ALGORITHM),
        "environment": _word(fields.get("environment") or log.environment or "unknown", MAX_ENVIRONMENT),
        "seed": log.seed if fields.get("seed") is None else fields["seed"],
        "config": settings.config,
        "config_details": settings.details,
        "group": fields.get("group"),
        "tags": list(fields.get("tags") or ()),
        "notes": cleaned(notes, MAX_NOTES),
    }


def _word(value: str, most: int) -> str:
    plain = "".join("_" if each in '"\\' or each < " " else each for each in value)
    return cleaned(plain, most)


def _send_rest(log: Log, transport: Transport, run: str, done: Imported) -> None:
    """Send the points and lines that the run lacks, and end it.

    Raises:
        Rejected: the server refuses them.
        ValueError: the run is not an earlier part of the log.
    """
    stored: dict[str, Any] = {}
    lines_before: Counter[str] = Counter()
    if done.resumed:
        answer = _request(transport, "GET", f"runs/{run}/series")
        stored = {each["metric"]: each for each in answer["items"] if not each["source"]}
        lines_before = _lines(transport, run)
    rest = {metric: _n_stored(log, metric, stored.get(metric)) for metric in log.series}
    source, sequence = new_ulid(), 0
    points = (("points", n_rows, dumps(series)) for series, n_rows in _batches(log, rest))
    for _, n_rows, rows in _small(points):
        sequence += 1
        content = b'{"source":"%s","sequence":%d,"series":%s}' % (source.encode(), sequence, rows)
        _request(transport, "POST", f"runs/{run}/points", content=content)
        done.n_points += n_rows
    lines = [Line(at if 0 <= at < MAX_TIME else 0.0, "info", cleaned(text)) for at, text in log.lines]
    missing = []
    for line in lines:
        if lines_before[line.message] > 0:
            lines_before[line.message] -= 1
        else:
            missing.append(line)
    for _, n_rows, rows in _small(frames_of(missing)):
        sequence += 1
        content = b'{"source":"%s","sequence":%d,"lines":%s}' % (source.encode(), sequence, rows)
        _request(transport, "POST", f"runs/{run}/log", content=content)
        done.n_lines += n_rows
    body = {"state": "finished", "reason": "imported"}
    _request(transport, "POST", f"runs/{run}/heartbeat", body=body)


def _small(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The frames, split where a request with one would be too large for a proxy."""
    for kind, n_rows, rows in frames:
        yield from split(kind, n_rows, rows, MAX_REQUEST_BYTES)


def _n_stored(log: Log, metric: str, stored: Mapping[str, Any] | None) -> int:
    """How many points of a metric the run has.

    Raises:
        ValueError: they are not the log's first ones.
    """
    if stored is None:
        return 0
    n, values = int(stored["n_points"]), log.series[metric].value
    last = stored["last_value"]
    if n > len(values) or (n and not _same(values[n - 1], last)):
        raise ValueError(
            f"the run of its earlier import has other points of {metric}: the log has changed since then. "
            "Delete that run to import the log again"
        )
    return n


def _same(value: float, stored: float | None) -> bool:
    return not math.isfinite(value) if stored is None else value == stored


def _batches(log: Log, first: Mapping[str, int]) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """The series of each request and its number of points, over all metrics in the order of agent steps."""
    names = [name for name in log.series if len(log.series[name].value) > first[name]]
    if not names:
        return
    columns = [log.series[name] for name in names]
    starts = [first[name] for name in names]
    parts = [np.array(each.agent_steps[n:], "i8") for each, n in zip(columns, starts, strict=True)]
    order = np.argsort(np.concatenate(parts), kind="stable")
    series = np.repeat(np.arange(len(names)), [len(part) for part in parts])[order]
    begin = 0
    while begin < len(order):
        part = series[begin : begin + MAX_BATCH]
        _, first_places = np.unique(part, return_index=True)
        if len(first_places) > MAX_SERIES_OF_REQUEST:
            part = part[: np.sort(first_places)[MAX_SERIES_OF_REQUEST]]
        begin += len(part)
        counts = np.bincount(part, minlength=len(names))
        batch = []
        for at in np.flatnonzero(counts):
            column, n = columns[at], int(counts[at])
            rows = slice(starts[at], starts[at] + n)
            starts[at] += n
            batch.append(
                {
                    "metric": names[at],
                    "agent_steps": column.agent_steps[rows].tolist(),
                    "wall_time_s": [round(each, 3) for each in column.wall_time_s[rows]],
                    "value": [*map(json_number, column.value[rows])],
                }
            )
        yield batch, int(counts.sum())


def _lines(transport: Transport, run: str) -> "Counter[str]":
    """The messages of a run's log."""
    found: Counter[str] = Counter()
    params: dict[str, Any] = {"limit": PAGE}
    while True:
        page = _request(transport, "GET", f"runs/{run}/log", params=params)
        found.update(each["message"] for each in page["items"])
        params["cursor"] = page["next_cursor"]
        if params["cursor"] is None:
            return found


def _request(transport: Transport, method: str, path: str, **options: Any) -> Any:
    """Send a request, again if the server does not answer: no request does anything twice.

    Raises:
        Unreachable: it never answers.
        Rejected: it refuses the request.
    """
    for attempt in range(TRIES):
        try:
            return transport.request(method, path, **options)
        except Unreachable as error:
            if attempt == TRIES - 1:
                raise
            time.sleep(max(FIRST_WAIT_S * 2**attempt, min(error.retry_after_s or 0.0, 30.0)))
    raise AssertionError("unreachable")
