"""The custom environments of a host: those of its file, and those that other distributions declare.

    [project.entry-points."callboard.environments"]
    "Custom/Grid-v0" = "grid.spec:GRID"

The name is the environment's id, and the value a `CustomEnvironmentEntry`, whose module imports
`callboard_algorithms.spec` alone. Hosts publish the description: the web host needs no such distribution.
"""

from importlib.metadata import EntryPoint
from pathlib import Path

from backend.specs.declared import Declared, PackageError, load_declared, requirement
from backend.specs.environments.custom import (
    FILE_VARIABLE,
    CustomEnvironmentEntry,
    read_custom_environments,
)
from backend.specs.fields import CUSTOM_ID, PATTERNS

GROUP = "callboard.environments"


def installed_environments(file: Path | None) -> Declared[CustomEnvironmentEntry]:
    """Every custom environment of this host by id, and why those of a distribution are off.

    Args:
        file: the host's file of custom environments, whose ids no distribution can take; None: it has none.

    Raises:
        CustomEnvironmentsError: the file is invalid.
    """
    of_file = {} if file is None else read_custom_environments(file)
    form = (CUSTOM_ID, PATTERNS[CUSTOM_ID])
    declared = load_declared(GROUP, "environment", form, of_file, _load)
    return Declared(of_file | declared.values, declared.problems)


def absence(environment: str, file: Path | None, declared: Declared[CustomEnvironmentEntry]) -> str:
    """Why this host lacks a custom environment."""
    listed = ", ".join(declared.values) or "no custom environments"
    of_file = f"{FILE_VARIABLE} is not set" if file is None else f"not in {file}"
    off = "".join(f"; {package} is off: {problem}" for package, problem in declared.problems.items())
    return f"{environment}: {of_file}, and no distribution has it; this host has {listed}{off}"


def _load(point: EntryPoint) -> CustomEnvironmentEntry:
    entry = point.load()
    if not isinstance(entry, CustomEnvironmentEntry):
        raise PackageError(f"{point.value} is no CustomEnvironmentEntry but a {type(entry).__name__}")
    if entry.id != point.name:
        raise PackageError(f"{point.value} has the id {entry.id}, not {point.name}")
    return entry.model_copy(update={"package": requirement(point)})
