"""The spec in the directory of a run.

The commands `train`, `evaluate` and `runs import` read it, and so does the demo run.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from callboard_cli import fail

if TYPE_CHECKING:
    from backend.specs.run import RunSpec


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
