"""Files that the scripts of external runs send in parts, until they are complete.

Parts are in the artifact store, below the id of the upload, so that any web process may receive the next one.
A part that is sent again is refused with the offset that is expected, so that a client continues where it
was, whichever side has restarted.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from backend.external.schemas import MAX_UPLOAD_BYTES
from backend.platform.artifacts import ArtifactStore
from backend.platform.errors import Conflict, Invalid, Unavailable
from backend.platform.files import existing_folder
from backend.specs.problems import FieldProblem

MAX_UNFINISHED_BYTES = 2 * MAX_UPLOAD_BYTES
"""Size of all unfinished uploads of a run above which none begins."""
MAX_UNFINISHED = 20
"""Maximum number of unfinished uploads of a run."""
MAX_PARTS = 10_000
"""Of an upload: each request for one reads the names of all."""


class Uploads:
    """The unfinished uploads of one installation.

    Args:
        store: where their parts are.
        folder: where a complete file is put together; created when needed.
        min_free_bytes: free disk space below which no part is stored.
    """

    def __init__(self, store: ArtifactStore, folder: Path, min_free_bytes: int) -> None:
        self._store = store
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
        folder = existing_folder(self._store.folder or self._folder)
        if shutil.disk_usage(folder).free < self._min_free_bytes + len(part):
            raise Unavailable("the disk of the server is nearly full", retry_after_s=30)
        ends = self._store.ends_of_parts(run_id, upload)
        stored = max(ends, default=0)
        if not ends:
            self._require_room(run_id)
        if stored != offset:
            problem = FieldProblem(field="offset", message=f"must be {stored}, got {offset}")
            detail = f"{stored:,} bytes of upload {upload} are stored"
            raise Conflict(detail, [problem], code="upload_offset", expected=stored)
        # After the check of the offset: a request with a wrong one is a conflict, however long.
        end = offset + len(part)
        if end > MAX_UPLOAD_BYTES:
            raise Invalid.field("body", f"makes the file longer than {MAX_UPLOAD_BYTES:,} bytes, the maximum")
        if len(ends) >= MAX_PARTS:
            raise Invalid.field("body", f"is one part too many: a file has at most {MAX_PARTS:,}")
        self._store.put_part(run_id, upload, end, part)
        return end

    def _require_room(self, run_id: str) -> None:
        sizes = self._store.sizes_of_uploads(run_id)
        n_bytes = sum(sizes.values())
        if len(sizes) >= MAX_UNFINISHED or n_bytes >= MAX_UNFINISHED_BYTES:
            detail = (
                f"the run has {len(sizes)} other unfinished uploads of {n_bytes:,} bytes; the maximum is "
                f"{MAX_UNFINISHED} of {MAX_UNFINISHED_BYTES:,} bytes: complete some"
            )
            raise Unavailable(detail, retry_after_s=30)

    @contextmanager
    def complete(self, run_id: str, upload: str, size_bytes: int, sha256: str) -> Iterator[Path]:
        """The file of a complete upload, which is deleted afterwards.

        Raises:
            Conflict: it is not complete.
            Invalid: it is longer, or its checksum is another one; it is deleted.
        """
        stored_bytes = max(self._store.ends_of_parts(run_id, upload), default=0)
        if stored_bytes < size_bytes:
            message = f"must be sent first: {stored_bytes:,} of {size_bytes:,} bytes are stored"
            problem = FieldProblem(field="upload", message=message)
            raise Conflict(f"the upload {upload} is not complete", [problem], code="upload_incomplete")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=self._folder) as folder:
            path, digest = Path(folder) / upload, hashlib.sha256()
            with path.open("xb") as file:
                for part in self._store.parts(run_id, upload, stored_bytes):
                    digest.update(part)
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())  # the client deletes its copy once it is confirmed
            if stored_bytes != size_bytes or digest.hexdigest() != sha256:
                self.remove(run_id, upload)
                message = "does not match the upload, which was deleted: send it again"
                raise Invalid.field("sha256", message, code="upload_damaged")
            yield path

    def remove(self, run_id: str, upload: str) -> None:
        """Delete an upload, if it exists."""
        self._store.delete_upload(run_id, upload)
