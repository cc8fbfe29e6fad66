"""The engine's event log: appended batches, framed so that a torn tail is detected and cut.

A frame is a length (u32, little-endian), the CRC-32 of the payload (u32) and the payload, the JSON of a
list of events. A crash can only tear the last frame; a reader stops before it. A frame that a disk has
damaged is skipped once an undamaged one follows it. `journal` decides what is logged.
"""

import errno
import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from backend.specs.events import BATCH, AnyEvent, LogEvent

_HEADER = struct.Struct("<II")
MIN_PAYLOAD_BYTES = 2
"""A smaller length means a damaged frame, such as the zeros that a power failure may leave."""
MAX_FRAME_BYTES = 64 * 2**20
"""A greater length means a damaged frame."""

MAX_WRITTEN_BYTES = 2**20
"""More events are written as several frames: a reader holds one in memory."""

_SCANNED_BYTES = 2**20


class LogGap(LogEvent):
    """Stands for damaged bytes that were skipped. Only readers create it."""


class EventLog:
    """Appends batches of events to a file that only one process writes.

    Events are buffered until `flush`, which writes a frame with one system call.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._pending: list[AnyEvent] = []

    def add(self, *events: AnyEvent) -> None:
        """Buffer events for the next frame."""
        self._pending.extend(events)

    def flush(self, *, sync: bool = False) -> None:
        """Write the buffered events as one frame, or as several if they are many.

        With `sync`, wait until they are on disk.

        Raises:
            OSError: the disk is full or unavailable; the events that are not written stay buffered.
        """
        while self._pending:
            payload = BATCH.dump_json(self._pending)
            n_events = len(self._pending)
            while len(payload) > MAX_WRITTEN_BYTES and n_events > 1:
                n_events //= 2
                payload = BATCH.dump_json(self._pending[:n_events])
            self._write(_HEADER.pack(len(payload), zlib.crc32(payload)) + payload)
            del self._pending[:n_events]
        if sync:
            os.fsync(self._fd)

    def _write(self, frame: bytes) -> None:
        start = os.lseek(self._fd, 0, os.SEEK_END)
        if os.write(self._fd, frame) != len(frame):
            os.ftruncate(self._fd, start)
            raise OSError(errno.ENOSPC, "event log: a frame could be written only in part")

    def close(self) -> None:
        """Flush, sync and close."""
        self.flush(sync=True)
        os.close(self._fd)


def read_frames(path: Path, offset: int = 0) -> Iterator[tuple[list[AnyEvent], int]]:
    """Read complete, undamaged frames from `offset` on.

    Damaged bytes that an undamaged frame follows are skipped: in their place comes a `LogGap`.

    Yields:
        The events of a frame and the offset after it. Stops before a torn or damaged frame that nothing
        follows: while the engine runs, that is a frame being written; afterwards it is a tail to be cut.
    """
    start = offset
    for payload, end in _payloads(path, offset):
        yield [_gap(start, end)] if payload is None else BATCH.validate_json(payload), end
        start = end


def is_damaged(path: Path) -> bool:
    """Whether the disk has damaged a part of a log that is no longer written. A torn tail is not damage."""
    end = 0
    for payload, offset in _payloads(path, 0):
        if payload is None:
            return True
        end = offset
    return path.exists() and tail_is_damaged(path, end)


def _payloads(path: Path, offset: int) -> Iterator[tuple[bytes | None, int]]:
    """The payloads of undamaged frames, None in place of skipped bytes, and the offset after each."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        while True:
            file.seek(offset)
            payload = _read_payload(file)
            if payload is None:
                following = _next_frame(file, offset)
                if following is None:
                    return
                # Both frames may have been written since the first read. Frames are written in order, so that
                # this one is complete by now: it is damaged only if it still is when read again.
                payload = _payload_at(path, offset)
                if payload is None:
                    yield None, following
                    offset = following
                    continue
            offset += _HEADER.size + len(payload)
            yield payload, offset


def _gap(offset: int, following: int) -> LogGap:
    message = (
        f"the event log is damaged: {following - offset:,} bytes from byte {offset:,} on were "
        "skipped, and what they recorded is missing; check the disk"
    )
    return LogGap(time=time.time(), level="error", message=message)


def tail_is_damaged(path: Path, offset: int) -> bool:
    """Whether the last frame, at `offset`, is complete but damaged, and not torn."""
    with path.open("rb") as file:
        file.seek(offset)
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return False
        length, crc = _HEADER.unpack(header)
        if not MIN_PAYLOAD_BYTES <= length <= MAX_FRAME_BYTES:
            return True
        payload = file.read(length)
        return bool(len(payload) == length and zlib.crc32(payload) != crc)


def _payload_at(path: Path, offset: int) -> bytes | None:
    with path.open("rb") as file:
        file.seek(offset)
        return _read_payload(file)


def _read_payload(file: BinaryIO) -> bytes | None:
    """The payload of the frame at the file's position; None unless it is complete and undamaged."""
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    length, crc = _HEADER.unpack(header)
    if not MIN_PAYLOAD_BYTES <= length <= MAX_FRAME_BYTES:
        return None
    payload = file.read(length)
    return payload if len(payload) == length and zlib.crc32(payload) == crc else None


def _next_frame(file: BinaryIO, offset: int) -> int | None:
    """Offset of the first undamaged frame after a damaged one at `offset`; None if there is none."""
    end = os.fstat(file.fileno()).st_size
    begin = offset + 1
    while begin < end:
        file.seek(begin)
        content = file.read(_SCANNED_BYTES)
        # A payload is a JSON array.
        at = content.find(b"[", _HEADER.size)
        while at != -1:
            length, _ = _HEADER.unpack_from(content, at - _HEADER.size)
            # Text as a length is far too great, so that few candidates are read.
            if MIN_PAYLOAD_BYTES <= length <= min(MAX_FRAME_BYTES, end - begin - at):
                file.seek(begin + at - _HEADER.size)
                if _read_payload(file) is not None:
                    return begin + at - _HEADER.size
            at = content.find(b"[", at + 1)
        begin += max(1, len(content) - _HEADER.size)
    return None
