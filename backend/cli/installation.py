"""The one running `callboard up` of a home folder: its process, address and database."""

import fcntl
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import IO

from backend.settings import Settings


@dataclass(frozen=True)
class RunningInstallation:
    """Process and address of a running installation."""

    pid: int
    url: str | None
    """Address of the server; None while it starts."""
    database_digest: str

    def uses(self, database: str) -> bool:
        """Whether its database has this URL."""
        return self.database_digest == _digest(database)


class Installation:
    """A file with that state, locked while the installation runs; a crash leaves no stale lock."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.home_dir / "up.json"
        self._database = settings.database
        self._file: IO[str] | None = None

    def acquire(self) -> bool:
        """Lock the file; False if another installation runs."""
        file = self._path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        self.set_url(None)
        return True

    def set_url(self, url: str | None) -> None:
        """Publish this process's address."""
        assert self._file is not None
        self._file.truncate(0)
        # A database's URL may contain a password.
        state = RunningInstallation(os.getpid(), url, _digest(self._database))
        json.dump(asdict(state), self._file)
        self._file.flush()

    def running(self) -> RunningInstallation | None:
        """The running installation; None if there is none."""
        try:
            with self._path.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            state = json.loads(self._path.read_text())
            return RunningInstallation(state["pid"], state["url"], state.get("database_digest", ""))
        except FileNotFoundError:
            pass
        return None

    def release(self) -> None:
        """Clear and unlock the file."""
        assert self._file is not None
        self._file.truncate(0)
        self._file.close()


def _digest(database: str) -> str:
    return hashlib.sha256(database.encode()).hexdigest()
