from typing import cast

import pytest

from backend.specs.studies import DEFINITIONS, ITEMS, PAPERS, study_of
from backend.specs.study import Scale
from backend.studies import expansion

SCALES = [(name, scale) for name, (_, definition) in DEFINITIONS.items() for scale in definition.scales]


@pytest.mark.parametrize(("name", "scale"), SCALES, ids=[f"{name} {scale}" for name, scale in SCALES])
def test_definition_expands_into_valid_runs(name: str, scale: str) -> None:
    paper, definition = DEFINITIONS[name]
    spec = study_of(paper, definition, cast("Scale", scale))
    expansion.check(spec)
    one_draw = spec.draws.model_copy(update={"n": 1})
    resolved = expansion.resolve_presets(spec.model_copy(update={"draws": one_draw}))
    cells = expansion.cells(resolved, {})
    assert len(cells) == len(spec.arms) * len(spec.environments)
    assert len({cell.key for cell in cells}) == len(cells)


def test_ids_are_those_of_their_papers_and_none_occurs_twice() -> None:
    ids = [item.id for paper in PAPERS.values() for item in paper.items]
    assert len(ids) == len(set(ids)) == len(ITEMS)
    assert all(name.startswith(f"{paper.id}-") for name, (paper, _, _) in ITEMS.items())


def test_each_figure_of_a_study_belongs_to_one_item() -> None:
    for _, definition in DEFINITIONS.values():
        figures = [item.figure.id for item in definition.items if item.figure]
        assert len(figures) == len(set(figures))
        for item in definition.items:
            assert bool(item.figure) == bool(definition.scales), item.id
            assert bool(definition.scales) != bool(item.page or item.needs), item.id
