"""A file that is written in memory and taken out in pieces."""

import io


class Pipe(io.RawIOBase):
    """A write-only file; written data is taken out in pieces."""

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
