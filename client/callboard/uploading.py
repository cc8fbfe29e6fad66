"""Uploads of files, in parts.

They are separate from `delivery`, which sends each batch of rows in one request.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from callboard.errors import Rejected, RequestTooLarge, Unreachable
from callboard.files import sha256_of
from callboard.transport import Transport

PART_BYTES = 900_000
MIN_PART_BYTES = 10_000
_BLOCK_BYTES = 2**20

_NPY_MAGIC = b"\x93NUMPY"

_NO_ACCESS = frozenset({401, 403})


class CopyUnreadable(Exception):
    """The copy of a file in the spool is missing or damaged: it can never be sent."""


class FileUpload:
    """A file that is being sent."""

    def __init__(self, upload: str, path: Path, *, compress: bool) -> None:
        """Start with its first byte.

        Args:
            upload: id that the server knows it by.
            path: path of the file, which nothing else changes.
            compress: whether it has frames, which are compressed unless they already are.

        Raises:
            CopyUnreadable: it cannot be read.
            Unreachable: there is no space to compress it now; it is unchanged.
        """
        self.upload = upload
        self._path = path
        if compress:
            _compress_frames(path)
        with _reading():
            self._size_bytes = path.stat().st_size
        self._sent_bytes = 0
        self._part_bytes = PART_BYTES
        self._sha256: str | None = None

    def send_part(self, transport: Transport, run_id: str) -> bool:
        """Send the next part; False if there is none.

        Raises:
            Unreachable: the server cannot take it now.
            Rejected: the server refuses the file.
            CopyUnreadable: it cannot be read.
        """
        if self._sent_bytes >= self._size_bytes:
            return False
        with _reading(), self._path.open("rb") as file:
            file.seek(self._sent_bytes)
            part = file.read(self._part_bytes)
        send = partial(
            transport.request,
            "PUT",
            f"runs/{run_id}/uploads/{self.upload}",
            content=part,
            content_type="application/octet-stream",
            params={"offset": self._sent_bytes},
        )
        try:
            answer = transport.validate_answer(call_with_access(send), received_bytes=int)
        except RequestTooLarge:
            if len(part) <= MIN_PART_BYTES:
                raise
            self._part_bytes = len(part) // 2
        except Rejected as error:
            if error.expected is None or error.expected > self._size_bytes:
                raise
            self._sent_bytes = error.expected  # of an earlier process, or after a lost answer
        else:
            self._sent_bytes = answer["received_bytes"]
        return True

    def checksum(self) -> dict[str, Any]:
        """Size and SHA-256, as fields of the request that follows.

        Raises:
            CopyUnreadable: it cannot be read.
        """
        if self._sha256 is None:
            with _reading(), self._path.open("rb") as file:
                self._sha256 = sha256_of(file).hexdigest()
        return {"size_bytes": self._size_bytes, "sha256": self._sha256}


def _compress_frames(path: Path) -> None:
    """Turn a file of frames, as `callboard.files` writes it, into a compressed archive.

    Raises:
        CopyUnreadable: it cannot be read.
        Unreachable: the archive cannot be written now; the file is unchanged.
    """
    with _reading():
        file = path.open("rb")
    with file:
        blocks = _blocks(file)
        head = next(blocks, b"")
        if not head.startswith(_NPY_MAGIC):
            return  # it is one already
        compressed = path.with_suffix(".new")
        try:
            with (
                zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
                archive.open("frames.npy", "w", force_zip64=True) as member,
            ):
                member.write(head)
                for block in blocks:
                    member.write(block)
            os.replace(compressed, path)
        except OSError as error:
            raise Unreachable(f"a video cannot be compressed now: {error}") from None
        finally:
            with suppress(OSError):
                compressed.unlink(missing_ok=True)  # it takes space


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while True:
        with _reading():
            block = file.read(_BLOCK_BYTES)
        if not block:
            return
        yield block


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CopyUnreadable(f"its copy in the spool cannot be read: {error}") from None


def call_with_access(send: Callable[[], Any]) -> Any:
    """Call `send`; raise `Unreachable` if the token is refused, since another token may be accepted later."""
    try:
        return send()
    except Rejected as error:
        if error.status in _NO_ACCESS:
            raise Unreachable(f"the server refuses the token: {error}") from None
        raise
