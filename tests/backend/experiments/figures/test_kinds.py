import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import get_args

from backend.experiments.definitions import ITEMS
from backend.experiments.figures import kinds
from backend.experiments.figures.kind import Kind, Shape
from backend.experiments.figures.kinds import KINDS
from backend.experiments.specs.study import FigureKind

ROOT = Path(__file__).parents[4]


def test_modules_specs_pages_guide_and_definitions_have_the_same_kinds() -> None:
    modules = [import_module(f"{kinds.__name__}.{module.name}") for module in iter_modules(kinds.__path__)]
    declared = {value.id for module in modules for value in vars(module).values() if isinstance(value, Kind)}
    assert declared == set(get_args(FigureKind))
    assert tuple(KINDS) == get_args(FigureKind)
    guide = (ROOT / "docs/guides/studies.md").read_text()
    [table] = re.findall(r"\| `kind` \|.*\n\|.*\n((?:\|.*\n)+)", guide)
    first_columns = [line.split("|")[1] for line in table.splitlines()]
    assert {name for column in first_columns for name in re.findall(r"`(\w+)`", column)} == declared
    cards = (ROOT / "frontend/src/features/papers/ShapeIcon.tsx").read_text()
    assert set(re.findall(r"^  (\w+): [(<]", cards, re.MULTILINE)) == set(get_args(Shape))
    assert {kind.shape for kind in KINDS.values()} == set(get_args(Shape))
    figures = [figure for _, _, item in ITEMS.values() for figure in (item.figure, *item.more) if figure]
    assert {figure.kind for figure in figures} <= declared
