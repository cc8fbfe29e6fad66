"""The artifact store: checkpoints, replays, videos, images and tables, in a folder or on any server that
fsspec supports.

A key is `runs/<run id>/<kind>/<file>`, built from ids and file names, never from a path in a request. A file
appears under its key only when it is complete, and never changes afterwards. In a folder on the same file
system as the run directories a key is a hard link, so that a file takes space once.

Beside them are the parts of files that scripts are sending: `runs/<run id>/uploads/<upload id>/<end>`, where
`end` is the number of the file's bytes up to the part's last one.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal
from uuid import uuid4

import fsspec
from fsspec.implementations.local import LocalFileSystem

ArtifactKind = Literal["checkpoints", "replays", "videos", "media"]

MAX_CHECKED = 10_000
"""Files whose checksums are remembered as correct."""

_RUN_ID = re.compile(r"[0-9A-Z]{26}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


class InvalidKey(ValueError):
    """A run id or a file name that could address a file outside the store."""


class Damaged(Exception):
    """A file's checksum is not the one that was recorded for it."""


class StoreUnavailable(OSError):
    """The artifact store is unavailable or rejects the request; try again later."""


def check_file_name(name: str) -> str:
    """Return `name` if it is a plain file name.

    Raises:
        InvalidKey: it has a separator, starts with a dot, or is longer than 200 characters.
    """
    if not _FILE.fullmatch(name):
        raise InvalidKey(f"not a file name: {name!r:.80}")
    return name


def observations_file(episode_id: str) -> str:
    """File name of the video of an episode's network input."""
    return f"{episode_id}-observations.mp4"


def thumbnail_file(target_id: str) -> str:
    """File name of the thumbnail of an episode, or of a video that a script has sent."""
    return f"{target_id}-thumbnail.jpg"


def states_file(episode_id: str) -> str:
    """File name of the emulator states of an episode or a recorded game."""
    return f"{episode_id}-states.npz"


def game_file(recording_id: str) -> str:
    """File name of the video of a recorded game."""
    return f"{recording_id}.mp4"


def encoded_file(video_id: str) -> str:
    """File name of an encoded video."""
    return f"{video_id}.mp4"


def agent_file(agent_id: str) -> str:
    """File name of an exported agent's archive."""
    return f"{agent_id}-agent.zip"


class ArtifactStore:
    """Files by key at one fsspec URL, such as `file:///srv/callboard` or `s3://bucket/callboard`.

    Every method raises `StoreUnavailable` if the store fails for another reason than a missing file.
    """

    def __init__(self, url: str) -> None:
        # Other processes write to the store, so listings must not be cached.
        self._fs, self._root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        self._local = isinstance(self._fs, LocalFileSystem)
        self._checked: set[tuple[str, str, int]] = set()

    def _path(self, run_id: str, kind: ArtifactKind, file: str) -> str:
        """Where a file is stored."""
        return f"{self._run_path(run_id)}/{kind}/{check_file_name(file)}"

    def _run_path(self, run_id: str) -> str:
        """Folder of a run's files."""
        if not _RUN_ID.fullmatch(run_id):
            raise InvalidKey(f"not a run id: {run_id!r:.80}")
        return f"{self._root}/runs/{run_id}"

    def put(self, local: Path, run_id: str, kind: ArtifactKind, file: str | None = None) -> None:
        """Store a complete local file under its own name or `file`, replacing an older one. The local file
        must not be changed afterwards.

        Raises:
            FileNotFoundError: there is no such local file.
        """
        target = self._path(run_id, kind, local.name if file is None else file)
        if self._local:
            with _store():
                _link_or_copy(local, Path(target))
            return
        if not local.is_file():
            raise FileNotFoundError(local)
        with _store():
            try:
                # Object stores show an upload only when it is complete.
                self._fs.put_file(str(local), target)
            except FileNotFoundError as error:
                raise StoreUnavailable(
                    f"the artifact store's folder or bucket does not exist: {error}"
                ) from error

    def copy(self, run_id: str, kind: ArtifactKind, file: str, to_run_id: str, to_file: str) -> None:
        """Copy a file to another run, under another name.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        source, target = self._path(run_id, kind, file), self._path(to_run_id, kind, to_file)
        with _store():
            if self._local:
                _link_or_copy(Path(source), Path(target))
            else:
                self._fs.copy(source, target)

    def get(self, run_id: str, kind: ArtifactKind, file: str, folder: Path) -> Path:
        """Get a file from the store into a local folder, and return its local path. The local file must not
        be changed.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / check_file_name(file)
        path = self._path(run_id, kind, file)
        if self._local:
            with _store():
                _link_or_copy(Path(path), target)
            return target
        temporary = folder / f".{file}.{uuid4().hex}"
        try:
            with _store():
                self._fs.get_file(path, str(temporary))
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        return target

    def open(self, run_id: str, kind: ArtifactKind, file: str) -> IO[bytes]:
        """Open a file for reading; it is seekable.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        path = self._path(run_id, kind, file)
        with _store():
            opened: IO[bytes] = self._fs.open(path, "rb")
        return opened

    def read(self, run_id: str, kind: ArtifactKind, file: str, sha256: str | None) -> bytes:
        """Read a whole file. `sha256` is its checksum in hexadecimal; None accepts any content.

        Raises:
            FileNotFoundError: the store has no such file.
            Damaged: its checksum is another one.
        """
        with self.open(run_id, kind, file) as opened, _store():
            content = opened.read()
        if sha256 not in (None, hashlib.sha256(content).hexdigest()):
            raise Damaged(f"the checksum of {file} does not match")
        return content

    def check(self, run_id: str, kind: ArtifactKind, file: str, sha256: str | None) -> None:
        """Check a file against its checksum, once while its size stays the same.

        Raises:
            FileNotFoundError: the store has no such file.
            Damaged: its checksum is another one.
        """
        if sha256 is None:
            return
        key = (self._path(run_id, kind, file), sha256, self.size_bytes(run_id, kind, file))
        if key in self._checked:
            return
        with self.open(run_id, kind, file) as opened, _store():
            digest = hashlib.sha256()
            while block := opened.read(2**20):
                digest.update(block)
            if digest.hexdigest() != sha256:
                raise Damaged(f"the checksum of {file} does not match")
        if len(self._checked) >= MAX_CHECKED:
            self._checked.clear()
        self._checked.add(key)

    def size_bytes(self, run_id: str, kind: ArtifactKind, file: str) -> int:
        """Size of a file.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        path = self._path(run_id, kind, file)
        with _store():
            return int(self._fs.info(path)["size"])

    def size_or_zero(self, run_id: str, kind: ArtifactKind, file: str) -> int:
        """Size of a file, 0 if there is none."""
        try:
            return self.size_bytes(run_id, kind, file)
        except FileNotFoundError:
            return 0

    def delete(self, run_id: str, kind: ArtifactKind, file: str) -> None:
        """Delete a file, if it exists."""
        path = self._path(run_id, kind, file)
        with suppress(FileNotFoundError), _store():
            self._fs.rm_file(path)

    @property
    def folder(self) -> Path | None:
        """The folder of the store; None if it is a server."""
        return Path(self._root) if self._local else None

    def _upload_path(self, run_id: str, upload: str) -> str:
        """Folder of an upload's parts."""
        if not _RUN_ID.fullmatch(upload):
            raise InvalidKey(f"not an upload's id: {upload!r:.80}")
        return f"{self._run_path(run_id)}/uploads/{upload}"

    def put_part(self, run_id: str, upload: str, end: int, content: bytes) -> None:
        """Store the part of an upload that ends at `end`."""
        path = f"{self._upload_path(run_id, upload)}/{end:012d}"
        with _store():
            if not self._local:
                self._fs.pipe_file(path, content)
                return
            target = Path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}.{uuid4().hex}")
            try:
                temporary.write_bytes(content)
                os.replace(temporary, target)
            finally:
                temporary.unlink(missing_ok=True)

    def ends_of_parts(self, run_id: str, upload: str) -> list[int]:
        """Where the parts of an upload end; none if there is no such upload."""
        path = self._upload_path(run_id, upload)
        with suppress(FileNotFoundError), _store():
            names = [str(name).rpartition("/")[2] for name in self._fs.ls(path, detail=False)]
            return [int(name) for name in names if name.isdecimal()]
        return []

    def sizes_of_uploads(self, run_id: str) -> dict[str, int]:
        """The bytes of each upload of a run that is not complete."""
        sizes: dict[str, int] = {}
        with suppress(FileNotFoundError), _store():
            for path, part in self._fs.find(f"{self._run_path(run_id)}/uploads", detail=True).items():
                upload = str(path).rsplit("/", 2)[1]
                sizes[upload] = sizes.get(upload, 0) + int(part["size"])
        return sizes

    def parts(self, run_id: str, upload: str, size_bytes: int) -> Iterator[bytes]:
        """The first `size_bytes` of an upload. Of parts that were sent twice, any may be among them.

        Raises:
            FileNotFoundError: parts are missing.
        """
        folder, parts, end = self._upload_path(run_id, upload), [], size_bytes
        while end > 0:
            path = f"{folder}/{end:012d}"
            with _store():
                n_bytes = int(self._fs.info(path)["size"])
            if not 0 < n_bytes <= end:
                raise FileNotFoundError(path)
            parts.append(path)
            end -= n_bytes
        for path in reversed(parts):
            with _store():
                content: bytes = self._fs.cat_file(path)
            yield content

    def delete_upload(self, run_id: str, upload: str) -> None:
        """Delete the parts of an upload, if there are any."""
        with suppress(FileNotFoundError), _store():
            self._fs.rm(self._upload_path(run_id, upload), recursive=True)

    def is_empty(self) -> bool:
        """Whether no run has files in the store."""
        with suppress(FileNotFoundError), _store():
            return not self._fs.ls(f"{self._root}/runs", detail=False)
        return True

    def check_has_run(self, run_id: str) -> None:
        """Check that the store has files of a run that must have some.

        Raises:
            StoreUnavailable: it has none, like an empty folder where the store should be mounted.
        """
        with suppress(FileNotFoundError), _store():
            if self._fs.ls(self._run_path(run_id), detail=False):
                return
        raise StoreUnavailable(
            f"the artifact store {self._root} has no file of this run: on this host it may not be mounted, "
            "or CALLBOARD_ARTIFACTS_URL may be that of another store"
        )

    def delete_run(self, run_id: str) -> None:
        """Delete all files of a run, if there are any."""
        with suppress(FileNotFoundError), _store():
            self._fs.rm(self._run_path(run_id), recursive=True)


@contextmanager
def _store() -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, StoreUnavailable, Damaged):
        raise
    except Exception as error:  # each kind of store has its own error types; a folder's are of the system
        raise StoreUnavailable(f"the artifact store is unavailable: {error}") from error


def _link_or_copy(source: Path, target: Path) -> None:
    """Link or, on another file system, copy a file; `target` is either absent, the older file or complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        try:
            os.link(source, temporary)
        except FileNotFoundError:
            raise
        except OSError:  # another file system, or one without hard links
            _copy(source, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)  # `os.replace` leaves the link if `target` is this file already


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as read, target.open("wb") as written:
        shutil.copyfileobj(read, written, 2**20)
        written.flush()
        os.fsync(written.fileno())
