"""What exports of every format share: what they say of a run besides its points, and the file they write to.

Apart from `export`, because that needs pyarrow, and the other formats do not.
"""

import io
from dataclasses import dataclass
from datetime import datetime
from typing import Any

PROVENANCE = "provenance"
"""Name of CSV's last column, of the key of Parquet's metadata, and of TensorBoard's text."""

Provenance = list[dict[str, Any]]
"""For each attempt: `attempt`, `host`, and the fields of `backend.specs.provenance` if they are known. For
each process of a script: `source`, and the fields of `backend.runs.runs.script_provenance` but `diff`."""

DESCRIPTION = "description"
"""Name of the last column of a CSV of several runs, and of TensorBoard's text."""


@dataclass(frozen=True)
class ExportedRun:
    """One of several runs to export."""

    id: str
    name: str
    started_at: datetime
    """The time at which its training time was 0."""
    description: dict[str, Any]
    """Its name, spec and provenance, as JSON values."""


class Pipe(io.RawIOBase):
    """A write-only file in memory; written data is taken out in pieces."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Bytes written so far."""
        return self._position

    def write(self, data: "bytes | memoryview") -> int:  # type: ignore[override]
        """Append to the file."""
        part = bytes(data)
        self._parts.append(part)
        self._position += len(part)
        return len(part)

    def take(self) -> bytes:
        """What was written since the last call."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data
