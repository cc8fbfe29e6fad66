"""Sends logs of other tools to a server, as external runs."""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from callboard.cleaning import as_text
from callboard.config import FlatConfig, flat_config
from callboard.display import counted
from callboard.errors import Rejected, Unreachable
from callboard.imports.log import Log, Medium, problem_of
from callboard.imports.meaning import candidates, has_score, interpret
from callboard.limits import MAX_ALGORITHM, MAX_ENVIRONMENT, MAX_NAME, MAX_NOTES
from callboard.names import project_of
from callboard.rows import Bins, Frame, Line, clean, dumps, frames_of, json_number, split
from callboard.spool import MAX_REQUEST_BYTES, new_ulid
from callboard.transport import Transport
from callboard.uploading import PART_BYTES

MAX_BATCH = 10_000
MAX_METRICS = 5_000
MAX_SERIES_OF_REQUEST = 250
TRIES = 4
FIRST_WAIT_S = 0.5
PAGE = 200
MAX_TIME = 4e9
"""Unix time in seconds. A later one is an error of the log."""
_IMPORTED = "Imported: "
"""How the line of an import's notes begins that has its mark."""


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
    """Why the log was not imported, or not to its end."""
    not_kept: Counter[str] = field(default_factory=Counter)
    replaced: bool = False
    """Whether the run of an earlier import with other options was deleted."""
    said: list[str] = field(default_factory=list)
    """What the source has lost, or how it was read."""
    return_candidates: list[str] | None = None
    """Metrics that may be the return, of a run without a known one."""


@dataclass(frozen=True)
class Options:
    """What the user says of the logs."""

    fields: Mapping[str, Any]
    """Of the runs, instead of the logs': `algorithm`, `environment`, `seed`, `project`, `group`, `tags`."""
    metrics: Sequence[str] = ()
    """As for `meaning.interpret`, like `step_factor`."""
    step_factor: float | None = None
    of_reader: Mapping[str, Any] | None = None
    """Options with which the log was read, if it can be read with others."""

    def stored(self) -> dict[str, Any]:
        """Those that were given, as they are stored with the run."""
        given = {**self.fields, "metrics": list(self.metrics), "step_factor": self.step_factor}
        given |= self.of_reader or {}
        return {name: value for name, value in given.items() if value not in (None, [], {}, ())}

    def or_those_of(self, stored: Mapping[str, Any]) -> Options:
        """These, or, if none is given and the log was read in the same way, those of an earlier import."""
        if self.stored() or self.of_reader is not None:
            return self
        fields = {name: stored.get(name) for name in self.fields}
        return Options(fields, stored.get("metrics") or (), stored.get("step_factor"))


def send(log: Log, transport: Transport, options: Options, *, is_complete: bool = True) -> Imported:
    """Create the run of a log, or find that of an earlier import, and send what it does not have.

    The run of an import with other options is replaced. Without options, those of the earlier import apply.

    Args:
        log: what was read.
        transport: where to.
        options: what the user says of it.
        is_complete: whether the training has ended; the run stays running otherwise.

    Raises:
        Unreachable: the server does not answer. The next import continues.
    """
    done = Imported(log.name, not_kept=log.not_kept, said=log.said, problem=log.problem)
    if log.problem is not None:
        return done
    try:
        _send(log, transport, options, done, is_complete=is_complete)
    except Unreachable:
        raise
    except Exception as error:  # whatever is odd in one log, the others are imported
        done.problem = problem_of(error)
    return done


def _send(log: Log, transport: Transport, options: Options, done: Imported, *, is_complete: bool) -> None:
    mark = _mark(log.identity)
    earlier = _find(transport, mark)
    options = options.or_those_of(_options_of(earlier[0])) if earlier else options
    current = next((run for run in earlier if _options_of(run) == options.stored()), None)
    log.series = {metric: column for metric, column in log.series.items() if column.value}
    interpret(log, options.metrics, options.step_factor)
    if len(log.series) > MAX_METRICS:
        done.not_kept[f"metrics after the first {MAX_METRICS:,}"] = len(log.series) - MAX_METRICS
        log.series = dict(list(log.series.items())[:MAX_METRICS])
    if not log.series and not log.lines and not log.media:
        done.problem = "nothing in it can be imported"
        return
    created = None
    try:
        done.run = None if current is None else str(current["id"])
        done.resumed = current is not None
        if done.run is None:
            body = _body(log, mark, options)
            answer = _request(transport, "POST", "runs", body=body, idempotency_key=new_ulid())
            done.run = created = str(answer["items"][0]["id"])
        _send_rest(log, transport, done.run, done, {} if current is None else current["spec"])
        created = None  # it is complete, and stays even if an earlier run cannot be deleted
        for run in (*earlier, *(run for identity in log.merged for run in _find(transport, _mark(identity)))):
            if run is not current:
                _delete(transport, str(run["id"]))
                done.replaced = True
        if is_complete:
            _report_state(transport, done.run, log.state, log.reason or "imported")
        else:
            keep_running(transport, done.run)
        if not has_score(log):
            done.return_candidates = candidates(log)
    except Unreachable:
        raise
    except Exception as error:
        done.problem = str(error) if isinstance(error, (Rejected, ValueError)) else problem_of(error)
        if created is not None:  # nothing is left half-imported
            _delete(transport, created)
            done.run, done.n_points, done.n_lines = None, 0, 0


def _mark(identity: str) -> str:
    """What the notes of a log's run end with."""
    return f"import-{hashlib.sha256(identity.encode()).hexdigest()[:20]}"


def _find(transport: Transport, mark: str) -> list[dict[str, Any]]:
    """The runs of earlier imports of the same log, by their mark in the notes, the latest first.

    There are several only if an import was interrupted while it replaced one. The notes of other runs may
    mention the mark, too.
    """
    params = {"filter": f"notes:{mark}", "archived": "all", "limit": 100, "sort": "-created_at", "spec": True}
    runs = _request(transport, "GET", "runs", params=params)["items"]
    return [
        run
        for run in runs
        if run["spec"].get("import_options") is not None
        and any(line.startswith(_IMPORTED) and mark in line for line in (run["notes"] or "").splitlines())
    ]


def _options_of(run: Mapping[str, Any]) -> dict[str, Any]:
    return dict(run["spec"].get("import_options") or {})


def _delete(transport: Transport, run: str) -> None:
    _request(transport, "POST", f"runs/{run}/heartbeat", body={"state": "failed"})
    _request(transport, "DELETE", f"runs/{run}")


def _body(log: Log, mark: str, options: Options) -> dict[str, Any]:
    fields = options.fields
    first = min((column.agent_steps[0] for column in log.series.values()), default=0)
    settings = _settings_of(log)
    project = project_of(fields.get("project") or log.project or "")
    notes = f"{_IMPORTED}{log.name}, {counted(log.n_points, 'point')} from agent step {first:,}. {mark}"
    return {
        "origin": "external",
        "name": clean(log.name, MAX_NAME),
        "algorithm": _word(fields.get("algorithm") or log.algorithm or "unknown", MAX_ALGORITHM),
        "environment": _word(fields.get("environment") or log.environment or "unknown", MAX_ENVIRONMENT),
        "seed": log.given_seed if fields.get("seed") is None else fields["seed"],
        "config": settings.config,
        "config_details": settings.details | (log.config_details if settings.config else {}),
        "group": fields.get("group") or log.group,
        "tags": list(fields.get("tags") or log.tags),
        **({} if project is None else {"project": project}),
        "notes": clean(notes, MAX_NOTES),
        "return_metric": log.return_metric,
        "step_unit": log.step_unit,
        "import_options": options.stored(),
    }


def _settings_of(log: Log) -> FlatConfig:
    """The settings of a log; none if there are more than a run may have, which is no reason to lose its
    points."""
    try:
        return flat_config(log.config)
    except ValueError:
        log.not_kept["settings, which are more than a run may have"] = len(log.config)
        return FlatConfig({}, {})


def _word(value: Any, most: int) -> str:
    text = as_text(value)
    plain = "".join("_" if character in '"\\' or character < " " else character for character in text)
    return clean(plain, most)


def _send_rest(log: Log, transport: Transport, run: str, done: Imported, spec: Mapping[str, Any]) -> None:
    """Send the points and lines that the run lacks.

    Raises:
        Rejected: the server refuses them.
        ValueError: the run is not an earlier part of the log.
    """
    stored: dict[str, Any] = {}
    lines_before: Counter[str] = Counter()
    if done.resumed:
        answer = _request(transport, "GET", f"runs/{run}/series")
        stored = {series["metric"]: series for series in answer["items"] if not series["source"]}
        lines_before = _lines(transport, run)
    rest = {metric: _n_stored(log, metric, stored.get(metric)) for metric in log.series}
    source, sequence = new_ulid(), 0
    if done.resumed and (later := _later_config(log, spec)):
        sequence += 1
        body = {"source": source, "sequence": sequence} | later
        _request(transport, "POST", f"runs/{run}/config", body=body)
    points = (("points", n_rows, dumps(series)) for series, n_rows in _batches(log, rest))
    for _, n_rows, rows in _small(points):
        sequence += 1
        content = b'{"source":"%s","sequence":%d,"series":%s}' % (source.encode(), sequence, rows)
        _request(transport, "POST", f"runs/{run}/points", content=content)
        done.n_points += n_rows
    sequence = _send_media(log, transport, run, source, sequence, done)
    lines = [Line(at if 0 <= at < MAX_TIME else 0.0, "info", clean(text)) for at, text in log.lines]
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


def _send_media(log: Log, transport: Transport, run: str, source: str, sequence: int, done: Imported) -> int:
    """Send the histograms and images that the run lacks; return the number of the last request.

    Raises:
        Rejected: the server refuses them.
    """
    if not log.media:
        return sequence
    stored: set[tuple[str, str, int]] = set()
    if done.resumed:
        for series in _request(transport, "GET", f"runs/{run}/media")["items"]:
            stored |= {(series["kind"], series["metric"], steps) for steps in series["agent_steps"]}
    ordered = sorted(log.media.values(), key=lambda medium: medium.agent_steps)
    missing = [item for item in ordered if (item.kind, item.metric, item.agent_steps) not in stored]
    images = [item for item in missing if isinstance(item.content, bytes)]
    bins = [
        Bins(item.metric, item.agent_steps, item.wall_time_s, *item.content)
        for item in missing
        if not isinstance(item.content, bytes)
    ]
    n_dropped = 0
    for _, _, rows in _small(frames_of(bins)):
        sequence += 1
        content = b'{"source":"%s","sequence":%d,"histograms":%s}' % (source.encode(), sequence, rows)
        n_dropped += _request(transport, "POST", f"runs/{run}/histograms", content=content)["dropped"]
    for image in images:
        sequence += 1
        n_dropped += _send_image(transport, run, source, sequence, image)
    if n_dropped:
        done.not_kept["histograms and images beyond those that are kept of a run"] += n_dropped
    return sequence


def _send_image(transport: Transport, run: str, source: str, sequence: int, image: Medium) -> int:
    """Send an image; return 1 if the run has no room for it."""
    content, upload = image.content, new_ulid()
    assert isinstance(content, bytes)
    for offset in range(0, len(content), PART_BYTES):
        _request(
            transport,
            "PUT",
            f"runs/{run}/uploads/{upload}",
            content=content[offset : offset + PART_BYTES],
            content_type="application/octet-stream",
            params={"offset": offset},
        )
    body = {
        "source": source,
        "sequence": sequence,
        "upload": upload,
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "kind": image.kind,
        "metric": image.metric,
        "agent_steps": image.agent_steps,
        "wall_time_s": round(image.wall_time_s, 3),
    }
    return int(_request(transport, "POST", f"runs/{run}/media", body=body)["dropped"])


def _report_state(transport: Transport, run: str, state: str, reason: str | None = None) -> None:
    _request(transport, "POST", f"runs/{run}/heartbeat", body={"state": state, "reason": reason})


def keep_running(transport: Transport, run: str) -> None:
    """Send a heartbeat of a run whose log has nothing new.

    Raises:
        Unreachable: the server does not answer.
    """
    _report_state(transport, run, "running")


def end_run(transport: Transport, run: str) -> None:
    """End a run whose log cannot be read any more.

    Raises:
        Unreachable: the server does not answer.
    """
    _report_state(transport, run, "finished", "imported")


def _small(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The frames, split where a request with one would be too large for a proxy."""
    for kind, n_rows, rows in frames:
        yield from split(kind, n_rows, rows, MAX_REQUEST_BYTES)


def _later_config(log: Log, spec: Mapping[str, Any]) -> dict[str, Any]:
    """What the log says of the run now, and did not when it was imported before."""
    settings = _settings_of(log)
    config = {name: value for name, value in settings.config.items() if spec["config"].get(name) != value}
    if not config:
        return {}
    details = settings.details | log.config_details
    details = {name: details[name] for name in config if name in details}
    named = {"algorithm": log.algorithm, "environment": log.environment, "seed": log.seed}
    return {"config": config, "config_details": details} | named


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
    parts = [np.array(column.agent_steps[n:], "i8") for column, n in zip(columns, starts)]
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
                    "frames": column.frames[rows].tolist() if column.frames else None,
                    "wall_time_s": [round(time_s, 3) for time_s in column.wall_time_s[rows]],
                    "value": [*map(json_number, column.value[rows])],
                }
            )
        yield batch, int(counts.sum())


def _lines(transport: Transport, run: str) -> Counter[str]:
    """The messages of a run's log."""
    messages: Counter[str] = Counter()
    params: dict[str, Any] = {"limit": PAGE}
    while True:
        page = _request(transport, "GET", f"runs/{run}/log", params=params)
        messages.update(line["message"] for line in page["items"])
        params["cursor"] = page["next_cursor"]
        if params["cursor"] is None:
            return messages


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
