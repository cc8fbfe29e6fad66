"""The spec in the directory of a run.

The commands `train`, `evaluate` and `runs import` read it, and so does the demo run.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from callboard_cli import fail

if TYPE_CHECKING:
    from backend.specs.run import RunSpec


@contextmanager
def occupying(folder: Path) -> Iterator[None]:
    """Have no other command train in a run directory meanwhile; a new one is created.

    Raises:
        typer.Exit: another one trains there, or it cannot be created.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise fail(f"run_directory: {folder} cannot be written: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise fail(
                f"run_directory: another process trains in {folder}: wait for its end, or choose another "
                "directory"
            ) from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing would leave it to children that still end
        os.close(descriptor)
        if is_new:
            with suppress(OSError):  # the request was refused before anything was written
                folder.rmdir()


def load_spec(folder: Path) -> "RunSpec":
    """The spec of the run in a directory.

    Raises:
        typer.Exit: there is none, or it is not valid.
    """
    from backend.specs.problems import InvalidSpec
    from backend.specs.run import parse_run_spec

    try:
        data = json.loads((folder / "spec.json").read_text("utf-8"))
        if not isinstance(data, dict):
            raise ValueError("must be an object")
        return parse_run_spec(data)
    except (FileNotFoundError, NotADirectoryError):
        if not folder.exists():
            raise fail(f"run_directory: {folder} does not exist: check the path") from None
        raise fail(f"run_directory: {folder} is not the directory of a run: it has no spec.json") from None
    except OSError as error:
        raise fail(f"run_directory: {error.filename} cannot be read: {error.strerror}") from None
    except (ValueError, InvalidSpec) as error:
        raise fail(f"run_directory: spec.json in it is not valid: {error}") from None
