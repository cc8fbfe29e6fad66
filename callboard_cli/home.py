"""The installation's folder. Its files hold secrets, and other people may share the machine."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from callboard_cli import fail

PRIVATE_UMASK = 0o077
"""New files are readable by their owner alone."""

FILES = ("callboard.sqlite3", "callboard.sqlite3-shm", "callboard.sqlite3-wal", "command-line-key", "up.json")
FOLDERS = ("artifacts", "logs", "runs")


def make_home(home: Path) -> None:
    """Create the installation's folder, unless it exists.

    Raises:
        typer.Exit: it cannot be created.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise fail(f"CALLBOARD_HOME: {home} cannot be created: {error.strerror}") from None


def make_private(home: Path) -> None:
    """Make new files private, and those of an existing home that another umask left
    readable: the home itself, its files, and the folders in it, which hide everything below them.

    A folder that is not an installation's home, or belongs to another user, is left alone.

    Raises:
        typer.Exit: the home is not a folder, or cannot be read.
    """
    os.umask(PRIVATE_UMASK)
    try:
        if home.exists() and not home.is_dir():
            raise fail(f"CALLBOARD_HOME: {home} is not a folder")
        if not any((home / name).exists() for name in (*FILES, *FOLDERS)):
            return
    except OSError as error:
        raise fail(f"CALLBOARD_HOME: {home} cannot be read: {error.strerror}") from None
    for path in (home, *(home / name for name in (*FILES, *FOLDERS)), *_logs(home)):
        with suppress(OSError):
            _close(path)


def _logs(home: Path) -> list[Path]:
    with suppress(OSError):
        return sorted((home / "logs").iterdir())
    return []


def _close(path: Path) -> None:
    status = path.lstat()
    shared = status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    # A sticky folder, such as /tmp, is shared on purpose; a link's target is its owner's choice.
    if not shared or status.st_uid != os.geteuid() or status.st_mode & stat.S_ISVTX:
        return
    if stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode):
        path.chmod(stat.S_IMODE(status.st_mode) & ~(stat.S_IRWXG | stat.S_IRWXO))
