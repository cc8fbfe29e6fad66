"""Reads TensorBoard's event files: scalars, texts and hyperparameters."""

import json
import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callboard.config import SETTINGS_TAGS, config_of_table
from callboard.names import Names
from callboard_cli.imports.log import Log, UnreadableLog

MAX_RECORD_BYTES = 2**28
MAX_PARAMS_BYTES = 2**22

_TRIAL = re.compile(r"([A-Za-z][A-Za-z0-9]*)_.+_[0-9a-f]{5}")
"""Name of a trial's folder of Ray Tune: algorithm, environment, id."""
_HPARAMS_FOLDER = re.compile(r"\d{9,}(\.\d+)?")
"""Where torch's `add_hparams` writes, below the folder of the training."""
_TEXT_ENDING = "/text_summary"
_HEADER = struct.Struct("<QI")
_CHECKSUM_BYTES = 4


def read(root: Path) -> Iterator[Log]:
    """One log for each folder with event files, in the folders' order.

    Args:
        root: a folder, searched with all folders below it, or one event file.

    Raises:
        UnreadableLog: there are no event files, or TensorBoard is not installed.
    """
    messages = _messages()
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
        log = _named(name)
        _describe_by_params(log, folder)
        reader = _Reader(log, messages, metrics)
        # Those of folders below come last; of the others the name begins with the time.
        yield reader.read(sorted(folders[folder], key=lambda path: (path.parent != folder, path.name)))


def _training_of(
    folder: Path, with_events: Mapping[Path, Sequence[Path]], messages: "_Messages"
) -> tuple[Path, str | None]:
    """The folder of the training that has written to this one, and the metric whose points are in it, if
    `add_scalars` has written them: it has a folder for each value, all with the tag of the whole."""
    if _HPARAMS_FOLDER.fullmatch(folder.name) and folder.parent in with_events:
        return folder.parent, None
    above = [each for each in folder.parents if each in with_events]
    tag = _only_tag(with_events[folder], messages) if above else None
    for training in above if tag is not None else ():
        name = folder.relative_to(training).as_posix()
        for prefix in (f"{tag}_".replace("/", "_"), f"{tag}/"):  # of torch, of tensorboardX
            if name.startswith(prefix) and name != prefix:
                return training, f"{tag}/{name.removeprefix(prefix)}"
    return folder, None


def _only_tag(files: Iterable[Path], messages: "_Messages") -> str | None:
    """The tag of all values of these files; None if there are several, or none."""
    tags: set[str] = set()
    try:
        for path in files:
            for record in _records(path):
                tags.update(value.tag for value in messages.event.FromString(record).summary.value)
                if len(tags) > 1:
                    return None
    except (messages.damaged, OSError, ValueError):
        return None
    return tags.pop() if tags else None


def _messages() -> "_Messages":
    try:
        from google.protobuf.message import DecodeError
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
        from tensorboard.util.tensor_util import make_ndarray
    except ImportError:
        raise UnreadableLog("reading event files needs TensorBoard: pip install tensorboard") from None
    return _Messages(Event, HParamsPluginData, make_ndarray, DecodeError)


@dataclass(frozen=True)
class _Messages:
    """The parts of TensorBoard that are used. Its own loader spends most of its time on checksums."""

    event: Any
    hparams: Any
    array: Any
    damaged: type[Exception]


class _Reader:
    """Reads the files of one training."""

    def __init__(self, log: Log, messages: _Messages, metrics: Mapping[Path, str]) -> None:
        """`metrics` names that of a file with one metric whose tag is another."""
        self._log = log
        self._messages = messages
        self._metrics = metrics
        self._metric: str | None = None
        """That of the file that is read."""
        self._started_at: float | None = None
        self._plugins: dict[str, str] = {}
        self._names = Names()

    def read(self, files: Iterable[Path]) -> Log:
        for path in files:
            begun: set[str] = set()
            self._metric = self._metrics.get(path)
            try:
                for record in _records(path):
                    self._event(self._messages.event.FromString(record), path, begun)
            except (self._messages.damaged, OSError, ValueError) as error:
                problem = f"the rest of {path.name}, which cannot be read ({type(error).__name__})"
                self._log.not_kept[problem] += 1
        return self._log

    def _event(self, event: Any, path: Path, begun: set[str]) -> None:
        log = self._log
        if self._started_at is None:
            self._started_at = event.wall_time
            log.identity = f"tensorboard {Path(log.name).name} {path.name} {event.wall_time!r}"
        for value in event.summary.value:
            self._value(event, value, begun)

    def _value(self, event: Any, value: Any, begun: set[str]) -> None:
        tag = value.tag
        if value.HasField("simple_value"):
            self._point(event, tag, value.simple_value, begun)
            return
        plugin = value.metadata.plugin_data.plugin_name
        if plugin:
            self._plugins[tag] = plugin
        plugin = self._plugins.get(tag, "")
        kind = value.WhichOneof("value")
        if plugin == "hparams":
            self._settings(value.metadata.plugin_data.content)
        elif kind == "tensor" and plugin == "text":
            for each in value.tensor.string_val:
                self._text(event, tag.removesuffix(_TEXT_ENDING), each.decode("utf-8", "replace"))
        elif kind == "tensor" and plugin in ("scalars", ""):
            found = self._array(value.tensor)
            if found is not None and found.size == 1 and found.dtype.kind in "fiub":
                self._point(event, tag, float(found.reshape(())), begun)
            else:
                self._log.not_kept["tensors"] += 1
        else:
            self._log.not_kept[{"histo": "histograms", "image": "images"}.get(kind, plugin or str(kind))] += 1

    def _array(self, tensor: Any) -> Any:
        # A tensor of a few bytes may have any shape: it would be filled up.
        if any(dimension.size != 1 for dimension in tensor.tensor_shape.dim):
            return None
        try:
            return self._messages.array(tensor)
        except (TypeError, ValueError):  # of a type or shape that it does not know
            return None

    def _point(self, event: Any, tag: str, value: float, begun: set[str]) -> None:
        metric = self._names.stored(self._metric or tag)
        if metric not in begun:
            begun.add(metric)
            column = self._log.series.get(metric)
            # A later file that begins at an earlier step replaces what came after it.
            n_replaced = 0 if column is None else column.cut(event.step)
            if n_replaced:
                self._log.not_kept["points that a later file replaces"] += n_replaced
        assert self._started_at is not None
        self._log.add(metric, event.step, event.wall_time - self._started_at, value)

    def _text(self, event: Any, tag: str, text: str) -> None:
        if tag in SETTINGS_TAGS and (settings := config_of_table(text)):
            self._log.describe_by_config(settings)
        elif text:
            self._log.lines.append((event.wall_time, f"{tag}: {text}"))

    def _settings(self, content: bytes) -> None:
        start = self._messages.hparams.FromString(content).session_start_info.hparams
        found = {name: getattr(each, each.WhichOneof("kind") or "", None) for name, each in start.items()}
        if found:
            self._log.describe_by_config({name: _whole(value) for name, value in found.items()})


def _records(path: Path) -> Iterator[bytes]:
    """The records of a file; an incomplete record at the end is skipped."""
    with path.open("rb") as file:
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, _ = _HEADER.unpack(header)
            if length > MAX_RECORD_BYTES:
                raise ValueError("a record is too long")
            record = file.read(length + _CHECKSUM_BYTES)
            if len(record) < length + _CHECKSUM_BYTES:
                return
            yield record[:length]


def _describe_by_params(log: Log, folder: Path) -> None:
    """Settings from the file that Ray Tune writes beside the event files."""
    path = folder / "params.json"
    try:
        params = json.loads(path.read_text("utf-8")) if path.stat().st_size <= MAX_PARAMS_BYTES else None
    except (OSError, ValueError, RecursionError):
        return
    if isinstance(params, dict):
        log.describe_by_config(params)
        trial = _TRIAL.match(folder.name)
        log.algorithm = log.algorithm or (trial[1] if trial else None)


def _named(name: str) -> Log:
    """A log with the environment, algorithm and seed of its folder's name, if CleanRL has chosen it."""
    log = Log(name, f"tensorboard {name}")
    parts = Path(name).name.split("__")
    if len(parts) >= 3:
        log.environment, log.algorithm = parts[0], parts[1]
        log.seed = int(parts[2]) if parts[2].isdecimal() and len(parts[2]) < 10 else None
    return log


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
