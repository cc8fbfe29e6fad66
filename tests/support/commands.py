"""A host's file of commands, and what a host publishes of it."""

import json
import sys
from pathlib import Path
from typing import Any

from backend.specs.host_commands import read_commands

FILE = """
[train]
arguments = {program}
folder = {folder}
variables = ["PYTHONPATH", "NO_PROXY"]
return_metric = "loss"
seed = true
parameters.lr = {{ type = "number", default = 0.5, minimum = 0.0, maximum = 1.0 }}
parameters.layers = {{ type = "integer", default = 2, minimum = 1, maximum = 8 }}
parameters.mode = {{ type = "text", default = "plain", pattern = "[a-z-]*" }}
parameters.optimizer = {{ type = "text", default = "adam", choices = ["adam", "sgd"] }}
parameters.resume = {{ type = "boolean", default = false }}
"""


def write(folder: Path, more: str = "") -> Path:
    """Write a file with the command `train`, which runs `train.py` in that folder."""
    file = folder / "commands.toml"
    program = json.dumps([sys.executable, "train.py"])
    file.write_text(FILE.format(program=program, folder=json.dumps(str(folder))) + more)
    return file


def published(folder: Path, more: str = "") -> list[dict[str, Any]]:
    """What a host with such a file publishes."""
    return [entry.describe().model_dump(mode="json") for entry in read_commands(write(folder, more)).values()]
