"""The artifact store: checkpoints, replays and videos, in a folder or on any server fsspec knows.

A key is `runs/<run id>/<kind>/<file>`; its parts are ids and file names, never paths from a request.
A file appears under its key whole or not at all.
"""

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

Kind = Literal["checkpoints", "replays", "videos"]

_RUN_ID = re.compile(r"[0-9A-Z]{26}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


class InvalidKey(ValueError):
    """A run id or a file name that could leave the store."""


class StoreAway(OSError):
    """The artifact store does not answer, or refuses: try again later."""


def check_file_name(name: str) -> str:
    """`name` itself, where it is a plain file name.

    Raises:
        InvalidKey: it holds a separator, starts with a dot, or is longer than 200 characters.
    """
    if not _FILE.fullmatch(name):
        raise InvalidKey(f"not a file name: {name!r:.80}")
    return name


class ArtifactStore:
    """Files by key at one fsspec URL, such as `file:///srv/callboard` or `s3://bucket/callboard`.

    Every method raises `StoreAway` where a remote store fails for another reason than a missing file.
    """

    def __init__(self, url: str) -> None:
        # Other processes write to the store: what it listed once is no longer so.
        self._fs, self._root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        self._local = isinstance(self._fs, LocalFileSystem)

    def _path(self, run_id: str, kind: Kind, file: str) -> str:
        if not _RUN_ID.fullmatch(run_id):
            raise InvalidKey(f"not a run id: {run_id!r:.80}")
        return f"{self._root}/runs/{run_id}/{kind}/{check_file_name(file)}"

    def put(self, local: Path, run_id: str, kind: Kind) -> None:
        """Copy a complete local file into the store under its own name, replacing an older one.

        Raises:
            FileNotFoundError: there is no such local file.
        """
        target = self._path(run_id, kind, local.name)
        if self._local:
            _copy_atomically(local, Path(target))
            return
        if not local.is_file():
            raise FileNotFoundError(local)
        with _remote():
            try:
                # Object stores show an upload when it is complete.
                self._fs.put_file(str(local), target)
            except FileNotFoundError as error:
                raise StoreAway(f"no such place in the artifact store: {error}") from error

    def copy(self, run_id: str, kind: Kind, file: str, to_run_id: str, to_file: str) -> None:
        """Copy a file to another run, under another name.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        source, target = self._path(run_id, kind, file), self._path(to_run_id, kind, to_file)
        if self._local:
            _copy_atomically(Path(source), Path(target))
        else:
            with _remote():
                self._fs.copy(source, target)

    def get(self, run_id: str, kind: Kind, file: str, folder: Path) -> Path:
        """Copy a file from the store into a local folder; gives its local path.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / check_file_name(file)
        temporary = folder / f".{file}.{uuid4().hex}"
        path = self._path(run_id, kind, file)
        try:
            with _remote():
                self._fs.get_file(path, str(temporary))
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        return target

    def open(self, run_id: str, kind: Kind, file: str) -> IO[bytes]:
        """Open a file for reading; it can seek.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        path = self._path(run_id, kind, file)
        with _remote():
            opened: IO[bytes] = self._fs.open(path, "rb")
        return opened

    def size_bytes(self, run_id: str, kind: Kind, file: str) -> int:
        """Size of a file.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        path = self._path(run_id, kind, file)
        with _remote():
            return int(self._fs.info(path)["size"])

    def delete(self, run_id: str, kind: Kind, file: str) -> None:
        """Delete a file; harmless when it is gone."""
        path = self._path(run_id, kind, file)
        with suppress(FileNotFoundError), _remote():
            self._fs.rm_file(path)

    def delete_run(self, run_id: str) -> None:
        """Delete everything of a run; harmless when there is nothing."""
        folder = self._path(run_id, "videos", "x").removesuffix("/videos/x")
        with suppress(FileNotFoundError), _remote():
            self._fs.rm(folder, recursive=True)


@contextmanager
def _remote() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # each kind of store has its own tree of errors
        raise StoreAway(f"the artifact store fails: {error}") from error


def _copy_atomically(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        with source.open("rb") as read, temporary.open("wb") as written:
            shutil.copyfileobj(read, written, 2**20)
            written.flush()
            os.fsync(written.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
