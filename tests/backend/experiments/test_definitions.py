import re
from itertools import combinations
from typing import cast

import pytest

from backend.experiments.definitions import DEFINITIONS, ITEMS, PAPERS, study_of
from backend.experiments.definitions.base import SIDE_BY_SIDE
from backend.experiments.experiments.study import cells, check, resolve_presets
from backend.experiments.figures.service import compares_times
from backend.experiments.specs.study import Scale

SCALES = [(name, scale) for name, (_, definition) in DEFINITIONS.items() for scale in definition.scales]


@pytest.mark.parametrize(("name", "scale"), SCALES, ids=[f"{name} {scale}" for name, scale in SCALES])
def test_definition_expands_into_valid_runs(name: str, scale: str) -> None:
    paper, definition = DEFINITIONS[name]
    spec = study_of(paper, definition, cast("Scale", scale))
    check(spec)
    one_draw = spec.draws.model_copy(update={"n": 1})
    resolved = resolve_presets(spec.model_copy(update={"draws": one_draw}))
    planned = cells(resolved, {})
    assert len(planned) == len(spec.arms) * len(spec.environments)
    assert len({cell.key for cell in planned}) == len(planned)


def test_ids_are_those_of_their_papers_and_none_occurs_twice() -> None:
    ids = [item.id for paper in PAPERS.values() for item in paper.items]
    assert len(ids) == len(set(ids)) == len(ITEMS)
    assert all(name.startswith(f"{paper.id}-") for name, (paper, _, _) in ITEMS.items())


def test_each_figure_of_a_study_belongs_to_one_item() -> None:
    for _, definition in DEFINITIONS.values():
        figures = [figure.id for item in definition.items for figure in (item.figure, *item.more) if figure]
        assert len(figures) == len(set(figures))
        for item in definition.items:
            assert bool(item.figure) == bool(definition.scales), item.id
            assert definition.scales or item.page or item.needs, item.id


def test_every_figure_and_table_of_the_papers_is_an_item() -> None:
    counted = {
        paper.id: sorted(item.label for item in paper.items if not item.extra) for paper in PAPERS.values()
    }
    assert counted == {
        "a3c": [
            *(f"Figure {n}" for n in (1, 2, 3, 4, "S2", "S5", "S6", "S7")),
            "Table 1",
            "Table 2",
            "Table S1",
        ],
        "paac": ["Figure 2", "Figure 3", "Figure 4", "Table 1"],
        "gorila": ["Figure 3", "Figure 4", "Figure 5", *(f"Table {n}" for n in (1, 2, 3, 4))],
        "ga3c": [*(f"Figure {n}" for n in (2, 3, 4, 5, 6, 7)), "Table 1", "Table 2", "Table 3"],
    }
    assert sum(len(labels) for labels in counted.values()) == 31


def test_scale_minutes_has_small_environments_and_few_runs() -> None:
    for paper, definition in DEFINITIONS.values():
        if "minutes" in definition.scales:
            spec = study_of(paper, definition, "minutes")
            assert spec.n_runs <= 50, definition.id
            assert not any(environment.startswith("ALE/") for environment in spec.environments)


@pytest.mark.parametrize(
    "name", [name for name, (_, known) in DEFINITIONS.items() if "hours" in known.scales]
)
def test_runs_at_hours_end_within_100_minutes_on_a_slow_machine_too(name: str) -> None:
    paper, definition = DEFINITIONS[name]
    spec = resolve_presets(study_of(paper, definition, "hours"))
    limits_s = [cell.spec.stop.wall_time_s or float("inf") for cell in cells(spec, {})]
    assert sum(limits_s) <= 6_000


def test_studies_that_compare_times_or_rates_start_one_run_at_a_time_or_say_that_they_do_not() -> None:
    for name, (_, definition) in DEFINITIONS.items():
        figures = [
            figure for item in definition.items for figure in (item.figure, *item.more) if figure is not None
        ]
        shows_times = any(compares_times(figure) for figure in figures)
        for scale, at in definition.scales.items():
            assert not shows_times or at.concurrency == 1 or SIDE_BY_SIDE in at.differs, (name, scale)


@pytest.mark.parametrize("scale", ["minutes", "hours", "paper"])
def test_studies_that_share_runs_start_equally_many_at_a_time(scale: Scale) -> None:
    """Or runs of the one trained beside each other that the other compares by their times."""
    studies: dict[str, tuple[set[str], int]] = {}
    for name, (paper, definition) in DEFINITIONS.items():
        if scale in definition.scales:
            spec = study_of(paper, definition, scale)
            spec = spec.model_copy(update={"draws": spec.draws.model_copy(update={"n": 1})})
            keys = {cell.key for cell in cells(resolve_presets(spec), {})}
            studies[name] = keys, spec.concurrency
    pairs = combinations(studies, 2)
    sharing = [(name, other) for name, other in pairs if studies[name][0] & studies[other][0]]
    assert sharing
    for name, other in sharing:
        assert studies[name][1] == studies[other][1], (name, other)


def test_what_differs_names_how_long_runs_train_and_that_no_game_of_people_starts_them() -> None:
    for name, (_, definition) in DEFINITIONS.items():
        for scale, at in definition.scales.items():
            listed = "; ".join(at.differs)
            if scale != "paper":
                steps, seconds = at.stop.get("agent_steps", 0), at.stop.get("wall_time_s", 0)
                lengths = f"{steps:,} agent steps", f"{seconds:g} seconds", f"{seconds / 60:.0f} minutes"
                assert any(re.search(rf"\b{length}", listed) for length in lengths), (name, scale)
            if any(item.needs_people for item in definition.items):
                assert "instead of human" in listed, (name, scale)


def test_scores_at_minutes_are_evaluations_of_the_trained_agent() -> None:
    for item in ("a3c-figure-2", "a3c-figure-s7", "a3c-optimizers"):
        paper, definition, _ = ITEMS[item]
        by_scale = {
            scale: {figure.reduction.source for figure in study_of(paper, definition, scale).figures}
            for scale in definition.scales
        }
        # At hours these arms are not evaluated, to leave their time to training.
        assert by_scale == {"minutes": {"evaluations"}, "hours": {"training"}, "paper": {"evaluations"}}


def test_optimizers_share_statistics_among_as_many_actors_as_in_the_paper() -> None:
    _, definition, _ = ITEMS["a3c-optimizers"]
    for scale in ("minutes", "hours"):
        assert {arm.config["n_actors"] for arm in definition.scales[scale].arms} == {16}, scale


NUMBERS = {"four": 4, "five": 5, "six": 6, "seven": 7, "nine": 9, "49": 49}


def test_small_environments_stand_for_as_many_games_as_the_paper_has() -> None:
    n_lines = 0
    for _, definition in DEFINITIONS.values():
        if "paper" not in definition.scales:
            continue
        n_games = len(definition.scales["paper"].environments)
        for at in definition.scales.values():
            for line in at.differs:
                for number in re.findall(rf"instead of ({'|'.join(NUMBERS)}) (?:Atari )?games\b", line):
                    assert NUMBERS[number] == n_games, (definition.id, line)
                    n_lines += 1
    assert n_lines >= 8


def test_titles_of_figures_say_what_their_scores_are() -> None:
    paper, definition, _ = ITEMS["gorila-table-1"]
    starts = {"ALE/Assault-v5": "agent_starts:a", "ALE/RoadRunner-v5": "agent_starts:r"}
    small, atari, from_starts = (
        {figure.id: (figure.title, figure.reduction.normalise) for figure in study.figures}
        for study in (
            study_of(paper, definition, "minutes"),
            study_of(paper, definition, "hours"),
            study_of(paper, definition, "hours", starts),
        )
    )
    assert set(small.values()) == {("Scores, not normalised", None), ("Scores", None)}
    assert atari["normalised-starts"] == ("Human-normalised scores", "human")
    assert set(from_starts.values()) == {("Scores from our starts", None)}


def test_curves_of_the_best_settings_name_the_setting_at_every_scale() -> None:
    for paper, definition in DEFINITIONS.values():
        for scale in definition.scales:
            for figure in study_of(paper, definition, scale).figures:
                assert figure.reduction.of == "runs" or figure.setting, (definition.id, scale, figure.id)
