"""Files that the scripts of external runs send in parts, until they are complete.

A part is appended to `uploads/<run id>/<upload id>` in the folder of the installation, on the machine of the
web process. Both ids are ULIDs. A part that is sent again is refused with the offset that is expected, so
that a client continues where it was, whichever side has restarted.
"""

import fcntl
import hashlib
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from backend.external.schemas import MAX_UPLOAD_BYTES
from backend.platform.errors import Conflict, Invalid, Unavailable
from backend.specs.problems import FieldProblem

MAX_UNFINISHED_BYTES = 2 * MAX_UPLOAD_BYTES
"""Maximum size of all unfinished uploads of a run."""
MAX_UNFINISHED = 20
"""Maximum number of other unfinished uploads of a run: each part reads the sizes of all of them."""
UNFINISHED_S = 24 * 3600.0
"""Time without growth after which an upload is deleted when another one starts."""

_BLOCK_BYTES = 2**20


class Uploads:
    """The unfinished uploads of one installation."""

    def __init__(self, folder: Path, min_free_bytes: int) -> None:
        """Set the folder and its limit.

        Args:
            folder: where they are; created when needed.
            min_free_bytes: free disk space below which no part is stored.
        """
        self._folder = folder
        self._min_free_bytes = min_free_bytes

    def append(self, run_id: str, upload: str, offset: int, part: bytes) -> int:
        """Append a part; return how many bytes of the upload are stored.

        Raises:
            Conflict: the upload has another number of bytes than `offset`.
            Invalid: the part is empty, or the upload is too large.
            Unavailable: the disk is nearly full, or the run has too many unfinished uploads.
        """
        if not part:
            raise Invalid.field("body", "must have the next bytes of the file")
        if offset == 0:
            self.remove_stale()
        try:
            return self._append(self._folder / run_id, upload, offset, part)
        except FileNotFoundError:  # deleted meanwhile
            detail = "the upload was deleted in the meantime: send it again"
            raise Unavailable(detail, retry_after_s=1) from None

    def _append(self, folder: Path, upload: str, offset: int, part: bytes) -> int:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if shutil.disk_usage(folder).free < self._min_free_bytes + len(part):
            raise Unavailable("the disk of the server is nearly full", retry_after_s=30)
        path = folder / upload
        unfinished = [file for file in folder.iterdir() if file != path]
        if len(unfinished) >= MAX_UNFINISHED:
            detail = f"the run has {len(unfinished)} other unfinished uploads, the maximum: complete some"
            raise Unavailable(detail, retry_after_s=30)
        others = sum(file.stat().st_size for file in unfinished)
        if others + offset + len(part) > MAX_UNFINISHED_BYTES:
            message = f"the run has other unfinished uploads of {others:,} bytes; the maximum of all is"
            detail = f"{message} {MAX_UNFINISHED_BYTES:,}: try again later"
            raise Unavailable(detail, retry_after_s=30)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            stored = os.fstat(descriptor).st_size
            if stored != offset:
                problem = FieldProblem(field="offset", message=f"must be {stored}, got {offset}")
                detail = f"{stored:,} bytes of upload {upload} are stored"
                raise Conflict(detail, [problem], code="upload_offset", expected=stored)
            # After the check of the offset: a request with a wrong one is a conflict, however long.
            if offset + len(part) > MAX_UPLOAD_BYTES:
                message = f"makes the file longer than {MAX_UPLOAD_BYTES:,} bytes, the maximum"
                raise Invalid.field("body", message)
            file.write(part)
        return offset + len(part)

    def complete(self, run_id: str, upload: str, size_bytes: int, sha256: str) -> Path:
        """The file of a complete upload.

        Raises:
            Conflict: it is not complete.
            Invalid: it is longer, or its checksum is another one; it is deleted.
        """
        path = self._folder / run_id / upload
        stored_bytes = path.stat().st_size if path.is_file() else 0
        if stored_bytes < size_bytes:
            message = f"must be sent first: {stored_bytes:,} of {size_bytes:,} bytes are stored"
            problem = FieldProblem(field="upload", message=message)
            raise Conflict(f"the upload {upload} is not complete", [problem], code="upload_incomplete")
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
            os.fsync(file.fileno())  # the client deletes its copy once it is confirmed
        if stored_bytes != size_bytes or digest.hexdigest() != sha256:
            path.unlink(missing_ok=True)
            message = "does not match the upload, which was deleted: send it again"
            raise Invalid.field("sha256", message, code="upload_damaged")
        return path

    def remove(self, run_id: str, upload: str) -> None:
        """Delete an upload, if it exists."""
        (self._folder / run_id / upload).unlink(missing_ok=True)

    def remove_stale(self) -> None:
        """Delete the uploads that have not grown for a day."""
        before = time.time() - UNFINISHED_S
        for folder in self._folder.glob("*"):
            for path in folder.glob("*"):
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < before:
                        path.unlink()
            with suppress(OSError):
                folder.rmdir()  # if it is empty
