"""One running `callboard up` a home: who it is, and where it answers."""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True)
class Noted:
    """What a running installation says of itself."""

    pid: int
    url: str | None
    """Its address; none while it starts."""


class Installation:
    """The file that says so, locked while the installation runs: a crash leaves nothing to clear up."""

    def __init__(self, home: Path) -> None:
        self._path = home / "up.json"
        self._file: IO[str] | None = None

    def take(self) -> bool:
        """Become the one that runs. False when another does."""
        file = self._path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        self.note(None)
        return True

    def note(self, url: str | None) -> None:
        """Say where this process answers."""
        assert self._file is not None
        self._file.truncate(0)
        json.dump({"pid": os.getpid(), "url": url}, self._file)
        self._file.flush()

    def running(self) -> Noted | None:
        """The installation that runs, if one does."""
        try:
            with self._path.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            noted = json.loads(self._path.read_text())
            return Noted(noted["pid"], noted["url"])
        except FileNotFoundError:
            pass
        return None

    def release(self) -> None:
        """Run no more."""
        assert self._file is not None
        self._file.truncate(0)
        self._file.close()
