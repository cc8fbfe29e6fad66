"""The spool: what a process has logged and the server has not confirmed, in files.

A spool is a folder `<source>` with these files:

- `run.json`: which run the batches belong to, or how to create it.
- `lock`: locked while a process uses the spool; a crash leaves no stale lock.
- `<n>.log`: segments of at most 8 MB. They consist of frames as the engine's event log has them: a length
  (u32, little-endian), the CRC-32 of the payload (u32) and the payload, a JSON array. Here it is
  `[kind, number of rows, [row, ...]]`; of points it has series, each of whose values is a row. A crash can
  only tear the last frame, and a reader stops before it.
- `<segment>-<offset>-<row>-<number of rows>.damaged`: bytes of a segment that a failure of the disk or of the
  power has damaged. What is behind them is sent.
- `<upload>.file`: a file that a frame of the kind `checkpoint` or `video` names, until it is sent.
- `refused.log`: what the server has refused, in frames of `[reason, place, kind, number of rows,
  [row, ...]]`, and `refused.json`: why the server accepts nothing at all of what is still in the segments.
  They are kept until a user discards them.
- `request.json`: the sequence number of the request that is being sent, and the part of the segments that it
  contains. It is written before the request is sent. After a crash of the process exactly the same request
  is sent again, and the server stores a sequence number of a source only once.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import shutil
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from callboard.limits import MAX_EPISODES, MAX_LINES, MAX_POINTS
from callboard.rows import part_of
from callboard.transport import spool_root

if TYPE_CHECKING:
    from typing import Self

MAX_SPOOL_BYTES = 2 * 2**30
"""Maximum size of a process's spool. What is logged while it is full waits in memory, as far as
that has room."""

SEGMENT_BYTES = 8 * 2**20
MAX_FRAME_BYTES = 8 * 2**20

MAX_REQUEST_BYTES = 990_000
"""Maximum size of a request's rows: proxies let requests of less than 1,000,000 bytes pass."""
MAX_REQUEST_ROWS = {
    "points": MAX_POINTS,
    "episodes": MAX_EPISODES,
    "log": MAX_LINES,
    "config": 1,
    "state": 1,
    "checkpoint": 1,
    "video": 1,
}
"""Maximum number of rows of a request, by kind. A kind's frames are joined up to this number."""

FILE_KINDS = frozenset({"checkpoint", "video"})
"""Kinds of frames that name a file."""

DAMAGED = "it is damaged, by the disk or a loss of power"
"""Reason why a part of a spool is set aside."""

_HEADER = struct.Struct("<II")
_MIN_PAYLOAD_BYTES = 2
_HEAD = re.compile(rb'\["[a-z]+",([0-9]{1,7})')
"""Begin of a payload, with its number of rows."""
_MAX_DAMAGED_ROWS = 10_000
"""Maximum number of rows that a damaged frame is taken to have."""
_ULID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid() -> str:
    """A ULID: 26 characters that sort by creation time."""
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    return "".join(_ULID_DIGITS[number >> shift & 31] for shift in range(125, -1, -5))


@dataclass(frozen=True)
class Manifest:
    """Which run a spool belongs to."""

    source: str
    """Id of the stream of rows: the server takes each of its sequence numbers once."""
    url: str
    run: str | None
    """None until the server has created the run."""
    create: dict[str, Any] | None
    """Body of the request that creates the run."""
    name: str
    """Name of the run in messages."""
    rewind_to: int | None = None
    """Agent steps after which the run's points are to be set aside, before anything is sent."""


@dataclass(frozen=True, order=True)
class Position:
    """A place in the segments."""

    segment: int = 1
    offset: int = 0
    row: int = 0
    """Rows of the frame that come before it, if the frame is too large for one request."""


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
    """Frames whose last row it has; 0 for a part of one that the next request continues."""


_PASSING = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE}
"""Errors of the machine that may pass, whatever is in the spool."""


class SpoolUnreadable(Exception):
    """A spool whose run or state is unknown: nothing of it can be sent."""


class SpoolUnavailable(SpoolUnreadable):
    """A spool that cannot be locked or read at present: it may be whole, and a script may use it."""


@dataclass(frozen=True)
class Refusal:
    """What is set aside, and why: the server has refused it, or it is damaged."""

    reason: str
    n_rows: int


class Spool:
    """A spool that this process has locked. One thread may append while another one reads."""

    def __init__(self, folder: Path, lock: IO[str], manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._lock = lock
        self._mutex = threading.RLock()
        segments = _numbers(folder.iterdir())  # raises: a segment that is not listed would not be sent
        self._n_bytes = sum(_path(folder, segment).stat().st_size for segment in segments)
        self._files = {path.stem: path.stat().st_size for path in folder.glob("*.file")}
        self._n_bytes += sum(self._files.values())
        self._n_bytes += sum(map(_size, folder.glob("*.damaged")))
        self._newest = segments[-1] if segments else 1
        self._end = Position(self._newest, _size(_path(folder, self._newest)))
        """Where the frames end. Those of this process are complete; the last earlier one may be torn."""
        self._n_damaged_rows = 0
        self._n_waiting = 0
        self._n_waiting_rows = 0
        self._request_bytes = MAX_REQUEST_BYTES
        self._n_bytes += _size(folder / "refused.log")
        self._file: int | None = None
        self._next = Position(segments[0] if segments else 1)
        self._sequence = 1
        self._pending: Position | None = None
        """End of the request that is not confirmed, of this process or the one before."""
        self._read_request()

    @classmethod
    def create(cls, manifest: Manifest, root: Path | None = None) -> Self:
        """A new spool.

        Args:
            manifest: which run it belongs to.
            root: a folder of this process alone, where the spool may do without a lock: some file systems
                have none. Default: that of all spools.

        Raises:
            OSError: the folder cannot be written or locked.
        """
        folder = (root or spool_root()) / manifest.source
        folder.mkdir(mode=0o700, parents=True)
        lock: IO[str] | None = None
        try:
            lock = (folder / "lock").open("w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if root is None:
                    raise
            spool = cls(folder, lock, manifest)
            spool.set_manifest(manifest)
        except OSError:
            if lock is not None:
                lock.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return spool

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        """A spool that another process has left; None if that process still runs, or if the spool cannot be
        opened and is empty: a script is creating it, or it was deleted.

        Raises:
            SpoolUnreadable: nothing of it can be sent, until a user fixes the cause or discards it.
            SpoolUnavailable: a subclass; it cannot be locked or read at present, and must not be discarded.
        """
        try:
            lock = (folder / "lock").open("r+")
        except OSError as error:
            if not _segments(folder):
                return None
            cause = f"its lock cannot be opened: {error.strerror}"
            if error.errno in _PASSING:
                raise SpoolUnavailable(cause) from None
            if isinstance(error, FileNotFoundError):
                cause = f"its lock is missing: if no script uses it, create an empty file {folder / 'lock'}"
            raise SpoolUnreadable(cause) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        except OSError as error:
            lock.close()
            if not _segments(folder):
                return None
            raise SpoolUnavailable(f"it cannot be locked: {error.strerror}") from None
        try:
            return cls(folder, lock, _read_manifest(folder))
        except (OSError, ValueError, TypeError, KeyError) as error:
            lock.close()
            if not _segments(folder):  # a script begins or ends
                return None
            if isinstance(error, OSError) and error.errno in _PASSING:
                raise SpoolUnavailable(f"it cannot be read at present: {error}") from None
            raise SpoolUnreadable(f"its run.json or request.json cannot be read: {error}") from None

    def set_manifest(self, manifest: Manifest) -> None:
        """Store which run this spool belongs to."""
        _replace(self.folder / "run.json", asdict(manifest), is_durable=True)
        self.manifest = manifest

    @property
    def n_waiting(self) -> int:
        """Frames that this object has appended, less those that it has confirmed."""
        return self._n_waiting

    @property
    def n_waiting_rows(self) -> int:
        """Rows of the frames that `n_waiting` counts."""
        return self._n_waiting_rows

    def append(self, kind: str, n_rows: int, rows: bytes) -> None:
        """Write a frame.

        Args:
            kind: `points`, `episodes`, `log`, `config`, `state`, `checkpoint` or `video`.
            n_rows: how many points, episodes or lines it has.
            rows: a JSON array.

        Raises:
            OSError: the disk or the spool is full; nothing was written.
        """
        payload = b'["%s",%d,%s]' % (kind.encode(), n_rows, rows)
        frame = _framed(payload)
        if len(payload) > MAX_FRAME_BYTES or self._n_bytes + len(frame) > MAX_SPOOL_BYTES:
            raise OSError(errno.ENOSPC, f"the spool {self.folder} is full, or the frame too large")
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
            self._end = Position(self._newest, start + len(frame))
            self._n_bytes += len(frame)
            self._n_waiting += 1
            self._n_waiting_rows += n_rows

    def add_file(self, n_bytes: int, write: Callable[[Path], object]) -> str:
        """Store a file, until it is sent; return the id of its upload.

        Args:
            n_bytes: size of the file.
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
        """The oldest request that is not confirmed, the same until `confirm` or `halve`; None without one.

        Damaged frames are set aside.

        Raises:
            OSError: the disk is full.
        """
        first = self._first_frame()
        if first is None:
            return None
        begin, parts, n_frames = self._next, [first.rows[1:-1]], 1
        kind, n_rows, n_bytes, end = first.kind, first.n_rows, len(first.rows), first.end
        n_fitting = self._n_fitting(first)
        if n_fitting < n_rows:  # a part of the frame; the next request has the rest
            rows = part_of(kind, first.rows, 0, n_fitting)
            parts, n_frames, n_rows = [rows[1:-1]], 0, n_fitting
            end = replace(first.begin, row=first.begin.row + n_fitting)
        # Further frames of the same kind, as long as there is room. A request that was being sent before this
        # process started must be the same again: it has the frames up to its recorded end.
        while n_frames and (self._pending is None or end < self._pending):
            following = self._frame(end)
            if isinstance(following, _Damage) and self._pending is not None:
                # The rest keeps that request's number: if the server has it, nothing is lost or stored twice.
                self._set_aside(following)
                end = following.end
                continue
            if not isinstance(following, _Frame) or following.kind != kind:
                break
            too_many = n_rows + following.n_rows > MAX_REQUEST_ROWS[kind]
            too_large = n_bytes + len(following.rows) > self._request_bytes
            if self._pending is None and (too_many or too_large):
                break
            parts.append(following.rows[1:-1])
            n_frames, end = n_frames + 1, following.end
            n_rows, n_bytes = n_rows + following.n_rows, n_bytes + len(following.rows)
        self._record(end)
        self._pending = end
        return Request(kind, self._sequence, n_rows, b"[" + b",".join(parts) + b"]", begin, end, n_frames)

    def _first_frame(self) -> _Frame | None:
        """The first frame that is not confirmed; those before it that are damaged are set aside."""
        first = self._frame(self._next)
        while isinstance(first, _Damage):
            self._set_aside(first)
            self._next = first.end
            if self._pending is not None and first.end >= self._pending:
                # Whether the server has stored that request is unknown. It refuses a number that is too high,
                # and names the next one.
                self._pending = None
                self._sequence += 1
            first = self._frame(self._next)
        if first is None:
            with self._mutex:
                # Read again under the mutex: if nothing was appended in the meantime, what still counts as
                # waiting was damaged.
                if self._n_waiting and self._frame(self._next) is None:
                    self._n_waiting = self._n_waiting_rows = 0
        return first

    def _set_aside(self, damage: _Damage) -> None:
        begin = damage.begin
        name = f"{begin.segment:08d}-{begin.offset}-{begin.row}-{damage.n_rows}.damaged"
        path = self.folder / name
        if path.exists():
            return
        content = _bytes_of(_path(self.folder, begin.segment), begin.offset, damage.end.offset)
        new = path.with_suffix(".new")
        new.write_bytes(content)
        new.replace(path)
        with self._mutex:
            self._n_bytes += len(content)
        self._n_damaged_rows += damage.n_rows

    def take_damaged(self) -> int:
        """How many rows were set aside since the last call because they are damaged; an estimate."""
        n_rows, self._n_damaged_rows = self._n_damaged_rows, 0
        return n_rows

    def _n_fitting(self, frame: _Frame) -> int:
        """How many rows of a frame, at least one, the next request has room for."""
        if self._pending is not None:
            inside = replace(self._pending, row=0) == replace(frame.begin, row=0)
            return self._pending.row - frame.begin.row if inside else frame.n_rows
        n_rows, n_bytes = frame.n_rows, len(frame.rows)
        while n_bytes > self._request_bytes and n_rows > 1:
            n_rows = max(1, n_rows * self._request_bytes // n_bytes)
            n_bytes = len(part_of(frame.kind, frame.rows, 0, n_rows))
        return n_rows

    def halve(self, request: Request) -> None:
        """Make the following requests half as large as this one, which the server has not stored."""
        self._request_bytes = max(1, len(request.rows) // 2)
        self._pending = None
        self._record(None)

    def confirm(self, request: Request, *, stored: bool, upload: str | None = None) -> None:
        """Forget a request: the server has stored it, or never will, and then its number is free again.

        Args:
            request: what `next` returned.
            stored: whether the server has stored it under its number; False for a state, which is
                stored without one.
            upload: the file that it names, if any; its copy is deleted.
        """
        self._next, self._pending = request.end, None
        self._sequence = request.sequence + 1 if stored else request.sequence
        self._request_bytes = min(MAX_REQUEST_BYTES, self._request_bytes + self._request_bytes // 8 + 1)
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
            self._n_waiting_rows -= request.n_rows

    def refuse(self, request: Request, reason: str) -> None:
        """Set a request aside that the server has refused, and its file; the next one can be sent.

        Raises:
            OSError: the disk is full; nothing has changed.
        """
        begin = request.begin
        place = [begin.segment, begin.offset, begin.row]
        head = json.dumps([reason, place, request.kind, request.n_rows]).encode()
        refused = list(_refused(self.folder))
        if not refused or refused[-1][1] != place:  # else a process has died before it confirmed
            frame = _framed(head[:-1] + b"," + request.rows + b"]")
            file = _open(self.folder / "refused.log")
            try:
                start = os.lseek(file, 0, os.SEEK_END)
                if os.write(file, frame) != len(frame):
                    os.ftruncate(file, start)
                    raise OSError(errno.ENOSPC, "no space is left on the spool's disk")
            finally:
                os.close(file)
            with self._mutex:
                self._n_bytes += len(frame)
        self.confirm(request, stored=False)

    def refuse_all(self, reason: str) -> None:
        """Set aside all that is not confirmed: the server accepts nothing of it.

        Raises:
            OSError: the disk is full; nothing has changed.
        """
        _replace(self.folder / "refused.json", {"reason": reason})

    @property
    def is_refused(self) -> bool:
        """Whether the server accepts nothing of what is not confirmed."""
        return (self.folder / "refused.json").exists()

    def refusals(self) -> list[Refusal]:
        """What is set aside, by reason."""
        n_rows: dict[str, int] = {}
        for reason, _, _, n, _ in _refused(self.folder):
            n_rows[reason] = n_rows.get(reason, 0) + n
        if self.is_refused:
            try:
                reason = str(json.loads((self.folder / "refused.json").read_text("utf-8"))["reason"])
            except (OSError, ValueError, KeyError, TypeError):
                reason = "unknown"
            at, n = self._next, 0
            while (part := self._frame(at)) is not None:
                at, n = part.end, n + part.n_rows
            if n:
                n_rows[reason] = n_rows.get(reason, 0) + n
        for path in self.folder.glob("*.damaged"):
            n_rows[DAMAGED] = n_rows.get(DAMAGED, 0) + int(path.stem.rpartition("-")[2])
        return [Refusal(reason, n) for reason, n in n_rows.items()]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is waiting and nothing set aside."""
        is_set_aside = (self.folder / "refused.log").exists() or any(self.folder.glob("*.damaged"))
        return self._frame(self._next) is None and not is_set_aside

    def discard(self) -> None:
        """Delete what is set aside: of a refused spool, the whole folder."""
        if self.is_refused:
            shutil.rmtree(self.folder, ignore_errors=True)
        for _, _, kind, _, rows in _refused(self.folder):
            if kind in FILE_KINDS:
                self.remove_file(rows[0]["upload"])
        with self._mutex:
            self._n_bytes -= _size(self.folder / "refused.log")
        (self.folder / "refused.log").unlink(missing_ok=True)
        for path in self.folder.glob("*.damaged"):
            with self._mutex:
                self._n_bytes -= _size(path)
            path.unlink(missing_ok=True)

    def renumber(self, request: Request, sequence: int) -> Request:
        """The same request with the number that the server expects."""
        self._sequence = sequence
        self._record(request.end)
        return replace(request, sequence=sequence)

    def latest_steps(self) -> int:
        """The most agent steps of the points and episodes that are not confirmed: of the newest segment that
        has some, for they hardly ever decrease."""
        for segment in range(self._newest, self._next.segment - 1, -1):
            at, latest = max(self._next, Position(segment)), 0
            while at.segment == segment and (part := self._frame(at)) is not None:
                if isinstance(part, _Frame) and part.kind in ("points", "episodes"):
                    # Of points, a list of each series.
                    steps = [row["agent_steps"] for row in json.loads(part.rows)]
                    latest = max([latest, *(max(n) if isinstance(n, list) else n for n in steps)])
                at = part.end
            if latest:
                return latest
        return 0

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

    def finish(self) -> bool:
        """Delete the folder but for what is set aside, and unlock; False if something is set aside.

        To be called when the rest is confirmed.
        """
        if self.refusals():
            if not self.is_refused:
                for segment in _segments(self.folder):
                    with suppress(OSError):
                        _path(self.folder, segment).unlink()
            self.close()
            return False
        self.remove()
        return True

    def remove(self) -> None:
        """Delete the folder and unlock."""
        for path in _paths(self.folder):  # before the lock: nobody takes what is left for a damaged spool
            if path.name not in ("run.json", "lock"):
                with suppress(OSError):
                    path.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.close()

    def _frame(self, position: Position) -> _Frame | _Damage | None:
        """The frame at a place, or the rest of it; bytes there that are no frame, up to the next one; None at
        the end, also before a frame that a crash has cut off."""
        while True:
            last = self._end  # before reading: what is before it is complete
            path = _path(self.folder, position.segment)
            payload = _read(path, position.offset)
            if payload is not None:
                head, n, rows = payload[:-1].split(b",", 2)
                kind, n_rows = head[2:-1].decode(), int(n)
                if position.row:
                    rows, n_rows = part_of(kind, rows, position.row, n_rows), n_rows - position.row
                end = Position(position.segment, position.offset + _HEADER.size + len(payload))
                return _Frame(kind, n_rows, rows, position, end)
            is_last = position.segment >= last.segment
            n_bytes = _size(path)
            if position.segment == last.segment:
                n_bytes = min(n_bytes, last.offset)
            if position.offset < n_bytes and position.segment <= last.segment:
                content = _bytes_of(path, position.offset, n_bytes)
                length = _find_frame(content)
                if not (is_last and length == len(content) and _is_torn(content)):
                    end = Position(position.segment, position.offset + length)
                    n_rows = max(1, _n_rows_in(content[:length]) - position.row)
                    return _Damage(position, end, n_rows)
            if is_last:
                return None
            position = Position(position.segment + 1)

    def _read_request(self) -> None:
        try:
            record = json.loads((self.folder / "request.json").read_text("utf-8"))
            self._sequence = int(record["sequence"])
            self._next = Position(**record["begin"])
            self._pending = None if record["end"] is None else Position(**record["end"])
        except FileNotFoundError:
            pass


@dataclass(frozen=True)
class _Damage:
    """Bytes where a frame should be, up to the next frame or to the end of their segment."""

    begin: Position
    end: Position
    n_rows: int
    """As far as it can be read, and at least one."""


@dataclass(frozen=True)
class _Frame:
    """A frame, or the rest of one."""

    kind: str
    n_rows: int
    rows: bytes
    begin: Position
    end: Position


def _refused(folder: Path) -> Iterator[tuple[str, list[int], str, int, list[Any]]]:
    """Reason, place, kind, number of rows and rows of each request that is set aside."""
    path, offset = folder / "refused.log", 0
    n_bytes = _size(path)
    while offset < n_bytes:
        payload = _read(path, offset)
        if payload is None:
            yield DAMAGED, [0, offset, 0], "damaged", 1, []
            offset += _find_frame(_bytes_of(path, offset, n_bytes))
            continue
        offset += _HEADER.size + len(payload)
        reason, place, kind, n_rows, rows = json.loads(payload)
        yield reason, place, kind, n_rows, rows


def count_rows(folder: Path) -> int:
    """How many rows the segments of a folder have, sent or not, as far as they can be read."""
    n_rows = 0
    for segment in _segments(folder):
        with suppress(OSError):
            n_rows += _n_rows_in(_bytes_of(_path(folder, segment), 0, None))
    return n_rows


def run_at(folder: Path) -> str | None:
    """The run that a spool belongs to, whether or not it can be opened; None if that cannot be read, or if
    the run has not been created."""
    try:
        return _read_manifest(folder).run
    except (OSError, ValueError, TypeError):
        return None


def _read_manifest(folder: Path) -> Manifest:
    manifest = Manifest(**json.loads((folder / "run.json").read_text("utf-8")))
    if not all(isinstance(text, str) for text in (manifest.source, manifest.url, manifest.name)):
        raise ValueError("it has no source, address or name")
    return manifest


def _bytes_of(path: Path, begin: int, end: int | None) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(-1 if end is None else end - begin)


def _find_frame(content: bytes) -> int:
    """Where the next intact frame begins in bytes that do not begin with one; their number if none does."""
    at = content.find(b'["', _HEADER.size + 1)
    while at >= 0:
        length, crc = _HEADER.unpack_from(content, at - _HEADER.size)
        is_inside = _MIN_PAYLOAD_BYTES <= length <= min(MAX_FRAME_BYTES, len(content) - at)
        if is_inside and zlib.crc32(memoryview(content)[at : at + length]) == crc:
            return at - _HEADER.size
        at = content.find(b'["', at + 1)
    return len(content)


def _is_torn(content: bytes) -> bool:
    """Whether bytes are the beginning of a frame that a crash has cut off."""
    if len(content) < _HEADER.size:
        return True
    length, _ = _HEADER.unpack_from(content)
    payload = content[_HEADER.size :]
    is_longer = len(payload) < length <= MAX_FRAME_BYTES
    return is_longer and b'["'.startswith(payload[:2]) and not payload.endswith(b"]]")


def _n_rows_in(content: bytes) -> int:
    """How many rows the frames have that begin in these bytes, intact or not."""
    n_rows = 0
    for head in _HEAD.finditer(content):
        at = head.start() - _HEADER.size
        if at < 0 or (  # at 0 the header itself may be what is damaged
            at and not _MIN_PAYLOAD_BYTES <= _HEADER.unpack_from(content, at)[0] <= MAX_FRAME_BYTES
        ):
            continue
        n_rows += min(int(head[1]), _MAX_DAMAGED_ROWS)
    return n_rows


def _framed(payload: bytes) -> bytes:
    return _HEADER.pack(len(payload), zlib.crc32(payload)) + payload


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _path(folder: Path, segment: int) -> Path:
    return folder / f"{segment:08d}.log"


def _paths(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _segments(folder: Path) -> list[int]:
    return _numbers(_paths(folder))


def _numbers(paths: Iterable[Path]) -> list[int]:
    """The numbers of the segments among some files."""
    return sorted(int(path.stem) for path in paths if path.suffix == ".log" and path.stem.isdecimal())


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


def _replace(path: Path, content: dict[str, Any], *, is_durable: bool = False) -> None:
    """Write a small file so that a crash (if durable, a loss of power) leaves the old one or the new one."""
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8") as file:
        file.write(json.dumps(content))
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    new.replace(path)
