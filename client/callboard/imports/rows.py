"""Reads files of rows: CSV in its dialects, JSON lines and Parquet, compressed with gzip or not."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from callboard.imports.log import UnreadableLog, quoted
from callboard.limits import MAX_METRIC_CHARACTERS
from callboard.names import of_cell, with_checksum

TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".pq")
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
_MAX_DOCUMENT_BYTES = 2**24
TORN = "a last line that is not complete"
OPEN_QUOTE = "quotes that are never closed"
TORN_FILE = "the rest of a compressed file that is not complete"

_PARQUET = (".parquet", ".pq")
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_MAX_DEPTH = 20
"""Of objects in a line of JSON."""
_MAX_LINE_CHARACTERS = 2**22
"""Of a line, and of the lines that one pair of quotes joins: each is read as a whole."""
_MAX_CHUNK_BYTES = 2**28
"""Of a column in a row group of Parquet, before compression."""
_MAX_TEXT_CHARACTERS = 2_000
"""Of a text in Parquet, where a dictionary may repeat it in each row. The rest is not read."""


@dataclass
class Rows:
    """The rows of a file, to be read once."""

    columns: list[str]
    rows: Iterator[Mapping[str, Any]]
    about: dict[str, Any] = field(default_factory=dict)
    """What a comment before the first line says of the training, as JSON; of Parquet, `runs` by their ids."""
    config: dict[str, Any] = field(default_factory=dict)
    """Settings that the rows repeat."""
    not_kept: Counter[str] = field(default_factory=Counter)
    """Complete only after the last row."""
    has_decimal_commas: bool = False
    is_csv: bool = False


def ending(path: Path) -> str:
    """The ending of a file's name in lower case, without that of its compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def is_document(path: Path, step_columns: Collection[str]) -> bool:
    """Whether a file is a single JSON object, as programs write their settings and states, and no row of a
    table: it has several lines, or none of the columns of steps."""
    if path.suffix.lower() != ".json":
        return False
    try:
        if path.stat().st_size > _MAX_DOCUMENT_BYTES:
            return False
        text = path.read_text("utf-8-sig").strip()
    except (OSError, ValueError):
        return False  # whatever is wrong with it, reading it says so
    whole = _object(text)
    if whole is None:
        return False
    return "\n" in text or not _Columns().flat(whole).keys() & set(step_columns)


def stem(path: Path) -> str:
    """The file's name without its endings of format and compression."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem


def read_rows(path: Path, *, is_json: bool = False, is_growing: bool = False) -> Rows:
    """The rows of a file.

    Args:
        path: path of the file; its ending says whether it is Parquet, its content whether it is JSON or
            compressed.
        is_json: whether it has to be JSON lines.
        is_growing: whether a last line without an end may still be written.

    Raises:
        UnreadableLog: it cannot be read; also while the rows are read.
    """
    if ending(path) in _PARQUET:
        rows = _guard(path, _parquet(path))
        return Rows(next(rows), rows, next(rows))
    not_kept: Counter[str] = Counter()
    lines = _guard(path, _lines(path, not_kept))
    first = next((line for line in lines if line.strip()), "")
    if not first:
        raise UnreadableLog(f"{path}: it is empty")
    lines = chain([first], lines)
    if first.lstrip().startswith("{"):
        return _json_lines(path, lines, not_kept, is_growing=is_growing)
    if first.lstrip().startswith("[") and ending(path) in JSON_ENDINGS:
        raise UnreadableLog(f"{path}: it is a JSON array; write each of its objects on a line of its own")
    if is_json:
        raise UnreadableLog(
            f"{path}: it is not JSON lines: its first line is no object; `callboard import csv` reads tables"
        )
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
    """The lines of a file; of a torn compressed file, those before the tear."""
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
                while line := text.readline(_MAX_LINE_CHARACTERS + 1):
                    if len(line) > _MAX_LINE_CHARACTERS:
                        raise UnreadableLog(
                            f"{path}: it has a line of over {_MAX_LINE_CHARACTERS:,} characters"
                        )
                    yield line
                    is_empty = False
            except EOFError:
                if is_empty:
                    raise
                not_kept[TORN_FILE] += 1


def _csv(path: Path, lines: Iterator[str], not_kept: Counter[str], *, is_growing: bool) -> Rows:
    about: dict[str, Any] = {}
    header = comment = ""
    for line in lines:
        if not line.startswith("#"):
            header = line
            break
        described = _object(line[1:])
        about |= described or {}
        comment = comment if described else line[1:].strip()
    delimiter = "\t" if ending(path) == ".tsv" else max("\t;,", key=header.count)
    cells = header.strip().split(delimiter)
    if comment.count(delimiter) == len(cells) - 1 and all(map(_is_number, cells)):  # of `numpy.savetxt`
        lines = chain([header], lines)
        header = comment + "\n"
    state = _End()
    source = _Cells(state.watched(chain([header], lines), drops_open=is_growing), delimiter, not_kept)
    reader = _guard(path, source.read())
    columns: list[str] = next(reader, [])
    unescaped = [of_cell(name) for name in columns]
    if len({*unescaped}) == len({*columns}):  # else the apostrophes are of the names themselves
        columns = unescaped
    stripped = [name.strip() for name in columns]
    if len({*stripped}) == len({*columns}):
        columns = stripped
    table = Rows(
        columns, iter(()), about, not_kept=not_kept, has_decimal_commas=delimiter == ";", is_csv=True
    )
    for name, n in Counter(columns).items():
        if n > 1 and name:
            table.not_kept[f"column {quoted(name)}, which comes {n} times, but for its last"] = 1

    def rows() -> Iterator[Mapping[str, Any]]:
        for cells in reader:
            if not cells or len(cells) == len(columns):
                pass
            elif len(cells) < len(columns) and state.is_open and not source.is_ahead:
                table.not_kept[TORN] += 1
                return
            elif len(cells) < len(columns):
                table.not_kept["rows with fewer cells than columns, whose last values are missing"] += 1
            else:
                table.not_kept["rows with more cells than columns, in part"] += 1
            if cells:
                yield dict(zip(columns, cells))
        if state.is_dropped:
            table.not_kept[TORN] += 1

    table.rows = rows()
    return table


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


class _Cells:
    """The rows of a CSV file. A quote that is never closed ends with its line, and takes no others."""

    def __init__(self, lines: Iterator[str], delimiter: str, not_kept: Counter[str]) -> None:
        self._lines = lines
        self._delimiter = delimiter
        self._not_kept = not_kept
        self._back: deque[str] = deque()
        """Lines that were read and are to be read again."""
        self._taken: list[str] = []
        """Lines of the row that is read."""
        self._n_characters = 0
        """Of these lines."""

    @property
    def is_ahead(self) -> bool:
        """Whether lines behind the last row were read already."""
        return bool(self._back)

    def read(self) -> Iterator[list[str]]:
        """The cells of each row."""
        csv.field_size_limit(2 * _MAX_LINE_CHARACTERS)
        is_done = False
        while not is_done:
            is_done = True
            for cells in csv.reader(self._take(), delimiter=self._delimiter):
                if len(self._taken) > 1 and not self._is_closed():
                    self._not_kept[OPEN_QUOTE] += 1
                    first, *others = self._taken
                    self._clear()
                    self._back.extendleft(reversed(others))
                    yield next(csv.reader([first], delimiter=self._delimiter, quoting=csv.QUOTE_NONE))
                    is_done = False
                    break
                self._clear()
                yield cells

    def _clear(self) -> None:
        self._taken.clear()
        self._n_characters = 0

    def _take(self) -> Iterator[str]:
        while self._n_characters <= _MAX_LINE_CHARACTERS:
            line = self._back.popleft() if self._back else next(self._lines, None)
            if line is None:
                return
            self._taken.append(line)
            self._n_characters += len(line)
            yield line

    def _is_closed(self) -> bool:
        try:
            for _ in csv.reader(self._taken, delimiter=self._delimiter, strict=True):
                pass
        except csv.Error:
            return False
        return True


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


def _json_lines(path: Path, lines: Iterator[str], not_kept: Counter[str], *, is_growing: bool) -> Rows:
    """Objects, one a line; inner objects become columns `outer/inner`, but those called `config` settings."""
    table = Rows([], iter(()), not_kept=not_kept)
    state = _End()
    rows: list[dict[str, Any]] = []
    columns = _Columns()
    n_bad = 0
    for line in state.watched(lines, drops_open=is_growing):
        if not line.strip():
            continue
        row = _object(line, not_kept)
        if row is None and state.is_open:
            table.not_kept[TORN] = 1
            continue
        if row is None:
            n_bad += 1
            continue
        if isinstance(row.get("config"), dict):
            table.config |= row.pop("config")
        rows.append(columns.flat(row))
    if state.is_dropped:
        table.not_kept[TORN] = 1
    if n_bad:
        table.not_kept["lines that are no JSON objects"] = n_bad
    if not rows:
        raise UnreadableLog(f"{path}: none of its lines is a JSON object; write each object on one line")
    table.columns, table.rows = columns.names, iter(rows)
    return table


def _object(text: str, not_kept: Counter[str] | None = None) -> dict[str, Any] | None:
    """A JSON object; of a key that comes twice, the last value is kept, and the others are counted."""

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if not_kept is not None and len(value) < len(pairs):
            for name, n in Counter(name for name, _ in pairs).items():
                if n > 1:
                    doubled[
                        f"values of {quoted(name)}, which comes twice in an object, but for the last"
                    ] += n - 1
        return value

    doubled: Counter[str] = Counter()
    try:
        value = json.loads(text, object_pairs_hook=read)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    if not_kept is not None:
        not_kept.update(doubled)
    return value


class _Columns:
    """Columns of objects: `outer/inner` for inner objects, but no two become one."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], str] = {}
        self._taken: set[str] = set()

    @property
    def names(self) -> list[str]:
        """Their names, in order."""
        return list(self._names.values())

    def flat(self, row: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[str, Any]:
        """The values of an object by column."""
        flat: dict[str, Any] = {}
        for key, value in row.items():
            inner = (*path, key)
            if isinstance(value, dict) and len(path) < _MAX_DEPTH:
                flat |= self.flat(value, inner)
            else:
                flat[self._name(inner)] = value
        return flat

    def _name(self, path: tuple[str, ...]) -> str:
        name = self._names.get(path)
        if name is None:
            name = "/".join(path)
            while name in self._taken:
                name = with_checksum(name, repr((name, path)), MAX_METRIC_CHARACTERS)
            self._taken.add(name)
            self._names[path] = name
        return name


def _parquet(path: Path) -> Iterator[Any]:
    """The names of the columns, what the file's metadata says of runs, then the rows."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UnreadableLog(
            "reading Parquet needs pyarrow: pip install 'callboard-client[parquet]'"
        ) from None

    try:
        with ParquetFile(path) as described:
            texts = [field.name for field in described.schema_arrow if _is_text(field.type)]
        with ParquetFile(path, read_dictionary=texts) as file:
            yield list(file.schema_arrow.names)
            described = (file.schema_arrow.metadata or {}).get(b"runs", b"")
            yield {"runs": _object(described.decode("utf-8", "replace")) or {}}
            yield from _parquet_rows(path, file)
    except ArrowException as error:
        raise UnreadableLog(f"{path}: {str(error).splitlines()[0]}") from None


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _parquet_rows(path: Path, file: Any) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file: a text is cut before it becomes an object for each row that has it, and a
    list, an object or bytes, which are no values of metrics, are not read."""
    from pyarrow import DictionaryArray, compute, types

    names = file.schema_arrow.names
    read = [
        field.name
        for field in file.schema_arrow
        if not (
            types.is_nested(field.type) or types.is_binary(field.type) or types.is_large_binary(field.type)
        )
    ]
    for n in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(n)
        for column in map(group.column, range(group.num_columns)):
            if column.total_uncompressed_size > _MAX_CHUNK_BYTES:
                raise UnreadableLog(
                    f"{path}: column {quoted(column.path_in_schema)} has {column.total_uncompressed_size:,} "
                    "bytes in one row group; write it in smaller ones"
                )
    rest = dict.fromkeys(names)
    for batch in file.iter_batches(batch_size=10_000, columns=read):
        columns = {}
        for name, column in zip(batch.schema.names, batch.columns):
            if isinstance(column, DictionaryArray) and _is_text(column.dictionary.type):
                cut = compute.utf8_slice_codeunits(column.dictionary, 0, _MAX_TEXT_CHARACTERS)
                column = DictionaryArray.from_arrays(column.indices, cut)
            columns[name] = column.to_pylist()
        for cells in zip(*columns.values()):
            yield rest | dict(zip(columns, cells))
