"""Reads TensorBoard's event files: scalars, texts, hyperparameters, histograms and images."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from callboard.config import SETTINGS_TAGS, config_of_table
from callboard.files import sha256_of
from callboard.imports.log import Column, Log, UnreadableLog
from callboard.media import Histogram
from callboard.names import Names

MAX_RECORD_BYTES = 2**28

Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]

_HPARAMS_FOLDER = re.compile(r"\d{9,}(\.\d+)?")
"""Where torch's `add_hparams` writes by default, below the folder of the training."""
_HPARAMS = "_hparams_/"
_SETTINGS = "_hparams_/session_start_info"
_START = 1
"""Status of a session log with which a writer purges what has its step or a later one."""
_TEXT_ENDING = "/text_summary"
_HEADER = struct.Struct("<QI")
_CHECKSUM_BYTES = 4
_GZIP = b"\x1f\x8b"
_POLYNOMIAL = 0x82F63B78
"""Of CRC-32C, which each record ends with, masked as in TFRecord."""
_MAX_VERIFIED = 4_096
"""Records that are verified together."""
_MAX_VERIFIED_BYTES = 2**22
_MAX_AHEAD = 100
"""Records that are read ahead of a file, to see what it is."""
_MAX_BUCKETS = 10_000
"""Of a histogram."""
_FEW = 16
"""Fewer records of one length are verified one after the other."""


def read(root: Path) -> Iterator[Log]:
    """One log for each folder with event files, in the folders' order.

    Args:
        root: a folder, searched with all folders below it, or one event file.

    Raises:
        UnreadableLog: there are no event files, or TensorBoard is not installed.
    """
    messages = _messages()
    if root.is_file() and "tfevents" not in root.name and not _begins_with_record(root):
        raise UnreadableLog(f"{root}: it is no event file of TensorBoard")
    files = [root] if root.is_file() else sorted(root.rglob("*tfevents*"))
    with_events: dict[Path, list[Path]] = defaultdict(list)
    for path in filter(Path.is_file, files):
        with_events[path.parent].append(path)
    folders: dict[Path, list[Path]] = defaultdict(list)
    metrics: dict[Path, str] = {}
    for folder in sorted(with_events):
        training, metric = _training_of(folder, with_events, messages)
        folders[training] += with_events[folder]
        if metric is not None:
            metrics |= dict.fromkeys(with_events[folder], metric)
    if not folders:
        raise UnreadableLog(f"{root}: no event files (*tfevents*) in it or below it")
    base = root.parent if root.is_file() else root
    for folder in sorted(folders):
        relative = folder.relative_to(base)
        name = relative.as_posix() if relative.name else folder.resolve().name
        log = Log(name, f"tensorboard {name}")
        log.describe_by_folder(folder if folder.is_dir() else folder.parent)
        log.describe_by_trial(folder)
        reader = _Reader(log, messages, metrics)
        # Those of folders below come last; of the others the name begins with the time.
        yield reader.read(sorted(folders[folder], key=lambda path: (path.parent != folder, path.name)))


def _training_of(
    folder: Path, with_events: Mapping[Path, Sequence[Path]], messages: _Messages
) -> tuple[Path, str | None]:
    """The folder of the training that has written to this one, and the metric whose points are in it, if
    `add_scalars` has written them: it creates a folder for each value, and all have the same tag."""
    if folder.parent in with_events:
        beside = [other for other in with_events if other.parent == folder.parent]
        if _HPARAMS_FOLDER.fullmatch(folder.name) or _has_settings_of_parent(
            folder, beside, with_events, messages
        ):
            return folder.parent, None
    above = [parent for parent in folder.parents if parent in with_events]
    tag = _only_tag(with_events[folder], messages) if above else None
    for training in above if tag is not None else ():
        name = folder.relative_to(training).as_posix()
        for prefix in (f"{tag}_".replace("/", "_"), f"{tag}/"):  # of torch, of tensorboardX
            if name.startswith(prefix) and name != prefix:
                return training, f"{tag}/{name.removeprefix(prefix)}"
    return folder, None


def _has_settings_of_parent(
    folder: Path, beside: Sequence[Path], with_events: Mapping[Path, Sequence[Path]], messages: _Messages
) -> bool:
    """Whether `add_hparams(run_name=…)` has written to a folder: it has settings and at most one value of
    each metric, the folder above is a training, and no other folder there has settings, as in a search."""

    def tags(of: Path) -> Counter[str]:
        return _tags(with_events[of], messages)

    own = tags(folder)
    return (
        own[_SETTINGS] > 0
        and max(own.values()) == 1
        and any(not tag.startswith(_HPARAMS) for tag in tags(folder.parent))
        and not any(tags(other)[_SETTINGS] for other in beside if other != folder)
    )


def _tags(files: Iterable[Path], messages: _Messages) -> Counter[str]:
    """How many values each tag has in the first records of these files; what cannot be read is left out."""
    n_values: Counter[str] = Counter()
    for path in files:
        with suppress(EOFError, messages.damaged, OSError, ValueError):
            for record in islice(_records(path), _MAX_AHEAD):
                if record is not None:
                    n_values.update(value.tag for value in messages.event.FromString(record).summary.value)
    return n_values


def _only_tag(files: Iterable[Path], messages: _Messages) -> str | None:
    """The tag of all values of these files; None if there are several, or none."""
    tags: set[str] = set()
    try:
        for path in files:
            for record in _records(path):
                if record is None:
                    continue
                tags.update(value.tag for value in messages.event.FromString(record).summary.value)
                if len(tags) > 1:
                    return None
    except EOFError:
        pass  # what is before it counts
    except (messages.damaged, OSError, ValueError):
        return None
    return tags.pop() if tags else None


def _messages() -> _Messages:
    try:
        from google.protobuf.message import DecodeError
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
        from tensorboard.util.tensor_util import make_ndarray
    except ImportError:
        raise UnreadableLog(
            "reading event files needs TensorBoard: pip install 'callboard-client[tensorboard]'"
        ) from None
    return _Messages(Event, HParamsPluginData, make_ndarray, DecodeError)


@dataclass(frozen=True)
class _Messages:
    """The parts of TensorBoard that are used. Its own loader spends most of its time on checksums, which it
    verifies one by one."""

    event: Any
    hparams: Any
    array: Any
    damaged: type[Exception]


class _Reader:
    """Reads the files of one training."""

    def __init__(self, log: Log, messages: _Messages, metrics: Mapping[Path, str]) -> None:
        """`metrics` has the metric of each file that `add_scalars` has written, whose tag is another."""
        self._log = log
        self._messages = messages
        self._metrics = metrics
        self._metric: str | None = None
        """Metric of the file that is being read, if `metrics` has it."""
        self._started_at: float | None = None
        self._plugins: dict[str, str] = {}
        self._names = Names()
        self._until: dict[str, float] = {}
        """By metric: the time of the last event of the files so far that have points of it."""
        self._part: dict[str, Column] = {}
        """Points of the file that is read."""

    def read(self, files: Iterable[Path]) -> Log:
        contents: set[bytes] = set()
        for path in files:
            self._metric = self._metrics.get(path)
            self._part = {}
            first, last = float("inf"), float("-inf")
            try:
                with path.open("rb") as file:
                    content = sha256_of(file).digest()
                if content in contents:
                    self._log.not_kept[f"{path.name}, a copy of another file"] += 1
                    continue
                contents.add(content)
                for record in _records(path):
                    if record is None:
                        self._log.not_kept[f"records of {path.name} with a wrong checksum"] += 1
                        continue
                    event = self._messages.event.FromString(record)
                    first, last = min(first, event.wall_time), max(last, event.wall_time)
                    self._event(event, path)
            except EOFError:
                self._log.not_kept[f"the end of {path.name}, which is not complete"] += 1
            except (self._messages.damaged, OSError, ValueError) as error:
                problem = f"the rest of {path.name}, which cannot be read ({type(error).__name__})"
                self._log.not_kept[problem] += 1
            self._merge(first, last)
        return self._log

    def _merge(self, first: float, last: float) -> None:
        """Add the points of a file, whose first and last events are of these times. A script that was started
        again replaces what it had logged after its first step; of programs that write at the same time, all
        points are kept."""
        for metric, part in self._part.items():
            is_restart = first >= self._until.get(metric, float("-inf"))
            self._until[metric] = max(self._until.get(metric, float("-inf")), last)
            part.sort()
            column = self._log.series.get(metric)
            if column is None:
                self._log.series[metric] = part
                continue
            if is_restart and part.agent_steps:
                n_replaced = column.cut(part.agent_steps[0])
                if n_replaced:
                    self._log.not_kept["points that a later file replaces"] += n_replaced
            column.agent_steps += part.agent_steps
            column.wall_time_s += part.wall_time_s
            column.value += part.value
            column.sort()

    def _event(self, event: Any, path: Path) -> None:
        log = self._log
        if self._started_at is None:
            self._started_at = event.wall_time
            log.identity = f"tensorboard {Path(log.name).name} {path.name} {event.wall_time!r}"
        if event.session_log.status == _START:
            self._purge(event.step)
        for value in event.summary.value:
            self._value(event, value)

    def _purge(self, step: int) -> None:
        """Remove the points of this step and later ones, of all metrics, as TensorBoard does when a writer
        starts again with `purge_step`."""
        self._log.media = {key: item for key, item in self._log.media.items() if key[2] < step}
        n_purged = 0
        for column in (*self._log.series.values(), *self._part.values()):
            column.sort()
            n_purged += column.cut(step)
        if n_purged:
            self._log.not_kept["points that a restart with purge_step has replaced"] += n_purged

    def _value(self, event: Any, value: Any) -> None:
        tag = value.tag
        if value.HasField("simple_value"):
            self._point(event, tag, value.simple_value)
            return
        plugin = value.metadata.plugin_data.plugin_name
        if plugin:
            self._plugins[tag] = plugin
        plugin = self._plugins.get(tag, "")
        kind = value.WhichOneof("value")
        if plugin == "hparams":
            self._settings(value.metadata.plugin_data.content)
        elif kind == "tensor" and plugin == "text":
            for content in value.tensor.string_val:
                self._text(event, tag.removesuffix(_TEXT_ENDING), content.decode("utf-8", "replace"))
        elif kind == "histo":
            buckets = value.histo
            histogram = Histogram.of_buckets(buckets.min, buckets.max, buckets.bucket_limit, buckets.bucket)
            self._histogram(event, tag, histogram)
        elif kind == "tensor" and plugin == "histograms":
            self._histogram(event, tag, self._tensor_histogram(value.tensor))
        elif kind == "image":
            self._image(event, tag, value.image.encoded_image_string)
        elif kind == "tensor" and plugin == "images":
            for content in value.tensor.string_val[2:]:  # after width and height
                self._image(event, tag, content)
        elif kind == "tensor" and plugin in ("scalars", ""):
            array = self._array(value.tensor)
            if array is not None and array.size == 1 and array.dtype.kind in "fiub":
                self._point(event, tag, float(array.reshape(())))
            else:
                self._log.not_kept["tensors"] += 1
        else:
            self._log.not_kept[plugin or str(kind)] += 1

    def _histogram(self, event: Any, tag: str, histogram: Histogram) -> None:
        assert self._started_at is not None
        metric = self._names.stored(self._metric or tag)
        self._log.add_histogram(metric, event.step, event.wall_time - self._started_at, histogram)

    def _tensor_histogram(self, tensor: Any) -> Histogram:
        """Of rows with left edge, right edge and count, as TensorFlow 2 writes them."""
        shape = [dimension.size for dimension in tensor.tensor_shape.dim]
        if len(shape) != 2 or not 0 < shape[0] <= _MAX_BUCKETS or shape[1] != 3:
            return Histogram()
        try:
            left, right, counts = np.asarray(self._messages.array(tensor), np.float64).T
        except (TypeError, ValueError):
            return Histogram()
        return Histogram.of_buckets(float(left[0]), float(right[-1]), right, counts)

    def _image(self, event: Any, tag: str, content: bytes) -> None:
        assert self._started_at is not None
        metric = self._names.stored(self._metric or tag)
        self._log.add_image(metric, event.step, event.wall_time - self._started_at, content)

    def _array(self, tensor: Any) -> Any:
        # A tensor of a few bytes may have any shape: it would be filled up.
        if any(dimension.size != 1 for dimension in tensor.tensor_shape.dim):
            return None
        try:
            return self._messages.array(tensor)
        except (TypeError, ValueError):  # of a type or shape that it does not know
            return None

    def _point(self, event: Any, tag: str, value: float) -> None:
        metric = self._names.stored(self._metric or tag)
        column = self._part.get(metric)
        if column is None:
            column = self._part[metric] = Column()
        assert self._started_at is not None
        problem = column.add(event.step, event.wall_time - self._started_at, value, is_ordered=False)
        if problem is not None:
            self._log.not_kept[problem] += 1

    def _text(self, event: Any, tag: str, text: str) -> None:
        if tag in SETTINGS_TAGS and (settings := config_of_table(text)):
            self._log.describe_by_config(settings)
        elif text:
            self._log.lines.append((event.wall_time, f"{tag}: {text}"))

    def _settings(self, content: bytes) -> None:
        if settings := _settings_of(content, self._messages):
            self._log.describe_by_config(settings)


def settings_of(content: bytes) -> dict[str, Any]:
    """The hyperparameters of a summary, as `add_hparams` writes it.

    Raises:
        UnreadableLog: TensorBoard is not installed.
    """
    return _settings_of(content, _messages())


def _settings_of(content: bytes, messages: _Messages) -> dict[str, Any]:
    start = messages.hparams.FromString(content).session_start_info.hparams
    return {
        name: _whole(getattr(setting, setting.WhichOneof("kind") or "", None))
        for name, setting in start.items()
    }


def _records(path: Path) -> Iterator[bytes | None]:
    """The records of a file, None for each whose checksum is wrong.

    Raises:
        EOFError: the last one is not complete.
        ValueError: the checksum of a length is wrong, so that the next record cannot be found.
    """
    frames = _framed(path)
    problem: Exception | None = None
    while True:
        batch: list[tuple[bytes, bytes]] = []
        n_bytes = 0
        try:
            for frame in islice(frames, _MAX_VERIFIED):
                batch.append(frame)
                n_bytes += len(frame[1])
                if n_bytes > _MAX_VERIFIED_BYTES:
                    break
        except (ValueError, EOFError, OSError) as error:
            problem = error  # after what is before it
        yield from _verify([length for length, _ in batch], [record for _, record in batch])
        if problem is not None:
            raise problem
        if not batch:
            return


def _begins_with_record(path: Path) -> bool:
    """Whether a file, if it has any content, begins with the length of a record and its checksum."""
    try:
        with path.open("rb") as raw:
            magic = raw.read(2)
            raw.seek(0)
            file = gzip.GzipFile(fileobj=raw) if magic == _GZIP else raw
            header = file.read(_HEADER.size)
    except (EOFError, OSError, zlib.error):
        return False
    return not magic or _are_right([header])[0]


def _framed(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Length and content of each record, each with its checksum."""
    with path.open("rb") as raw:
        magic = raw.read(2)
        raw.seek(0)
        file = gzip.GzipFile(fileobj=raw) if magic == _GZIP else raw
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, _ = _HEADER.unpack(header)
            if length > MAX_RECORD_BYTES:
                yield header, b""  # its checksum is wrong
                raise ValueError("a record is too long")
            record = file.read(length + _CHECKSUM_BYTES)
            if len(record) < length + _CHECKSUM_BYTES:
                if not _are_right([header])[0]:
                    raise ValueError("a wrong length")
                raise EOFError
            yield header, record
        if header:
            raise EOFError


def _verify(lengths: Sequence[bytes], records: Sequence[bytes]) -> Iterator[bytes | None]:
    for is_framed, is_right, record in zip(_are_right(lengths), _are_right(records), records):
        if not is_framed:
            raise ValueError("a wrong length")
        yield record[:-_CHECKSUM_BYTES] if is_right else None


def _are_right(parts: Sequence[bytes]) -> list[bool]:
    """Whether each part ends in the checksum of what is before."""
    right = [False] * len(parts)
    by_length: dict[int, list[int]] = defaultdict(list)
    for at, part in enumerate(parts):
        by_length[len(part)].append(at)
    for length, places in by_length.items():
        if length < _CHECKSUM_BYTES:
            continue
        if len(places) < _FEW:
            for at in places:
                right[at] = _checksum(parts[at][:-_CHECKSUM_BYTES]) == parts[at][-_CHECKSUM_BYTES:]
            continue
        rows = np.frombuffer(b"".join(parts[at] for at in places), "u1").reshape(len(places), length)
        wanted = _masked(_crc32c(rows[:, :-_CHECKSUM_BYTES]))
        for at, is_right in zip(places, np.all(wanted == rows[:, -_CHECKSUM_BYTES:], axis=1)):
            right[at] = bool(is_right)
    return right


def _table() -> Words:
    table = np.arange(256, dtype="<u4")
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype("<u4")
    return table


_TABLE = _table()
"""Of CRC-32C, by byte."""
_INTEGERS: list[int] = [int(remainder) for remainder in _TABLE]


def _crc32c(rows: Bytes) -> Words:
    """The checksum of each row of a byte matrix."""
    crc = np.full(len(rows), 0xFFFFFFFF, "<u4")
    for column in rows.T:
        crc = _TABLE[(crc ^ column) & 0xFF] ^ (crc >> 8)
    return ~crc


def _masked(crc: Any) -> Bytes:
    """Checksums with the mask, as they are in a file."""
    rotated = (crc >> 15) | (crc << 17)
    words = np.ascontiguousarray((rotated + np.uint32(0xA282EAD8)).astype("<u4"))
    return words.view("u1").reshape(len(words), -1)


def _checksum(data: bytes) -> bytes:
    """The checksum of one record, as it is in a file."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _INTEGERS[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return _masked(np.array([crc ^ 0xFFFFFFFF], "<u4")).tobytes()


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
