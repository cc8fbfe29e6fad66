"""The spool: what a process has logged and the server has not confirmed, in files.

A spool is a folder `<source>` with these files:

- `run.json`: which run the batches belong to, or how to create it.
- `lock`: locked while a process uses the spool; a crash leaves no stale lock.
- `<n>.log`: segments of at most 8 MB, of frames (`frames`) with the payload `[kind, number of rows, [row,
  ...]]`; of points it has series, each of whose values is a row. A crash can only tear the last frame, and a
  reader stops before it. A segment that a failure of the disk or of the power has damaged is cut at its first
  bad frame, and all that was written from there on is set aside.
- `<upload>.file`: a file that a frame of the kind `checkpoint`, `video` or `media` names, until it is sent.
- What is set aside (`set_aside`).
- `request.json`: the sequence number of the request that is being sent, and the part of the segments that it
  contains. It is written before the request is sent. After a crash of the process exactly the same request
  is sent again, and the server stores a sequence number of a source only once.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from callboard.frames import (
    MAX_FRAME_BYTES,
    Damage,
    Frame,
    Position,
    frame_at,
    framed,
    open_to_append,
    path_of,
    paths_in,
    segments_of,
    size_of,
)
from callboard.limits import MAX_EPISODES, MAX_HISTOGRAMS, MAX_LINES, MAX_POINTS
from callboard.manifest import (
    Manifest,
    SpoolUnavailable,
    SpoolUnreadable,
    is_passing,
    read_manifest,
    take_lock,
)
from callboard.rows import part_of
from callboard.set_aside import SetAside, replace_json
from callboard.transport import spool_root

if TYPE_CHECKING:
    from typing import Self

MAX_SPOOL_BYTES = 2 * 2**30
"""Maximum size of a process's spool. What is logged while it is full waits in memory, as far as
that has room."""
SEGMENT_BYTES = 8 * 2**20
MAX_REQUEST_BYTES = 990_000
"""Maximum size of a request's rows: proxies let requests of less than 1,000,000 bytes pass."""
MAX_REQUEST_ROWS = {
    "points": MAX_POINTS,
    "episodes": MAX_EPISODES,
    "histograms": MAX_HISTOGRAMS,
    "log": MAX_LINES,
    "config": 1,
    "state": 1,
    "provenance": 1,
    "checkpoint": 1,
    "video": 1,
    "media": 1,
}
"""Maximum number of rows of a request, by kind. A kind's frames are joined up to this number."""
FILE_KINDS = frozenset({"checkpoint", "video", "media"})
"""Kinds of frames that name a file."""

_ULID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid() -> str:
    """A ULID: 26 characters that sort by creation time."""
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    return "".join(_ULID_DIGITS[number >> shift & 31] for shift in range(125, -1, -5))


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


class Spool:
    """A spool that this process has locked. One thread may append while another one reads."""

    def __init__(self, folder: Path, lock: IO[str], manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._lock = lock
        self._mutex = threading.RLock()
        segments = segments_of(folder.iterdir())  # raises: a segment that is not listed would not be sent
        self._n_bytes = sum(path_of(folder, segment).stat().st_size for segment in segments)
        self._files = {path.stem: path.stat().st_size for path in folder.glob("*.file")}
        self._n_bytes += sum(self._files.values())
        self._set_aside = SetAside(folder)
        self._newest = segments[-1] if segments else 1
        self._end = Position(self._newest, size_of(path_of(folder, self._newest)))
        """Where the frames end. Those of this process are complete; the last earlier one may be torn."""
        self._n_damaged_rows = 0
        self._n_waiting = 0
        self._n_waiting_rows = 0
        self._request_bytes = MAX_REQUEST_BYTES
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
        lock = take_lock(folder)
        if lock is None:
            return None
        try:
            return cls(folder, lock, read_manifest(folder))
        except (OSError, ValueError, TypeError, KeyError) as error:
            lock.close()
            if not segments_of(paths_in(folder)):  # a script begins or ends
                return None
            if is_passing(error):
                raise SpoolUnavailable(f"it cannot be read at present: {error}") from None
            raise SpoolUnreadable(f"its run.json or request.json cannot be read: {error}") from None

    def set_manifest(self, manifest: Manifest) -> None:
        """Store which run this spool belongs to."""
        replace_json(self.folder / "run.json", asdict(manifest), is_durable=True)
        self.manifest = manifest

    @property
    def n_waiting(self) -> int:
        """Frames that this object has appended, less those that it has confirmed."""
        return self._n_waiting

    @property
    def n_waiting_rows(self) -> int:
        """Rows of the frames that `n_waiting` counts."""
        return self._n_waiting_rows

    @property
    def _n_total_bytes(self) -> int:
        return self._n_bytes + self._set_aside.n_bytes

    def append(self, kind: str, n_rows: int, rows: bytes) -> None:
        """Write a frame.

        Args:
            kind: one of `MAX_REQUEST_ROWS`.
            n_rows: how many points, episodes, histograms or lines it has.
            rows: a JSON array.

        Raises:
            OSError: the disk or the spool is full; nothing was written.
        """
        payload = b'["%s",%d,%s]' % (kind.encode(), n_rows, rows)
        frame = framed(payload)
        if len(payload) > MAX_FRAME_BYTES or self._n_total_bytes + len(frame) > MAX_SPOOL_BYTES:
            raise OSError(errno.ENOSPC, f"the spool {self.folder} is full, or the frame too large")
        if self._file is None:
            self._file = open_to_append(path_of(self.folder, self._newest))
        start = os.lseek(self._file, 0, os.SEEK_END)
        if start and start + len(frame) > SEGMENT_BYTES:
            following = open_to_append(path_of(self.folder, self._newest + 1))
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
            if max(2 * n_file_bytes, self._n_total_bytes + n_bytes) > MAX_SPOOL_BYTES:
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

        From a damaged frame on, everything is set aside.

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
            if not isinstance(following, Frame) or following.kind != kind:
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

    def _first_frame(self) -> Frame | None:
        """The first frame that is not confirmed; if it is damaged, everything up to now is set aside."""
        first = self._frame(self._next)
        if isinstance(first, Damage):
            end = self._end
            self._n_damaged_rows += self._set_aside.keep_damaged(first.begin, end)
            if self._pending is not None:
                # Whether the server has stored that request is unknown. It refuses a number that is too high,
                # and names the next one.
                self._pending = None
                self._sequence += 1
            self._next = end
            self._record(None)
            self._delete_segments(first.begin.segment, end.segment)
            first = self._frame(end)
        if first is None:
            with self._mutex:
                # Read again under the mutex: if nothing was appended in the meantime, what still counts as
                # waiting was damaged.
                if self._n_waiting and self._frame(self._next) is None:
                    self._n_waiting = self._n_waiting_rows = 0
        return first if isinstance(first, Frame) else None

    def _delete_segments(self, first: int, end: int) -> None:
        for segment in range(first, end):
            path = path_of(self.folder, segment)
            with suppress(OSError):
                n_bytes = path.stat().st_size
                path.unlink()
                with self._mutex:
                    self._n_bytes -= n_bytes

    def take_damaged(self) -> int:
        """How many rows were set aside since the last call because they are damaged; an estimate."""
        n_rows, self._n_damaged_rows = self._n_damaged_rows, 0
        return n_rows

    def _n_fitting(self, frame: Frame) -> int:
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
        self._delete_segments(request.begin.segment, request.end.segment)
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
        self._set_aside.refuse(reason, request.begin, request.kind, request.n_rows, request.rows)
        self.confirm(request, stored=False)

    def refuse_all(self, reason: str) -> None:
        """Set aside all that is not confirmed: the server accepts nothing of it.

        Raises:
            OSError: the disk is full; nothing has changed.
        """
        self._set_aside.refuse_all(reason)

    @property
    def is_refused(self) -> bool:
        """Whether the server accepts nothing of what is not confirmed."""
        return self._set_aside.is_refused

    def refusals(self) -> dict[str, int]:
        """How many rows are set aside, by reason."""
        counts = self._set_aside.counts()
        if self.is_refused:
            position, n = self._next, 0
            while isinstance(frame := self._frame(position), Frame):
                position, n = frame.end, n + frame.n_rows
            if n:
                reason = self._set_aside.reason_of_all()
                counts[reason] = counts.get(reason, 0) + n
        return counts

    @property
    def is_empty(self) -> bool:
        """Whether nothing is waiting and nothing set aside."""
        return self._frame(self._next) is None and self._set_aside.is_empty

    def discard(self) -> None:
        """Delete what is set aside: of a refused spool, the whole folder."""
        if self.is_refused:
            shutil.rmtree(self.folder, ignore_errors=True)
        for request in self._set_aside.requests():
            if request.kind in FILE_KINDS:
                self.remove_file(request.rows[0]["upload"])
        self._set_aside.discard()

    def renumber(self, request: Request, sequence: int) -> Request:
        """The same request with the number that the server expects."""
        self._sequence = sequence
        self._record(request.end)
        return replace(request, sequence=sequence)

    def latest_steps(self) -> int:
        """The most agent steps of the points and episodes that are not confirmed: of the newest segment that
        has some, for they hardly ever decrease."""
        for segment in range(self._newest, self._next.segment - 1, -1):
            position, latest = max(self._next, Position(segment)), 0
            while position.segment == segment and isinstance(frame := self._frame(position), Frame):
                if frame.kind in ("points", "episodes"):
                    # Of points, a list of each series.
                    steps = [row["agent_steps"] for row in json.loads(frame.rows)]
                    latest = max([latest, *(max(n) if isinstance(n, list) else n for n in steps)])
                position = frame.end
            if latest:
                return latest
        return 0

    def _record(self, end: Position | None) -> None:
        ends = None if end is None else asdict(end)
        record = {"sequence": self._sequence, "begin": asdict(self._next), "end": ends}
        replace_json(self.folder / "request.json", record)

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
                for segment in segments_of(paths_in(self.folder)):
                    with suppress(OSError):
                        path_of(self.folder, segment).unlink()
            self.close()
            return False
        self.remove()
        return True

    def remove(self) -> None:
        """Delete the folder and unlock."""
        for path in paths_in(self.folder):  # before the lock: nobody takes what is left for a damaged spool
            if path.name not in ("run.json", "lock"):
                with suppress(OSError):
                    path.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.close()

    def _frame(self, position: Position) -> Frame | Damage | None:
        return frame_at(self.folder, position, self._end)

    def _read_request(self) -> None:
        try:
            record = json.loads((self.folder / "request.json").read_text("utf-8"))
            self._sequence = int(record["sequence"])
            self._next = Position(**record["begin"])
            self._pending = None if record["end"] is None else Position(**record["end"])
        except FileNotFoundError:
            pass
