"""The one running `callboard up` of a home folder: its process, address and database."""

import errno
import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from typing import IO

from backend.platform.settings import Settings
from callboard_cli import fail
from callboard_cli.database import database_digest

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of file systems without locks."""
_WRITING_S = 0.01
_MAX_READS = 100
"""The file of an installation that starts, ends or changes its address is empty for a moment."""


@dataclass(frozen=True)
class RunningInstallation:
    """Process and address of a running installation."""

    pid: int
    url: str | None
    """Address of the server; None while it starts."""
    database_digest: str
    """Digest of the database, from `database.database_digest`."""

    def require_database(self, settings: Settings) -> None:
        """Check that it uses the database of these settings: it knows no link or token in another one.

        Raises:
            typer.Exit: it uses another one.
        """
        if self.database_digest != database_digest(settings):
            raise fail(
                f"CALLBOARD_DATABASE_URL: process {self.pid} runs in {settings.home_dir} with another "
                "database; use the same one, or set CALLBOARD_HOME to another folder"
            )


class Installation:
    """The file with a `RunningInstallation`, locked while that runs; a crash leaves no stale lock."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.home_dir / "up.json"
        self._settings = settings
        self._file: IO[str] | None = None

    def acquire(self) -> bool:
        """Lock the file; False if another installation runs.

        Raises:
            OSError: it cannot be written or locked.
        """
        file = self._path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if isinstance(error, BlockingIOError):
                return False
            raise
        self._file = file
        self.set_url(None)
        return True

    def set_url(self, url: str | None) -> None:
        """Publish this process's address."""
        assert self._file is not None
        self._file.truncate(0)
        state = RunningInstallation(os.getpid(), url, database_digest(self._settings))
        json.dump(asdict(state), self._file)
        self._file.flush()

    def running(self) -> RunningInstallation | None:
        """The running installation; None if there is none, or if the file system has no locks.

        Raises:
            typer.Exit: its file cannot be read.
        """
        for _ in range(_MAX_READS):
            try:
                if not self._is_locked():
                    return None
                state = json.loads(self._path.read_text())
                return RunningInstallation(state["pid"], state["url"], state["database_digest"])
            except json.JSONDecodeError:
                time.sleep(_WRITING_S)
            except OSError as error:
                hint = "set CALLBOARD_HOME to a folder that you can read"
                raise fail(f"{self._path}: {error.strerror}; {hint}", 1) from None
        raise fail(f"{self._path}: a running process holds it, and has not written its address; try again", 1)

    def _is_locked(self) -> bool:
        """Whether an installation runs, which locks its file.

        Raises:
            OSError: the file cannot be read.
        """
        try:
            with self._path.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        return False

    def release(self) -> None:
        """Clear and unlock the file."""
        assert self._file is not None
        self._file.truncate(0)
        self._file.close()
