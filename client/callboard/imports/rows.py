"""Reads files of rows: CSV in its dialects, JSON lines and Parquet, compressed with gzip or not."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from callboard.imports.log import UnreadableLog, quoted
from callboard.names import of_cell

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".pq")
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
TORN = "a last line that is not complete"
TORN_FILE = "the rest of a compressed file that is not complete"

_PARQUET = (".parquet", ".pq")
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_MAX_DEPTH = 20
"""Of objects in a line of JSON."""


@dataclass
class Rows:
    """The rows of a file, to be read once."""

    columns: list[str]
    rows: Iterator[Mapping[str, Any]]
    about: dict[str, Any] = field(default_factory=dict)
    """What a comment before the first line says of the training, as JSON."""
    config: dict[str, Any] = field(default_factory=dict)
    """Settings that the rows repeat."""
    not_kept: Counter[str] = field(default_factory=Counter)
    """Complete only after the last row."""
    has_decimal_commas: bool = False


def ending(path: Path) -> str:
    """The ending of a file's name in lower case, without that of its compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def stem(path: Path) -> str:
    """The file's name without its endings of format and compression."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem


def read_rows(path: Path, *, is_growing: bool = False) -> Rows:
    """The rows of a file.

    Args:
        path: path of the file; its ending says whether it is Parquet, its content whether it is JSON or
            compressed.
        is_growing: whether a last line without an end may still be written.

    Raises:
        UnreadableLog: it cannot be read; also while the rows are read.
    """
    if ending(path) in _PARQUET:
        rows = _guard(path, _parquet(path))
        return Rows(next(rows), rows)
    not_kept: Counter[str] = Counter()
    lines = _guard(path, _lines(path, not_kept))
    first = next((line for line in lines if line.strip()), "")
    lines = chain([first], lines) if first else iter(())
    if first.lstrip().startswith("{"):
        return _json_lines(lines, not_kept, is_growing=is_growing)
    return _csv(path, lines, not_kept, is_growing=is_growing)


def _guard(path: Path, items: Iterator[Any]) -> Iterator[Any]:
    """The items; what cannot be read becomes one error that names the file."""
    try:
        yield from items
    except UnicodeDecodeError:
        raise UnreadableLog(f"{path}: it is neither UTF-8 nor UTF-16; convert it to UTF-8") from None
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise UnreadableLog(f"{path}: {error}") from None


def _lines(path: Path, not_kept: Counter[str]) -> Iterator[str]:
    """The lines of a file; of a compressed one that is torn, those before that."""
    with path.open("rb") as raw:
        magic = raw.read(2)
        raw.seek(0)
        binary = gzip.GzipFile(fileobj=raw) if magic == _GZIP else raw
        start = binary.read(2)
        binary.seek(0)
        encoding = "utf-16" if start in _UTF_16 else "utf-8-sig"
        with io.TextIOWrapper(binary, encoding, newline="") as text:
            is_empty = True
            try:
                for line in text:
                    yield line
                    is_empty = False
            except EOFError:
                if is_empty:
                    raise
                not_kept[TORN_FILE] += 1


def _csv(path: Path, lines: Iterator[str], not_kept: Counter[str], *, is_growing: bool) -> Rows:
    about: dict[str, Any] = {}
    header = ""
    for header in lines:
        if not header.startswith("#"):
            break
        about |= _object(header[1:]) or {}
    delimiter = "\t" if ending(path) == ".tsv" else max("\t;,", key=header.count)
    state = _End()
    reader = _guard(
        path, csv.reader(state.watched(chain([header], lines), drops_open=is_growing), delimiter=delimiter)
    )
    columns = [of_cell(name) for name in next(reader, [])]
    table = Rows(columns, iter(()), about, not_kept=not_kept, has_decimal_commas=delimiter == ";")
    for name, n in Counter(columns).items():
        if n > 1 and name:
            table.not_kept[f"column {quoted(name)}, which comes {n} times, but for its last"] = 1

    def rows() -> Iterator[Mapping[str, Any]]:
        for cells in reader:
            if not cells or len(cells) == len(columns):
                pass
            elif len(cells) < len(columns) and state.is_open:
                table.not_kept[TORN] += 1
                return
            else:
                kind = "fewer" if len(cells) < len(columns) else "more"
                table.not_kept[f"rows with {kind} cells than columns, in part"] += 1
            if cells:
                yield dict(zip(columns, cells))
        if state.is_dropped:
            table.not_kept[TORN] += 1

    table.rows = rows()
    return table


class _End:
    """How the lines of a file end."""

    def __init__(self) -> None:
        self.is_open = False
        """Whether the last line that was read has no end."""
        self.is_dropped = False

    def watched(self, lines: Iterable[str], *, drops_open: bool) -> Iterator[str]:
        for line in lines:
            self.is_open = not line.endswith(("\n", "\r"))
            if self.is_open and drops_open:
                self.is_dropped = True
                return
            yield line


def _json_lines(lines: Iterator[str], not_kept: Counter[str], *, is_growing: bool) -> Rows:
    """Objects, one a line; inner objects become columns `outer/inner`, but those called `config` settings."""
    table = Rows([], iter(()), not_kept=not_kept)
    state = _End()
    rows: list[dict[str, Any]] = []
    columns: dict[str, None] = {}
    n_bad = 0
    for line in state.watched(lines, drops_open=is_growing):
        if not line.strip():
            continue
        row = _object(line)
        if row is None:
            n_bad += 1
            continue
        config = row.pop("config", None)
        if isinstance(config, dict):
            table.config |= config
        rows.append(_flat(row))
        columns |= dict.fromkeys(rows[-1])
    if state.is_dropped or (n_bad and state.is_open):
        table.not_kept[TORN] = 1
        n_bad -= not state.is_dropped
    if n_bad:
        table.not_kept["lines that are no JSON objects"] = n_bad
    table.columns, table.rows = list(columns), iter(rows)
    return table


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _flat(row: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            flat |= _flat(value, f"{prefix}{name}/", depth + 1)
        else:
            flat[prefix + name] = value
    return flat


def _parquet(path: Path) -> Iterator[Any]:
    """The names of the columns, then the rows."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UnreadableLog(
            "reading Parquet needs pyarrow: pip install 'callboard-client[parquet]'"
        ) from None

    try:
        with ParquetFile(path) as file:
            yield list(file.schema_arrow.names)
            for batch in file.iter_batches(batch_size=10_000):
                yield from batch.to_pylist()
    except ArrowException as error:
        raise UnreadableLog(f"{path}: {str(error).splitlines()[0]}") from None
