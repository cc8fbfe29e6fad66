"""The one running `callboard up` of a home folder: its process and address."""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True)
class RunningInstallation:
    """Process and address of a running installation."""

    pid: int
    url: str | None
    """Address of the server; None while it starts."""


class Installation:
    """A file with that state, locked while the installation runs; a crash leaves no stale lock."""

    def __init__(self, home: Path) -> None:
        self._path = home / "up.json"
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
        json.dump({"pid": os.getpid(), "url": url}, self._file)
        self._file.flush()

    def running(self) -> RunningInstallation | None:
        """The running installation; None if there is none."""
        try:
            with self._path.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            state = json.loads(self._path.read_text())
            return RunningInstallation(state["pid"], state["url"])
        except FileNotFoundError:
            pass
        return None

    def release(self) -> None:
        """Clear and unlock the file."""
        assert self._file is not None
        self._file.truncate(0)
        self._file.close()
