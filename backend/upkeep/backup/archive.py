"""The file of a backup: a tar archive that is either absent or complete, and that any tar can unpack.

It contains `database.sqlite3`, whatever the database was, then the artifacts as
`runs/<run id>/<kind>/<file>`, then `manifest.json`, and last `SHA256SUMS`, as `sha256sum` writes it, with the
checksum of every other member.
"""

import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self, cast
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from backend.platform.artifacts import ArtifactKind

FORMAT = 1
DATABASE = "database.sqlite3"
MANIFEST = "manifest.json"
CHECKSUMS = "SHA256SUMS"
MAX_MANIFEST_BYTES = 64 * 2**20
"""Maximum size of the manifest, which is read as a whole."""

_ARTIFACT = re.compile(
    r"runs/(?P<run>[0-9A-Z]{26})/(?P<kind>checkpoints|replays|videos|media)/(?P<file>[A-Za-z0-9_][A-Za-z0-9._-]{0,199})"
)
_BLOCK_BYTES = 2**20
_MAX_HEADER_BYTES = 2**16
"""Of a member, with the headers that extend it: the library reads each of them as a whole."""
_EXTENSIONS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
"""Types of the headers that extend the next one."""


class BackupError(Exception):
    """The backup or the restore is not possible; the message gives the reason and the remedy."""


class BackupManifest(BaseModel):
    """What a backup is a copy of."""

    format: int
    version: str
    """Version of Callboard that wrote it."""
    schema_revision: str
    created_at: str
    n_runs: int
    n_files: int
    damaged: list[str]
    """Artifacts that the store did not have, or with another checksum than their rows have."""
    n_damaged_values: int = 0
    """Number of values in the database that are damaged."""
    damaged_values: list[str] = []
    """Table, key and column of the first damaged values. A restore keeps these values as they are."""
    unrestorable: str | None = None
    """Why a restore refuses the backup: a row that no page can show. None if there is none."""


class Artifact(BaseModel):
    """The place of a member in the artifact store."""

    run_id: str
    kind: ArtifactKind
    file: str

    @property
    def member(self) -> str:
        """Its name in the archive."""
        return f"runs/{self.run_id}/{self.kind}/{self.file}"


class ArchiveWriter:
    """Adds members; the last two are written at the end."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._digests: dict[str, str] = {}

    def add(self, name: str, file: IO[bytes], size_bytes: int) -> str:
        """Add a file of a known size; return its SHA-256.

        Raises:
            OSError: it is shorter, or the archive cannot be written.
        """
        header = tarfile.TarInfo(name)
        header.size, header.mode = size_bytes, 0o600
        digesting = _Digesting(file)
        self._tar.addfile(header, cast("IO[bytes]", digesting))
        self._digests[name] = digesting.digest.hexdigest()
        return self._digests[name]

    def finish(self, manifest: BackupManifest) -> None:
        """Add the manifest and the checksums."""
        content = manifest.model_dump_json(indent=1).encode()
        self.add(MANIFEST, io.BytesIO(content), len(content))
        lines = "".join(f"{digest}  {name}\n" for name, digest in self._digests.items()).encode()
        self.add(CHECKSUMS, io.BytesIO(lines), len(lines))


@contextmanager
def creating(path: Path) -> Iterator[ArchiveWriter]:
    """Write a backup, readable by its owner only; `path` appears when the block ends without an error.

    Raises:
        BackupError: it exists already, or cannot be written.
    """
    if path.exists():
        raise BackupError(f"{path} exists already: name another file")
    partial = path.with_name(f".{path.name[:200]}.{uuid4().hex}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise BackupError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                yield ArchiveWriter(tar)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(partial, path)
        except FileExistsError:
            raise BackupError(f"{path} exists already: another backup has just written it") from None
        except OSError:  # a file system without hard links
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def verify(path: Path) -> tuple[BackupManifest, str]:
    """Read a whole backup and check it; return its manifest and the checksum of its checksums.

    Raises:
        BackupError: it is not a backup, is damaged or incomplete, or is of another format.
    """
    checksums: dict[str, str] = {}
    content: dict[str, bytes] = {}
    with _reading(path) as tar:
        for name, file, size_bytes in _members(path, tar):
            if name in checksums:
                raise BackupError(f"{path} is damaged: it contains {name} twice")
            digesting = _Digesting(file)
            if name in (MANIFEST, CHECKSUMS):  # read as a whole
                # The checksums come last, and have a line for each other member.
                most = MAX_MANIFEST_BYTES if name == MANIFEST else sum(map(line_bytes, checksums))
                if size_bytes > most:
                    raise BackupError(
                        f"{path} is not a backup of Callboard: its {name} has {size_bytes:,} bytes"
                    )
                content[name] = digesting.read()
            while digesting.read(_BLOCK_BYTES):
                pass
            checksums[name] = digesting.digest.hexdigest()
    if CHECKSUMS not in checksums:
        raise BackupError(f"{path} is incomplete or not a backup of Callboard: it has no {CHECKSUMS}")
    identity = checksums.pop(CHECKSUMS)
    lines = content.get(CHECKSUMS, b"").decode("utf-8", "replace").split("\n")
    expected = {name: digest for digest, _, name in (line.partition("  ") for line in lines if line)}
    for name in sorted({*checksums, *expected}):
        if checksums.get(name) != expected.get(name):
            raise BackupError(f"{path} is damaged: {name} is not what was written; use another backup")
    try:
        manifest = BackupManifest.model_validate_json(content[MANIFEST])
    except (KeyError, ValidationError):
        raise BackupError(f"{path} has no manifest that this version can read") from None
    if manifest.format != FORMAT:
        raise BackupError(
            f"{path} has format {manifest.format} of Callboard {manifest.version}, and this version reads "
            f"format {FORMAT}: install that version"
        )
    return manifest, identity


def artifacts(path: Path) -> Iterator[tuple[Artifact, IO[bytes]]]:
    """Each artifact of a verified backup, with its content."""
    with _reading(path) as tar:
        for name, file, _ in _members(path, tar):
            if (named := _ARTIFACT.fullmatch(name)) is not None:
                kind = cast("ArtifactKind", named["kind"])
                yield Artifact(run_id=named["run"], kind=kind, file=named["file"]), file


def extract_database(path: Path, target: Path) -> None:
    """Write the database of a verified backup to a new file."""
    with _reading(path) as tar:
        for name, file, _ in _members(path, tar):
            if name == DATABASE:
                with target.open("xb") as written:
                    shutil.copyfileobj(file, written, _BLOCK_BYTES)
                return
    raise BackupError(f"{path} contains no database")


@contextmanager
def _reading(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path, "r:", tarinfo=_BoundedHeader) as tar:
            yield tar
    except FileNotFoundError:
        raise BackupError(f"there is no file {path}") from None
    except (tarfile.TarError, EOFError) as error:
        raise BackupError(f"{path} is damaged, or not a backup of Callboard: {error}") from None


def line_bytes(name: str) -> int:
    """The size of the line of a member in the checksums."""
    return len("0" * 64 + f"  {name}\n")


def _members(path: Path, tar: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes], int]]:
    """Each member with its content, which must be read before the next one, and its size in bytes."""
    while (header := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined] # else it keeps the header of every member
        name = header.name
        known = name in (DATABASE, MANIFEST, CHECKSUMS) or _ARTIFACT.fullmatch(name)
        if not known or not header.isreg():
            raise BackupError(f"{path} is not a backup of Callboard: it contains {name!r:.80}")
        file = tar.extractfile(header)
        assert file is not None
        yield name, file, header.size


class _BoundedHeader(tarfile.TarInfo):
    """A header, whose size is bounded before the library reads it."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        """Read the header of the next member.

        Raises:
            BackupError: it is too long, or that of a sparse member, whose header may have any length.
        """
        file = cast("IO[bytes]", tar.fileobj)
        start = file.tell()
        if (excess := _excess_of_header(file)) is not None:
            raise BackupError(f"{tar.name!s} is not a backup of Callboard: it contains {excess}")
        file.seek(start)
        return super().fromtarfile(tar)


def _excess_of_header(file: IO[bytes]) -> str | None:
    """What is refused of the header that follows, with those that extend it; None if nothing is."""
    n_bytes, content = 0, b""
    while True:
        try:
            header = tarfile.TarInfo.frombuf(file.read(tarfile.BLOCKSIZE), "utf-8", "surrogateescape")
        except tarfile.TarError:
            return None  # the end, or damaged: the library knows
        # A sparse member may have any size in a file of some bytes.
        if header.type == tarfile.GNUTYPE_SPARSE or b"GNU.sparse" in content:
            return "a sparse file"
        is_extension = header.type in _EXTENSIONS
        n_bytes += tarfile.BLOCKSIZE + header.size
        if header.size < 0 or (is_extension and n_bytes > _MAX_HEADER_BYTES):
            return f"a header of {header.size:,} bytes"
        if not is_extension:
            return None
        content += file.read(header.size)
        file.seek(-header.size % tarfile.BLOCKSIZE, os.SEEK_CUR)


class _Digesting:
    """A file whose content is digested while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest: Any = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self.digest.update(block)
        return block
