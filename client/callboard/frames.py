"""The frames of a spool's files: a length (u32, little-endian), the CRC-32 of the payload (u32), the payload.

The payload is a JSON array that begins with the kind of its rows and their number.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from callboard.rows import part_of

MAX_FRAME_BYTES = 8 * 2**20

_HEADER = struct.Struct("<II")
_MIN_PAYLOAD_BYTES = 2
_HEAD = re.compile(rb'\["[a-z]+",([0-9]{1,7})')
"""Begin of a payload, with its number of rows."""
_MAX_COUNTED_ROWS = 10_000
"""Maximum number of rows that a frame is taken to have which may be damaged."""


@dataclass(frozen=True, order=True)
class Position:
    """A place in the segments."""

    segment: int = 1
    offset: int = 0
    row: int = 0
    """Rows of the frame that come before it, if the frame is too large for one request."""


@dataclass(frozen=True)
class Frame:
    """A frame, or the rest of one."""

    kind: str
    n_rows: int
    rows: bytes
    """A JSON array."""
    begin: Position
    end: Position


@dataclass(frozen=True)
class Damage:
    """Bytes where a frame should be. Where the next frame begins is unknown."""

    begin: Position


def framed(payload: bytes) -> bytes:
    """A frame with this payload."""
    return _HEADER.pack(len(payload), zlib.crc32(payload)) + payload


def read_payload(path: Path, offset: int) -> bytes | None:
    """The payload of the frame at an offset; None unless it is complete and undamaged."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return None
            length, crc = _HEADER.unpack(header)
            if not _MIN_PAYLOAD_BYTES <= length <= MAX_FRAME_BYTES:
                return None
            payload = file.read(length)
    except FileNotFoundError:
        return None
    return payload if len(payload) == length and zlib.crc32(payload) == crc else None


def frame_at(folder: Path, position: Position, last: Position) -> Frame | Damage | None:
    """The frame at a position, or its rest; None at the end, also before a frame that a crash has cut off.

    Args:
        folder: folder of the spool.
        position: where the frame begins.
        last: where the frames end: what is before it is complete, but for a frame that a crash has cut off.
    """
    while True:
        path = path_of(folder, position.segment)
        payload = read_payload(path, position.offset)
        if payload is not None:
            head, n, rows = payload[:-1].split(b",", 2)
            kind, n_rows = head[2:-1].decode(), int(n)
            if position.row:
                rows, n_rows = part_of(kind, rows, position.row, n_rows), n_rows - position.row
            end = Position(position.segment, position.offset + _HEADER.size + len(payload))
            return Frame(kind, n_rows, rows, position, end)
        is_last = position.segment >= last.segment
        n_bytes = min(size_of(path), last.offset) if position.segment == last.segment else size_of(path)
        if position.offset < n_bytes and position.segment <= last.segment:
            is_end = is_last and _is_torn(read_bytes(path, position.offset, n_bytes))
            return None if is_end else Damage(position)
        if is_last:
            return None
        position = Position(position.segment + 1)


def _is_torn(content: bytes) -> bool:
    """Whether the last bytes of a spool are the beginning of a frame that a crash has cut off."""
    if len(content) < _HEADER.size:
        return True
    length, _ = _HEADER.unpack_from(content)
    n_payload = len(content) - _HEADER.size
    return n_payload < length <= MAX_FRAME_BYTES and not content.endswith(b"]]")


def count_rows(content: bytes) -> int:
    """How many rows the frames have that begin in these bytes, intact or not: an estimate."""
    return sum(min(int(head[1]), _MAX_COUNTED_ROWS) for head in _HEAD.finditer(content))


def read_bytes(path: Path, begin: int = 0, end: int | None = None) -> bytes:
    """The bytes of a file from one offset to another."""
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(-1 if end is None else end - begin)


def size_of(path: Path) -> int:
    """Size of a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def path_of(folder: Path, segment: int) -> Path:
    """The file of a segment."""
    return folder / f"{segment:08d}.log"


def paths_in(folder: Path) -> list[Path]:
    """The files of a folder; none if it cannot be listed."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def segments_of(paths: Iterable[Path]) -> list[int]:
    """The numbers of the segments among some files."""
    return sorted(int(path.stem) for path in paths if path.suffix == ".log" and path.stem.isdecimal())


def open_to_append(path: Path) -> int:
    """The descriptor of a file to which frames are appended."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
