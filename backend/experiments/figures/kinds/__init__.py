"""The registry of the kinds of figures: every `Kind` that a module of this package declares."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args

from backend.experiments.figures.kind import Kind
from backend.experiments.specs.study import FigureKind


def _find_kinds() -> dict[str, Kind[Any]]:
    declared: dict[str, Kind[Any]] = {}
    for module in iter_modules(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Kind) and declared.setdefault(value.id, value) is not value:
                raise ValueError(f"{module.name} declares a second kind {value.id}")
    known = get_args(FigureKind)
    if declared.keys() != set(known):
        differing = ", ".join(sorted(declared.keys() ^ set(known)))
        raise ValueError(
            f"in `FigureKind` of backend.experiments.specs.study or in {__name__}, not in both: {differing}"
        )
    return {name: declared[name] for name in known}


KINDS: dict[str, Kind[Any]] = _find_kinds()
"""Every kind of figure, by its id."""
