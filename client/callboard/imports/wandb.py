"""Reads the folders of W&B's offline runs, `wandb/offline-run-…`, with the messages of W&B's own package.

A file `run-<id>.wandb` has a header and then records in blocks of 32 KiB, as in LevelDB's logs. A record has
one or several parts, each with its checksum, length and kind. The whole record is a message of W&B's.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from callboard.axes import Axes
from callboard.imports.log import Log, UnreadableLog
from callboard.limits import MAX_GROUP, MAX_MEDIA_BYTES, MAX_TAG, MAX_TAGS
from callboard.media import Histogram
from callboard.names import Names

_FILE = struct.Struct("<4sHB")
_MAGIC = (b":W&B", 0xBEE1)
_PART = struct.Struct("<IHB")
_BLOCK_BYTES = 32 * 1024
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_MAX_RECORD_BYTES = 2**28
_TYPE = "._type"
"""Ends the name of the part of a value that names its type."""
_MAX_DEPTH = 20
_MAX_DIGITS = 300
"""Maximum number of characters of a whole number that is read as an integer: a float can be as large."""

_OWN = frozenset({"_step", "_runtime", "_timestamp", "_wandb"})


class _Damaged(Exception):
    """The rest of a file cannot be read."""


def read(root: Path) -> Iterator[Log]:
    """One log for each offline run, in the folders' order.

    Args:
        root: a folder, searched with all folders below it, or a file `run-<id>.wandb`.

    Raises:
        UnreadableLog: there are no such files, or W&B is not installed.
    """
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # an import sends nothing to others
    try:
        from google.protobuf.message import DecodeError
        from wandb.proto.wandb_internal_pb2 import Record
    except ImportError:
        wanted = "pip install 'callboard-client[wandb]'"
        raise UnreadableLog(f"reading W&B's offline runs needs W&B: {wanted}") from None
    files = [root] if root.is_file() else sorted(root.rglob("run-*.wandb"))
    if not files:
        raise UnreadableLog(f"{root}: no offline runs (run-*.wandb) in it or below it")
    for path in files:
        reader = Reader(path)
        try:
            for content in _records(path):
                reader.add(Record.FromString(content))
        except (_Damaged, DecodeError, OSError) as error:
            if not reader.n_records:
                reader.log.problem = f"{path} cannot be read: {error}"
            reader.log.not_kept[f"the rest of {path.name}, which cannot be read"] += 1
        yield reader.finished()


class Reader:
    """Reads the records of one run."""

    def __init__(self, path: Path) -> None:
        name = path.stem.removeprefix("run-")
        self.log = Log(name, f"wandb {name}")
        self.n_records = 0
        self._files = (path.parent / "files").resolve()
        self._names = Names()
        self._started_at = 0.0
        self._rows: list[dict[str, Any]] = []
        self._summary: dict[str, Any] = {}
        self._axes = Axes()
        self._defined: dict[int, str] = {}
        """Names of the metrics that the script has defined, by their index from 1."""
        self._exit_code: int | None = None

    def add(self, record: Any) -> None:
        """Read one record."""
        self.n_records += 1
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run = record.run
            self.log.name = run.display_name or run.run_id or self.log.name
            self._started_at = run.start_time.seconds + run.start_time.nanos / 1e9
            # A script that resumes a run offline writes another folder with the same id.
            self.log.identity = f"wandb {run.run_id} {self._started_at!r}"
            self._config(run.config)
            self.log.group = run.run_group[:MAX_GROUP] or None
            self.log.project = run.project or None
            labels = [run.entity, *run.tags]
            self.log.tags = [*dict.fromkeys(label[:MAX_TAG] for label in labels if label)][:MAX_TAGS]
            if run.notes:
                self.log.lines.append((self._started_at, f"notes: {run.notes}"))
        elif kind == "config":
            self._config(record.config)
        elif kind == "metric":
            metric = record.metric
            self._defined[len(self._defined) + 1] = metric.name
            axis = metric.step_metric or self._defined.get(metric.step_metric_index)
            if axis:
                self._axes.define(metric.glob_name or metric.name, axis)
        elif kind == "exit":
            self._exit_code = record.exit.exit_code
        elif kind == "summary":
            self._summary |= dict(self._items(record.summary.update))
        elif kind == "history":
            self._rows.append(dict(self._items(record.history.item)))
        elif kind == "output_raw" or kind == "output":
            line = getattr(record, kind).line.rstrip("\r\n")
            if line:
                self.log.lines.append((self._started_at, line))
        elif kind in ("artifact", "files"):
            self.log.not_kept["files"] += 1

    def finished(self) -> Log:
        """The log, once all records are read."""
        rows = self._rows
        axis = self._axes.of_whole(rows)
        self.log.said += self._axes.said
        if axis is None or axis.unit == "iterations":
            self.log.step_unit = "iterations"
        if self._exit_code is None:
            self.log.state, self.log.reason = "stopped", "imported: W&B's file has no end of the run"
        elif self._exit_code:
            self.log.state, self.log.reason = "failed", f"imported: exit code {self._exit_code}"
        steps = 0
        for at, row in enumerate(rows):
            counted = row.get("_step" if axis is None else axis.metric)
            if isinstance(counted, (int, float)) and _is_number(counted):
                steps = int(counted)
            elif axis is None:
                steps = at
            wall_time_s = self._wall_time_s(row)
            for name, value in _join_typed(row).items():
                if name not in _OWN:
                    self._value(name, value, steps, wall_time_s)
        logged = {name for row in rows for name in row}
        for name, value in _join_typed(self._summary).items():
            if name not in logged and name not in _OWN and not isinstance(value, dict):
                self.log.lines.append((self._started_at, f"summary {name}: {value}"))
        self.log.sort()
        return self.log

    def _wall_time_s(self, row: Mapping[str, Any]) -> float:
        """When a row was logged: `_timestamp`. `_runtime` is when W&B's process has read it, which may be a
        file of TensorBoard's, every 5 s."""
        if self._started_at and _is_number(row.get("_timestamp")):
            return max(0.0, float(row["_timestamp"]) - self._started_at)
        return float(row["_runtime"]) if _is_number(row.get("_runtime")) else 0.0

    def _value(self, name: str, value: Any, steps: int, wall_time_s: float) -> None:
        if isinstance(value, (int, float)) or value in ("NaN", "Infinity", "-Infinity"):
            metric = self._names.stored(name)
            self.log.add(metric, steps, wall_time_s, float(value), is_ordered=False)
        elif isinstance(value, str):
            self.log.lines.append((self._started_at + wall_time_s, f"{name}: {value}"))
        elif isinstance(value, dict) and value.get("_type") == "histogram":
            histogram = _histogram_of(value)
            self.log.add_histogram(self._names.stored(name), steps, wall_time_s, histogram)
        elif isinstance(value, dict) and value.get("_type") == "image-file":
            self._image(name, value.get("path"), steps, wall_time_s)
        elif isinstance(value, dict) and "_type" in value:
            self.log.not_kept[f"values of the type {value['_type']}"] += 1
        else:
            self.log.not_kept["values that are no numbers"] += 1

    def _image(self, name: str, path: Any, steps: int, wall_time_s: float) -> None:
        """An image that lies in the run's folder."""
        content = b""
        with suppress(OSError, ValueError, TypeError):
            file = (self._files / path).resolve()
            if self._files in file.parents and file.stat().st_size <= MAX_MEDIA_BYTES:
                content = file.read_bytes()
        self.log.add_image(self._names.stored(name), steps, wall_time_s, content)

    def _config(self, config: Any) -> None:
        settings = {
            name: value
            for name, value in self._items(config.update, flat=False)
            if name not in _OWN and not name.startswith("_wandb/")
        }
        if settings:
            self.log.describe_by_config(settings)

    def _items(self, items: Any, *, flat: bool = True) -> Iterator[tuple[str, Any]]:
        for item in items:
            name = ".".join(item.nested_key) or item.key
            try:
                value = json.loads(item.value_json, parse_int=_whole)
            except (ValueError, RecursionError):
                self.log.not_kept["values that cannot be read"] += 1
                continue
            yield from _flat(name, value) if flat else ((name, value),)


def _flat(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """A value, or those of an object as `outer.inner`, as W&B's pages call them."""
    if isinstance(value, Mapping) and value and "_type" not in value and depth < _MAX_DEPTH:
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner, depth + 1)
    else:
        yield name, value


def _join_typed(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose values with a type of W&B's, such as histograms, are one value each. Newer versions store
    the parts of one under names of their own."""
    types = {name[: -len(_TYPE)]: value for name, value in row.items() if name.endswith(_TYPE)}
    if not types:
        return row
    typed = {name: {"_type": kind} for name, kind in types.items()}
    rest = {}
    for name, value in row.items():
        owner = next((owner for owner in types if name.startswith(f"{owner}.")), None)
        if owner is None:
            rest[name] = value
        elif name != owner + _TYPE:
            typed[owner][name[len(owner) + 1 :]] = value
    return {**rest, **typed}


def _histogram_of(value: Mapping[str, Any]) -> Histogram:
    """A histogram as W&B stores it: with the edges of its bins, or with what even ones follow from."""
    edges = value.get("bins")
    if edges is None:
        packed = value.get("packedBins") or {
            name: value.get(f"packedBins.{name}") for name in ("min", "size", "count")
        }
        low: Any = packed.get("min")
        size: Any = packed.get("size")
        n = packed.get("count")
        if not _is_number(low) or not _is_number(size) or type(n) is not int or not 0 < n <= 10_000:
            return Histogram()
        edges = np.linspace(low, low + size * n, n + 1)
    return Histogram(counts=value.get("values"), edges=edges)


def _whole(text: str) -> int | float:
    """A whole number; infinite if no float is as large."""
    return int(text) if len(text) <= _MAX_DIGITS else float(text)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and value - value == 0


def _records(path: Path) -> Iterator[bytes]:
    """The records of a file; one that is not complete at its end is left out.

    Raises:
        _Damaged: a checksum is wrong, or it is another file.
    """
    with path.open("rb") as file:
        header = file.read(_FILE.size)
        if len(header) < _FILE.size or _FILE.unpack(header)[:2] != _MAGIC:
            raise _Damaged("it is no log of W&B's")
        position = _FILE.size
        parts: list[bytes] = []
        n_bytes = 0
        while True:
            left = _BLOCK_BYTES - position % _BLOCK_BYTES
            if left < _PART.size:
                file.read(left)
                position += left
                continue
            head = file.read(_PART.size)
            if len(head) < _PART.size:
                return
            checksum, length, kind = _PART.unpack(head)
            content = file.read(length)
            position += _PART.size + length
            if len(content) < length:
                return
            if kind == 0 and length == 0 and checksum == 0:
                continue  # space that was reserved
            if zlib.crc32(content, zlib.crc32(bytes([kind]))) != checksum:
                raise _Damaged("a checksum is wrong")
            if kind in (_FULL, _FIRST):
                parts, n_bytes = [], 0
            parts.append(content)
            n_bytes += length
            if n_bytes > _MAX_RECORD_BYTES:
                raise _Damaged("a record is too long")
            if kind in (_FULL, _LAST):
                yield b"".join(parts)
                parts, n_bytes = [], 0
            elif kind not in (_FIRST, _MIDDLE):
                raise _Damaged("an unknown kind of record")
