"""The papers whose experiments can be repeated, each in a module or a package of its own."""

from importlib import import_module
from pkgutil import iter_modules

from backend.experiments.definitions.base import AtScale, Definition, Item, Paper, study_of

_ORDER = ("a3c", "paac", "gorila", "ga3c")
"""The order on pages; others follow, by their ids."""


def _find_papers() -> dict[str, Paper]:
    papers: dict[str, Paper] = {}
    for module in iter_modules(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Paper):
                papers[value.id] = value
    order = [name for name in _ORDER if name in papers]
    return {name: papers[name] for name in (*order, *sorted(papers.keys() - set(_ORDER)))}


PAPERS: dict[str, Paper] = _find_papers()
"""Every paper, by id."""

DEFINITIONS: dict[str, tuple[Paper, Definition]] = {
    definition.id: (paper, definition) for paper in PAPERS.values() for definition in paper.definitions
}
"""Every definition with its paper, by id."""

ITEMS: dict[str, tuple[Paper, Definition, Item]] = {
    item.id: (paper, definition, item)
    for paper, definition in DEFINITIONS.values()
    for item in definition.items
}
"""Every figure and table, by id."""

__all__ = ["DEFINITIONS", "ITEMS", "PAPERS", "AtScale", "Definition", "Item", "Paper", "study_of"]
