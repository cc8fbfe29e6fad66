"""The engine's event log: appended batches, framed so that a torn tail is seen and cut.

A frame is a length (u32, little-endian), the CRC-32 of the payload (u32) and the payload, the JSON of a
list of events. A crash can leave a torn frame only at the end; a reader stops before it.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from backend.specs.events import BATCH, AnyEvent

_HEADER = struct.Struct("<II")
MAX_FRAME_BYTES = 64 * 2**20
"""A longer length is damage, not a frame."""


class EventLog:
    """Appends batches of events to one file, which one process writes.

    Events are held until `flush`, which writes them as one frame with one system call.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._pending: list[AnyEvent] = []

    def add(self, *events: AnyEvent) -> None:
        """Hold events for the next frame."""
        self._pending.extend(events)

    def flush(self, *, sync: bool = False) -> None:
        """Write what is held as one frame; with `sync`, wait until the disk has it.

        Raises:
            OSError: the disk is full or gone; what was held is held still.
        """
        if self._pending:
            payload = BATCH.dump_json(self._pending)
            frame = _HEADER.pack(len(payload), zlib.crc32(payload)) + payload
            start = os.lseek(self._fd, 0, os.SEEK_END)
            if os.write(self._fd, frame) != len(frame):
                os.ftruncate(self._fd, start)
                raise OSError("event log: the disk took only part of a frame")
            self._pending.clear()
        if sync:
            os.fsync(self._fd)

    def close(self) -> None:
        """Flush, sync and close."""
        self.flush(sync=True)
        os.close(self._fd)


def read_frames(path: Path, offset: int = 0) -> Iterator[tuple[list[AnyEvent], int]]:
    """Read whole, undamaged frames from `offset` on.

    Yields:
        The events of a frame and the offset after it. Stops before a torn or damaged frame: while the
        engine lives that is a frame being written, afterwards it is a tail to be cut.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(offset)
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, crc = _HEADER.unpack(header)
            if length > MAX_FRAME_BYTES:
                return
            payload = file.read(length)
            if len(payload) < length or zlib.crc32(payload) != crc:
                return
            offset += _HEADER.size + length
            yield BATCH.validate_json(payload), offset
