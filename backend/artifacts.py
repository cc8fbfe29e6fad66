"""The artifact store: checkpoints, replays and videos, in a folder or on any server fsspec knows.

A key is `runs/<run id>/<kind>/<file>`; its parts are ids and file names, never paths from a request.
A file appears under its key whole or not at all.
"""

import os
import re
import shutil
from contextlib import suppress
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


def check_file_name(name: str) -> str:
    """`name` itself, where it is a plain file name.

    Raises:
        InvalidKey: it holds a separator, starts with a dot, or is longer than 200 characters.
    """
    if not _FILE.fullmatch(name):
        raise InvalidKey(f"not a file name: {name!r:.80}")
    return name


class ArtifactStore:
    """Files by key at one fsspec URL, such as `file:///srv/callboard` or `s3://bucket/callboard`."""

    def __init__(self, url: str) -> None:
        self._fs, self._root = fsspec.core.url_to_fs(url)
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
        else:
            # Object stores show an upload when it is complete.
            self._fs.put_file(str(local), target)

    def copy(self, run_id: str, kind: Kind, file: str, to_run_id: str, to_file: str) -> None:
        """Copy a file to another run, under another name.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        source, target = self._path(run_id, kind, file), self._path(to_run_id, kind, to_file)
        if self._local:
            _copy_atomically(Path(source), Path(target))
        else:
            self._fs.copy(source, target)

    def get(self, run_id: str, kind: Kind, file: str, folder: Path) -> Path:
        """Copy a file from the store into a local folder; gives its local path.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / check_file_name(file)
        temporary = folder / f".{file}.{uuid4().hex}"
        try:
            self._fs.get_file(self._path(run_id, kind, file), str(temporary))
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        return target

    def open(self, run_id: str, kind: Kind, file: str) -> IO[bytes]:
        """Open a file for reading; it can seek.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        opened: IO[bytes] = self._fs.open(self._path(run_id, kind, file), "rb")
        return opened

    def size_bytes(self, run_id: str, kind: Kind, file: str) -> int:
        """Size of a file.

        Raises:
            FileNotFoundError: the store has no such file.
        """
        return int(self._fs.info(self._path(run_id, kind, file))["size"])

    def delete(self, run_id: str, kind: Kind, file: str) -> None:
        """Delete a file; harmless when it is gone."""
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._path(run_id, kind, file))

    def delete_run(self, run_id: str) -> None:
        """Delete everything of a run; harmless when there is nothing."""
        folder = Path(self._path(run_id, "videos", "x")).parent.parent
        with suppress(FileNotFoundError):
            self._fs.rm(str(folder), recursive=True)


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
