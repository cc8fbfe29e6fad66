"""Public names and arguments of the packages whose interfaces the client imitates.

`python -m tests.support.foreign_names > tests/client/wandb_names.txt`, in an environment with W&B, lists
W&B's names, one a line, such as `init.tags`. Those of TensorBoard's writer are listed by the test itself.
"""

import importlib
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def names_of(prefix: str, members: Iterable[tuple[str, Any]]) -> list[str]:
    """Public names among members of a module or class, and the arguments of each that can be called.

    Args:
        prefix: what stands before each name, such as `Run.`.
        members: names and objects, as of `inspect.getmembers`.
    """
    names = []
    for name, member in members:
        if name.startswith("_") or inspect.ismodule(member):
            continue
        names.append(f"{prefix}{name}")
        names += arguments_of(f"{prefix}{name}", member)
    return names


def arguments_of(name: str, member: Any) -> list[str]:
    """The named arguments of a function or class, with its name before each."""
    try:
        parameters = inspect.signature(member).parameters if callable(member) else {}
    except (TypeError, ValueError):
        return []
    own = ("self", "cls", "args", "kwargs")
    return [f"{name}.{argument}" for argument in parameters if argument not in own and argument[0] != "_"]


def _of_wandb() -> list[str]:
    wandb: Any = importlib.import_module("wandb")
    wandb_run: Any = importlib.import_module("wandb.sdk.wandb_run")

    names = names_of("", inspect.getmembers(wandb))
    lazy = [(name, getattr(wandb, name)) for name in wandb.__all__ if not name.startswith("__")]
    names += names_of("", lazy)
    names += names_of("Run.", inspect.getmembers(wandb_run.Run))
    [folder] = wandb.__path__
    variables = re.findall(r"\bWANDB_[A-Z_]*[A-Z]\b", Path(folder, "env.py").read_text())
    callback = Path(folder, "integration/sb3/sb3.py").read_text()
    [signature] = re.findall(r"class WandbCallback.*?def __init__\(\s*self,(.*?)\)", callback, re.S)
    arguments = re.findall(r"(\w+):", signature)
    return sorted({*names, *variables, *(f"WandbCallback.{argument}" for argument in arguments)})


if __name__ == "__main__":
    print(*_of_wandb(), sep="\n")  # noqa: T201 -- it is a script
