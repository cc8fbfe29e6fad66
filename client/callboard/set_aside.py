"""What is set aside of a spool: what the server has refused, and what is damaged.

- `refused.log`: requests that the server has refused, in frames of `[reason, place, kind, number of rows,
  [row, ...]]`.
- `refused.json`: why the server accepts nothing at all of what is still in the segments.
- `<segment>-<offset>-<number of rows>.damaged`: all that a spool had from its first damaged frame on.

They are kept until a user discards them.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callboard.frames import (
    Position,
    count_rows,
    framed,
    open_to_append,
    path_of,
    read_bytes,
    read_payload,
    size_of,
)

DAMAGED = "it is damaged, by the disk or a loss of power"
"""Reason why the rest of a spool is set aside."""


@dataclass(frozen=True)
class RefusedRequest:
    """A request that the server has refused."""

    reason: str
    place: list[int]
    """Where it began: segment, offset and row."""
    kind: str
    n_rows: int
    rows: list[Any]


class SetAside:
    """What is set aside of one spool."""

    def __init__(self, folder: Path) -> None:
        """Read how large it is.

        Args:
            folder: folder of the spool.
        """
        self._folder = folder
        self._log, self._all = folder / "refused.log", folder / "refused.json"
        self.n_bytes = size_of(self._log) + sum(map(size_of, self._damaged()))
        """Size of the files."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing but the segments is set aside."""
        return not self._log.exists() and not self._damaged()

    @property
    def is_refused(self) -> bool:
        """Whether the server accepts nothing of what is in the segments."""
        return self._all.exists()

    def refuse(self, reason: str, begin: Position, kind: str, n_rows: int, rows: bytes) -> None:
        """Set a request aside, unless a process has done so and died before it confirmed it.

        Raises:
            OSError: the disk is full; nothing has changed.
        """
        place = [begin.segment, begin.offset, begin.row]
        requests = [*self.requests()]
        if requests and requests[-1].place == place:
            return
        head = json.dumps([reason, place, kind, n_rows]).encode()
        frame = framed(head[:-1] + b"," + rows + b"]")
        file = open_to_append(self._log)
        try:
            start = os.lseek(file, 0, os.SEEK_END)
            if os.write(file, frame) != len(frame):
                os.ftruncate(file, start)
                raise OSError(errno.ENOSPC, "no space is left on the spool's disk")
        finally:
            os.close(file)
        self.n_bytes += len(frame)

    def refuse_all(self, reason: str) -> None:
        """Set aside what is in the segments: the server accepts nothing of it.

        Raises:
            OSError: the disk is full; nothing has changed.
        """
        replace_json(self._all, {"reason": reason})

    def keep_damaged(self, begin: Position, end: Position) -> int:
        """Copy everything from one position to another; return how many rows it seems to have.

        Raises:
            OSError: the disk is full; nothing has changed.
        """
        n_rows, n_bytes = -begin.row, 0
        new = self._folder / "damaged.new"
        with new.open("wb") as file:
            for segment in range(begin.segment, end.segment + 1):
                first = begin.offset if segment == begin.segment else 0
                last = end.offset if segment == end.segment else None
                path = path_of(self._folder, segment)
                content = read_bytes(path, first, last) if path.exists() else b""
                n_bytes += file.write(content)
                n_rows += count_rows(content)
        n_rows = max(1, n_rows)
        new.replace(self._folder / f"{begin.segment:08d}-{begin.offset}-{n_rows}.damaged")
        self.n_bytes += n_bytes
        return n_rows

    def requests(self) -> Iterator[RefusedRequest]:
        """The refused requests; if their file is damaged, those before the damage."""
        offset, n_bytes = 0, size_of(self._log)
        while offset < n_bytes:
            payload = read_payload(self._log, offset)
            if payload is None:
                yield RefusedRequest(DAMAGED, [0, offset, 0], "damaged", 1, [])
                return
            offset += len(framed(payload))
            yield RefusedRequest(*json.loads(payload))

    def counts(self) -> dict[str, int]:
        """How many rows are set aside beside the segments, by reason."""
        counts: dict[str, int] = {}
        for request in self.requests():
            counts[request.reason] = counts.get(request.reason, 0) + request.n_rows
        for path in self._damaged():
            counts[DAMAGED] = counts.get(DAMAGED, 0) + int(path.stem.rpartition("-")[2])
        return counts

    def reason_of_all(self) -> str:
        """Why the server accepts nothing of what is in the segments."""
        try:
            return str(json.loads(self._all.read_text("utf-8"))["reason"])
        except (OSError, ValueError, KeyError, TypeError):
            return "unknown"

    def discard(self) -> None:
        """Delete it, but for what is in the segments."""
        for path in (self._log, *self._damaged()):
            path.unlink(missing_ok=True)
        self.n_bytes = 0

    def _damaged(self) -> list[Path]:
        return [*self._folder.glob("*.damaged")]


def replace_json(path: Path, content: dict[str, Any], *, is_durable: bool = False) -> None:
    """Write a small file so that a crash (if durable, a loss of power) leaves the old one or the new one."""
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8") as file:
        file.write(json.dumps(content))
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    new.replace(path)
