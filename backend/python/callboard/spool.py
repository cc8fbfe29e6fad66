"""The spool: what a process has logged and the server has not confirmed, in files.

A spool is a folder `<source>` with these files:

- `run.json`: which run the batches belong to, or how to create it.
- `lock`: locked while a process uses the spool; a crash leaves no stale lock.
- `<n>.log`: segments of at most 8 MB. They consist of frames as the engine's event log has them: a length
  (u32, little-endian), the CRC-32 of the payload (u32) and the payload, a JSON array. Here it is
  `[kind, number of rows, [row, ...]]`. A crash can only tear the last frame, and a reader stops before it.
- `<upload>.file`: a file that a frame of the kind `checkpoint` or `video` names, until it is sent.
- `request.json`: the sequence number of the request that is being sent, and the part of the segments that it
  contains. It is written before the request is sent. After a crash exactly the same request is sent
  again, and the server stores a sequence number of a source only once.
"""

import errno
import fcntl
import json
import os
import secrets
import shutil
import struct
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Self

from callboard.transport import spool_root

MAX_SPOOL_BYTES = 2 * 2**30
"""Maximum size of a process's spool. What is logged while it is full is dropped and counted."""

SEGMENT_BYTES = 8 * 2**20
MAX_FRAME_BYTES = 8 * 2**20

MAX_REQUEST_BYTES = 1_800_000
MAX_REQUEST_ROWS = {
    "points": 10_000,
    "episodes": 5_000,
    "log": 1_000,
    "state": 1,
    "checkpoint": 1,
    "video": 1,
}
"""Maximum number of rows of a request, by kind. A kind's frames are joined up to this number."""

_HEADER = struct.Struct("<II")
_MIN_PAYLOAD_BYTES = 2
_ULID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid() -> str:
    """A ULID: 26 characters that sort by creation time."""
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    return "".join(_ULID_DIGITS[number >> shift & 31] for shift in range(125, -1, -5))


@dataclass(frozen=True)
class Manifest:
    """Which run a spool belongs to."""

    source: str
    url: str
    run: str | None
    """None until the server has created the run."""
    create: dict[str, Any] | None
    """Body of the request that creates the run."""
    name: str
    """Name of the run in messages."""


@dataclass(frozen=True, order=True)
class Position:
    """A place in the segments."""

    segment: int = 1
    offset: int = 0


@dataclass(frozen=True)
class Request:
    """Consecutive frames of one kind, to be sent together."""

    kind: str
    sequence: int
    n_rows: int
    rows: bytes
    """A JSON array."""
    begin: Position
    end: Position
    n_frames: int


class Spool:
    """A spool that this process has locked. One thread may append while another one reads."""

    def __init__(self, folder: Path, lock: IO[str], manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._lock = lock
        self._mutex = threading.Lock()
        segments = _segments(folder)
        self._n_bytes = sum(_path(folder, segment).stat().st_size for segment in segments)
        self._files = {path.stem: path.stat().st_size for path in folder.glob("*.file")}
        self._n_bytes += sum(self._files.values())
        self._newest = segments[-1] if segments else 1
        self._n_waiting = 0
        self._file: int | None = None
        self._next = Position(segments[0] if segments else 1)
        self._sequence = 1
        self._pending: Position | None = None
        """End of the request that was being sent when the last process died."""
        self._read_request()

    @classmethod
    def create(cls, manifest: Manifest, root: Path | None = None) -> Self:
        """A new spool.

        Raises:
            OSError: the folder cannot be written.
        """
        folder = (root or spool_root()) / manifest.source
        folder.mkdir(mode=0o700, parents=True)
        lock = (folder / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        spool = cls(folder, lock, manifest)
        spool.set_manifest(manifest)
        return spool

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        """A spool that another process has left; None if that process runs, or the spool was deleted."""
        try:
            lock = (folder / "lock").open("r+")
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            manifest = Manifest(**json.loads((folder / "run.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            lock.close()
            return None
        return cls(folder, lock, manifest)

    def set_manifest(self, manifest: Manifest) -> None:
        """Store which run this spool belongs to."""
        _replace(self.folder / "run.json", asdict(manifest))
        self.manifest = manifest

    @property
    def n_waiting(self) -> int:
        """Frames that were appended since this object was created and are not confirmed."""
        return self._n_waiting

    def append(self, kind: str, n_rows: int, rows: bytes) -> None:
        """Write a frame.

        Args:
            kind: `points`, `episodes`, `log`, `state`, `checkpoint` or `video`.
            n_rows: how many points, episodes or lines it has.
            rows: a JSON array.

        Raises:
            OSError: the disk or the spool is full; nothing was written.
        """
        payload = b'["%s",%d,%s]' % (kind.encode(), n_rows, rows)
        frame = _HEADER.pack(len(payload), zlib.crc32(payload)) + payload
        if len(payload) > MAX_FRAME_BYTES or self._n_bytes + len(frame) > MAX_SPOOL_BYTES:
            raise OSError(errno.ENOSPC, f"the spool {self.folder} is full")
        if self._file is None:
            self._file = _open(_path(self.folder, self._newest))
        start = os.lseek(self._file, 0, os.SEEK_END)
        if start and start + len(frame) > SEGMENT_BYTES:
            following = _open(_path(self.folder, self._newest + 1))
            os.close(self._file)
            self._file, start = following, 0
            self._newest += 1
        if os.write(self._file, frame) != len(frame):
            os.ftruncate(self._file, start)
            raise OSError(errno.ENOSPC, "no space is left on the spool's disk")
        with self._mutex:
            self._n_bytes += len(frame)
            self._n_waiting += 1

    def add_file(self, n_bytes: int, write: Callable[[Path], object]) -> str:
        """Store a file, until it is sent; return the id of its upload.

        Args:
            n_bytes: its size.
            write: called with the path to write to.

        Raises:
            OSError: it cannot be written, or the disk or the spool is full; there is no file.
        """
        upload = new_ulid()
        with self._mutex:
            # Half of it stays free for points.
            n_file_bytes = sum(self._files.values()) + n_bytes
            if max(2 * n_file_bytes, self._n_bytes + n_bytes) > MAX_SPOOL_BYTES:
                raise OSError(errno.ENOSPC, f"the spool {self.folder} is full")
            self._n_bytes += n_bytes
            self._files[upload] = n_bytes
        try:
            write(self.file(upload))
        except BaseException:
            self.remove_file(upload)
            raise
        return upload

    def file(self, upload: str) -> Path:
        """Where the copy of a file is."""
        return self.folder / f"{upload}.file"

    def remove_file(self, upload: str) -> None:
        """Delete the copy of a file, if it exists. What a damaged disk keeps goes with the spool."""
        with suppress(OSError):
            self.file(upload).unlink(missing_ok=True)
        with self._mutex:
            self._n_bytes -= self._files.pop(upload, 0)

    def next(self) -> Request | None:
        """The oldest request that is not confirmed; the same until `confirm`. None if there is none."""
        first = self._frame(self._next)
        if first is None:
            return None
        kind, n_rows, rows, end = first
        begin, parts, n_bytes = self._next, [rows[1:-1]], len(rows)
        while self._pending is None or end < self._pending:
            following = self._frame(end)
            if following is None or following[0] != kind:
                break
            _, more, rows, after = following
            too_many = n_rows + more > MAX_REQUEST_ROWS[kind] or n_bytes + len(rows) > MAX_REQUEST_BYTES
            if too_many and self._pending is None:
                break
            parts.append(rows[1:-1])
            n_rows, n_bytes, end = n_rows + more, n_bytes + len(rows), after
        self._record(end)
        self._pending = end
        return Request(kind, self._sequence, n_rows, b"[" + b",".join(parts) + b"]", begin, end, len(parts))

    def confirm(self, request: Request, *, stored: bool, upload: str | None = None) -> None:
        """Forget a request: the server has stored it, or never will, and then its number is free again.

        Args:
            request: what `next` returned.
            stored: whether the server has it.
            upload: the file that it names, if any; its copy is deleted.
        """
        self._next, self._pending = request.end, None
        self._sequence = request.sequence + 1 if stored else request.sequence
        with suppress(OSError):  # the server knows a request that is sent again
            self._record(None)
        for segment in range(request.begin.segment, request.end.segment):
            path = _path(self.folder, segment)
            with suppress(OSError):
                n_bytes = path.stat().st_size
                path.unlink()
                with self._mutex:
                    self._n_bytes -= n_bytes
        if upload is not None:
            self.remove_file(upload)
        # Last: a caller that waits until nothing is waiting finds deleted what is stored.
        with self._mutex:
            self._n_waiting -= request.n_frames

    def renumber(self, request: Request, sequence: int) -> Request:
        """The same request with the number that the server expects."""
        self._sequence = sequence
        self._record(request.end)
        return replace(request, sequence=sequence)

    def _record(self, end: Position | None) -> None:
        ends = None if end is None else asdict(end)
        record = {"sequence": self._sequence, "begin": asdict(self._next), "end": ends}
        _replace(self.folder / "request.json", record)

    def close(self) -> None:
        """Unlock. What is not confirmed stays."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._lock.close()

    def remove(self) -> None:
        """Delete the folder and unlock."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.close()

    def _frame(self, position: Position) -> tuple[str, int, bytes, Position] | None:
        """Kind, number of rows, rows, and the place after the frame at a place; None if there is none yet."""
        while True:
            newest = self._newest  # before reading: what stood in older segments is complete
            payload = _read(_path(self.folder, position.segment), position.offset)
            if payload is not None:
                kind, n_rows, rows = payload[:-1].split(b",", 2)
                end = replace(position, offset=position.offset + _HEADER.size + len(payload))
                return kind[2:-1].decode(), int(n_rows), rows, end
            if position.segment >= newest:
                return None
            position = Position(position.segment + 1)

    def _read_request(self) -> None:
        try:
            record = json.loads((self.folder / "request.json").read_text("utf-8"))
            self._sequence = int(record["sequence"])
            self._next = Position(**record["begin"])
            self._pending = None if record["end"] is None else Position(**record["end"])
        except (OSError, ValueError, KeyError, TypeError):
            pass


def _path(folder: Path, segment: int) -> Path:
    return folder / f"{segment:08d}.log"


def _segments(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.log") if path.stem.isdecimal())


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _read(path: Path, offset: int) -> bytes | None:
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


def _replace(path: Path, content: dict[str, Any]) -> None:
    """Write a small file so that a crash leaves the old one or the new one."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(content), "utf-8")
    new.replace(path)
