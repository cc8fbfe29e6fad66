"""Which run a spool belongs to (`run.json`), and which process uses it (`lock`)."""

from __future__ import annotations

import errno
import fcntl
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from callboard.frames import count_rows, path_of, paths_in, read_bytes, segments_of

_PASSING = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE}
"""Errors of the machine that may pass, whatever is in the spool."""


@dataclass(frozen=True)
class Manifest:
    """Which run a spool belongs to."""

    source: str
    """Id of the stream of rows: the server takes each of its sequence numbers once."""
    url: str
    run: str | None
    """None until the server has created the run."""
    create: dict[str, Any] | None
    """Body of the request that creates the run."""
    name: str
    """Name of the run in messages."""
    rewind_to: int | None = None
    """Agent steps after which the run's points are to be set aside, before anything is sent."""


class SpoolUnreadable(Exception):
    """A spool whose run or state is unknown: nothing of it can be sent."""


class SpoolUnavailable(SpoolUnreadable):
    """A spool that cannot be locked or read at present: it may be whole, and a script may use it."""


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a spool's folder.

    Raises:
        OSError: it cannot be read.
        ValueError: it is none.
        TypeError: it is none.
    """
    manifest = Manifest(**json.loads((folder / "run.json").read_text("utf-8")))
    if not all(isinstance(text, str) for text in (manifest.source, manifest.url, manifest.name)):
        raise ValueError("it has no source, address or name")
    return manifest


def run_at(folder: Path) -> str | None:
    """The run that a spool belongs to, whether or not it can be opened; None if that cannot be read, or if
    the run has not been created."""
    try:
        return read_manifest(folder).run
    except (OSError, ValueError, TypeError):
        return None


def count_rows_in(folder: Path) -> int:
    """How many rows the segments of a folder have, sent or not, as far as they can be read."""
    n_rows = 0
    for segment in segments_of(paths_in(folder)):
        with suppress(OSError):
            n_rows += count_rows(read_bytes(path_of(folder, segment)))
    return n_rows


def take_lock(folder: Path) -> IO[str] | None:
    """The lock of a spool; None if its process still runs, or if it cannot be locked and is empty.

    Raises:
        SpoolUnreadable: it has no lock that can be opened.
        SpoolUnavailable: a subclass; it cannot be locked at present.
    """
    try:
        lock = (folder / "lock").open("r+")
    except OSError as error:
        if not segments_of(paths_in(folder)):
            return None
        cause = f"its lock cannot be opened: {error.strerror}"
        if error.errno in _PASSING:
            raise SpoolUnavailable(cause) from None
        if isinstance(error, FileNotFoundError):
            cause = f"its lock is missing: if no script uses it, create an empty file {folder / 'lock'}"
        raise SpoolUnreadable(cause) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        if isinstance(error, BlockingIOError) or not segments_of(paths_in(folder)):
            return None
        raise SpoolUnavailable(f"it cannot be locked: {error.strerror}") from None
    return lock


def is_passing(error: Exception) -> bool:
    """Whether an error is one of the machine that may pass."""
    return isinstance(error, OSError) and error.errno in _PASSING
